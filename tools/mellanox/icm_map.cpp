// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mellanox/icm_map.hpp"

#include <iterator>

namespace weft::mellanox
{

bool IcmMap::map(std::uint64_t address, std::uint64_t bus, std::uint64_t size)
{
	if (size == 0)
		return true;
	if (address + (size - 1) < address || bus + (size - 1) < bus)
		return false;
	// The range itself, and what is left on both sides of it of the piece it lies in.
	if (pieces_.size() + (cuts(address, address + (size - 1)) ? 2 : 1) > kMaxPieces)
		return false;
	remove(address, address + (size - 1));

	auto next = pieces_.lower_bound(address);
	if (next != pieces_.begin()) {
		const auto previous = std::prev(next);
		if (previous->first + previous->second.size == address &&
		    previous->second.bus + previous->second.size == bus) {
			address = previous->first;
			bus = previous->second.bus;
			size += previous->second.size;
			pieces_.erase(previous);
		}
	}
	if (next != pieces_.end() && address + size == next->first &&
	    bus + size == next->second.bus) {
		size += next->second.size;
		pieces_.erase(next);
	}
	pieces_.emplace(address, Piece{bus, size});
	return true;
}

bool IcmMap::unmap(std::uint64_t address, std::uint64_t size)
{
	if (size == 0)
		return true;
	// Inclusive, so that the last page of the address space needs no special care.
	const std::uint64_t last =
		address + (size - 1) < address ? ~std::uint64_t{0} : address + (size - 1);
	if (pieces_.size() >= kMaxPieces && cuts(address, last))
		return false;
	remove(address, last);
	return true;
}

// Whether a piece reaches beyond both ends of the range.
bool IcmMap::cuts(std::uint64_t address, std::uint64_t last) const
{
	const auto next = pieces_.lower_bound(address);
	if (next == pieces_.begin())
		return false;
	const auto &[start, piece] = *std::prev(next);
	return start + (piece.size - 1) > last;
}

void IcmMap::remove(std::uint64_t address, std::uint64_t last)
{
	auto piece = pieces_.upper_bound(address);
	if (piece != pieces_.begin())
		--piece;
	while (piece != pieces_.end() && piece->first <= last) {
		const std::uint64_t start = piece->first;
		const Piece whole = piece->second;
		const std::uint64_t end = start + (whole.size - 1);
		if (end < address) {
			++piece;
			continue;
		}
		piece = pieces_.erase(piece);
		if (start < address)
			pieces_.emplace(start, Piece{whole.bus, address - start});
		if (end > last) {
			const std::uint64_t cut = last + 1 - start;
			pieces_.emplace(last + 1, Piece{whole.bus + cut, whole.size - cut});
		}
	}
}

std::optional<IcmMap::Place> IcmMap::find(std::uint64_t address) const
{
	auto piece = pieces_.upper_bound(address);
	if (piece == pieces_.begin())
		return std::nullopt;
	--piece;
	const std::uint64_t offset = address - piece->first;
	if (offset >= piece->second.size)
		return std::nullopt;
	return Place{piece->second.bus + offset, piece->second.size - offset};
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

} // namespace weft::mellanox
