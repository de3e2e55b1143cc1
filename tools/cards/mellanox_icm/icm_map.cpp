// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/icm_map.hpp"

#include <algorithm>

namespace weft::mellanox_icm
{

bool IcmMap::map(std::uint64_t address, std::uint64_t bus, std::uint64_t size)
{
	if (size == 0)
		return true;
	if (address + (size - 1) < address || bus + (size - 1) < bus)
		return false;
	// The new range adds one piece, and a second one if it splits an existing piece.
	if (pieces_.size() + (cuts(address, address + (size - 1)) ? 2 : 1) > kMaxPieces)
		return false;
	remove(address, address + (size - 1));

	auto next = std::ranges::lower_bound(pieces_, address, {}, &Piece::address);
	// Merge with a neighbour that is adjacent in both address spaces.
	if (next != pieces_.end() && address + size == next->address && bus + size == next->bus) {
		next->address = address;
		next->bus = bus;
		next->size += size;
	} else {
		next = pieces_.insert(next, Piece{address, bus, size});
	}
	if (next != pieces_.begin()) {
		Piece &previous = *(next - 1);
		if (previous.address + previous.size == next->address &&
		    previous.bus + previous.size == next->bus) {
			previous.size += next->size;
			pieces_.erase(next);
		}
	}
	return true;
}

bool IcmMap::unmap(std::uint64_t address, std::uint64_t size)
{
	if (size == 0)
		return true;
	// The end is inclusive, so that the last page of the address space is not a special case.
	const std::uint64_t last =
		address + (size - 1) < address ? ~std::uint64_t{0} : address + (size - 1);
	if (pieces_.size() >= kMaxPieces && cuts(address, last))
		return false;
	remove(address, last);
	return true;
}

// Returns true if a piece extends beyond both ends of the range.
bool IcmMap::cuts(std::uint64_t address, std::uint64_t last) const
{
	const auto next = std::ranges::lower_bound(pieces_, address, {}, &Piece::address);
	return next != pieces_.begin() && (next - 1)->last() > last;
}

void IcmMap::remove(std::uint64_t address, std::uint64_t last)
{
	indexed_ = false;
	const auto first = std::ranges::lower_bound(pieces_, address, {}, &Piece::last);
	const auto end = std::ranges::upper_bound(first, pieces_.end(), last, {}, &Piece::address);
	if (first == end)
		return;
	// Keep the parts that extend beyond the range, at either end.
	std::vector<Piece> left;
	if (first->address < address)
		left.push_back({first->address, first->bus, address - first->address});
	if (const Piece &behind = *(end - 1); behind.last() > last) {
		const std::uint64_t cut = last + 1 - behind.address;
		left.push_back({last + 1, behind.bus + cut, behind.size - cut});
	}
	pieces_.insert(pieces_.erase(first, end), left.begin(), left.end());
}

void IcmMap::index() const
{
	chunks_.clear();
	indexed_ = true;
	if (pieces_.empty())
		return;
	const std::uint64_t chunks =
		std::min(kMostChunks, (pieces_.back().last() >> kLogChunk) + 1);
	std::uint32_t piece = 0;
	for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
		while (pieces_[piece].last() < chunk << kLogChunk)
			++piece;
		chunks_.push_back(piece);
	}
}

std::size_t IcmMap::first_ending_from(std::uint64_t address) const
{
	if (!indexed_)
		index();
	const std::uint64_t chunk = address >> kLogChunk;
	auto from = pieces_.begin(), to = pieces_.end();
	if (chunk < chunks_.size())
		from += chunks_[chunk];
	if (chunk + 1 < chunks_.size())
		to = pieces_.begin() + chunks_[chunk + 1] + 1;
	// In most cases the first piece of the chunk is the right one.
	if (from != to && from->last() >= address)
		return static_cast<std::size_t>(from - pieces_.begin());
	return static_cast<std::size_t>(
		std::ranges::lower_bound(from, to, address, {}, &Piece::last) - pieces_.begin());
}

std::optional<IcmMap::Place> IcmMap::find(std::uint64_t address) const
{
	const std::size_t i = first_ending_from(address);
	if (i == pieces_.size() || pieces_[i].address > address)
		return std::nullopt;
	const std::uint64_t offset = address - pieces_[i].address;
	return Place{pieces_[i].bus + offset, pieces_[i].size - offset};
}

bool IcmMap::covers(std::uint64_t address, std::uint64_t size) const
{
	while (size) {
		const auto place = find(address);
		if (!place)
			return false;
		if (place->left >= size)
			return true;
		address += place->left;
		size -= place->left;
	}
	return true;
}

} // namespace weft::mellanox_icm
