// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the card's context memory (ICM): a virtual address space that is backed by pages that
// the driver maps (MAP_ICM). Every work request reads the map several times, but it seldom changes.
// Mappings are in a sorted array. For each chunk of the address space, another array gives the
// index at which the search starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::mellanox_icm
{

class IcmMap
{
public:
	static constexpr std::uint64_t kPageSize = 4096;
	// Limit of pieces, because each uses host memory. Ranges that are adjacent both in ICM and
	// on the bus form one piece, and a driver creates a few hundred.
	static constexpr std::size_t kMaxPieces = 65536;

	struct Place {
		std::uint64_t bus;  // address on the bus
		std::uint64_t left; // number of bytes from @bus to the end of the piece
	};

	// Maps [@address, @address + @size) to the bus range at @bus, and replaces previous
	// mappings. Both ranges must consist of whole pages. Returns false without effect if a
	// range wraps around or there are too many pieces.
	bool map(std::uint64_t address, std::uint64_t bus, std::uint64_t size);
	// Unmaps [@address, @address + @size), parts of which may already be unmapped. Returns
	// false without effect if splitting a piece would result in too many pieces.
	bool unmap(std::uint64_t address, std::uint64_t size);
	void clear()
	{
		pieces_.clear();
		chunks_.clear();
		indexed_ = false;
	}
	std::size_t pieces() const { return pieces_.size(); }

	// Looks up @address. Returns nothing if it is not mapped.
	std::optional<Place> find(std::uint64_t address) const;
	// Returns the bus address of an object within one page, or nothing if it is not mapped.
	std::optional<std::uint64_t> locate(std::uint64_t address, std::uint64_t size) const
	{
		const auto place = find(address);
		if (!place || place->left < size)
			return std::nullopt;
		return place->bus;
	}
	// Calls @f(icm_address, bus, size) for each mapped part of [@address, @address + @size).
	template<typename F>
	void for_each(std::uint64_t address, std::uint64_t size, F &&f) const
	{
		if (size == 0)
			return;
		const std::uint64_t last =
			address + (size - 1) < address ? ~std::uint64_t{0} : address + (size - 1);
		for (std::size_t i = first_ending_from(address); i < pieces_.size(); ++i) {
			const Piece &piece = pieces_[i];
			if (piece.address > last)
				break;
			const std::uint64_t from =
				piece.address < address ? address : piece.address;
			const std::uint64_t to = piece.last() < last ? piece.last() : last;
			f(from, piece.bus + (from - piece.address), to - from + 1);
		}
	}
	// Returns true if all of [@address, @address + @size) is mapped.
	bool covers(std::uint64_t address, std::uint64_t size) const;

private:
	struct Piece {
		std::uint64_t address;
		std::uint64_t bus;
		std::uint64_t size;

		std::uint64_t last() const { return address + (size - 1); }
	};
	static constexpr unsigned kLogChunk = 18;
	// Number of chunks with an index, from address 0 on. Higher addresses are found by binary
	// search.
	static constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 15;

	// Returns the index of the piece that contains @address, or of the next piece, or pieces()
	// if there is none.
	std::size_t first_ending_from(std::uint64_t address) const;
	void index() const;
	// These take inclusive ranges.
	bool cuts(std::uint64_t address, std::uint64_t last) const;
	void remove(std::uint64_t address, std::uint64_t last);

	std::vector<Piece> pieces_; // sorted by address, disjoint
	// Result of first_ending_from() for each chunk's first byte. It is rebuilt on the first use
	// after a change.
	mutable std::vector<std::uint32_t> chunks_;
	mutable bool indexed_ = false;
};

} // namespace weft::mellanox_icm
