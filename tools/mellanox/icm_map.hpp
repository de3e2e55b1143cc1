// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The card's context memory (ICM): a virtual address space of its own, backed by pages that the
// driver lends it (MAP_ICM).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace weft::mellanox
{

class IcmMap
{
public:
	static constexpr std::uint64_t kPageSize = 4096;
	// Pieces that are not adjacent both in ICM and on the bus cost host memory; a driver has a
	// few hundred.
	static constexpr std::size_t kMaxPieces = 65536;

	struct Place {
		std::uint64_t bus;  // address on the bus
		std::uint64_t left; // bytes from there to the end of the piece
	};

	// Backs [@address, @address + @size) with the bus range at @bus, in place of what was
	// there. Both are whole pages. False, and nothing has changed, if a range wraps around or
	// there are too many pieces.
	bool map(std::uint64_t address, std::uint64_t bus, std::uint64_t size);
	// Takes the backing away from [@address, @address + @size), where there is some. False, and
	// nothing has changed, if that would cut one piece too many in two.
	bool unmap(std::uint64_t address, std::uint64_t size);
	void clear() { pieces_.clear(); }
	std::size_t pieces() const { return pieces_.size(); }

	// Where @address lies; nothing if it is not backed.
	std::optional<Place> find(std::uint64_t address) const;
	// The bus address of an object that lies within one page; nothing if it is not backed.
	std::optional<std::uint64_t> locate(std::uint64_t address, std::uint64_t size) const
	{
		const auto place = find(address);
		if (!place || place->left < size)
			return std::nullopt;
		return place->bus;
	}
	// Calls @f(icm_address, bus, size) for each backed stretch of [@address, @address + @size).
	template<typename F>
	void for_each(std::uint64_t address, std::uint64_t size, F &&f) const
	{
		if (size == 0)
			return;
		const std::uint64_t last =
			address + (size - 1) < address ? ~std::uint64_t{0} : address + (size - 1);
		auto piece = pieces_.upper_bound(address);
		if (piece != pieces_.begin())
			--piece;
		for (; piece != pieces_.end() && piece->first <= last; ++piece) {
			const std::uint64_t end = piece->first + (piece->second.size - 1);
			if (end < address)
				continue;
			const std::uint64_t from = piece->first < address ? address : piece->first;
			const std::uint64_t to = end < last ? end : last;
			f(from, piece->second.bus + (from - piece->first), to - from + 1);
		}
	}
	// Whether all of [@address, @address + @size) is backed.
	bool covers(std::uint64_t address, std::uint64_t size) const;

private:
	struct Piece {
		std::uint64_t bus;
		std::uint64_t size;
	};

	// Inclusive ranges.
	bool cuts(std::uint64_t address, std::uint64_t last) const;
	void remove(std::uint64_t address, std::uint64_t last);

	std::map<std::uint64_t, Piece> pieces_; // by ICM address; disjoint
};

} // namespace weft::mellanox
