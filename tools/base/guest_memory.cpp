// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/guest_memory.hpp"

#include <algorithm>

namespace weft
{

GuestMemory::MapResult GuestMemory::map(std::uint64_t iova, std::uint64_t size, bool readable,
					bool writable, std::shared_ptr<const MemoryMapping> mapping)
{
	if (!size || iova + (size - 1) < iova || (mapping && size > mapping->size()))
		return MapResult::invalid;
	const auto next = std::upper_bound(sections_.begin(), sections_.end(), iova,
					   [](std::uint64_t address, const Section &section) {
						   return address < section.iova;
					   });
	if (next != sections_.end() && next->iova - iova < size)
		return MapResult::overlap;
	if (next != sections_.begin() && std::prev(next)->holds(iova))
		return MapResult::overlap;

	std::uint8_t access = 0;
	if (mapping && readable)
		access |= static_cast<std::uint8_t>(Access::read);
	if (mapping && writable)
		access |= static_cast<std::uint8_t>(Access::write);
	std::byte *data = mapping ? mapping->data() : nullptr;
	sections_.insert(next, Section{iova, size, data, access, std::move(mapping)});
	return MapResult::mapped;
}

bool GuestMemory::unmap(std::uint64_t iova, std::uint64_t size)
{
	if (!size || iova + (size - 1) < iova)
		return false;
	const auto last = iova + (size - 1);
	// The sections are sorted and disjoint, so those that overlap the range are adjacent in the
	// list.
	const auto begin = std::ranges::find_if(
		sections_, [=](const Section &section) { return section.last() >= iova; });
	const auto end = std::find_if(begin, sections_.end(),
				      [=](const Section &section) { return section.iova > last; });
	if (begin == end || begin->iova < iova || std::prev(end)->last() > last)
		return false;
	sections_.erase(begin, end);
	return true;
}

void GuestMemory::clear()
{
	sections_.clear();
}

const GuestMemory::Section *GuestMemory::section_at(std::uint64_t iova) const
{
	const auto next = std::upper_bound(sections_.begin(), sections_.end(), iova,
					   [](std::uint64_t address, const Section &section) {
						   return address < section.iova;
					   });
	if (next == sections_.begin() || !std::prev(next)->holds(iova))
		return nullptr;
	last_ = static_cast<std::size_t>(std::prev(next) - sections_.begin());
	return &*std::prev(next);
}

const GuestMemory::Section *GuestMemory::find_slowly(std::uint64_t iova, std::uint64_t length,
						     Access access) const
{
	const Section *section = length ? section_at(iova) : nullptr;
	if (!section || length > section->left(iova) || !section->allows(access))
		return nullptr;
	return section;
}

// Calls @piece(section, address, bytes) for each part of the range, until a part is not mapped.
template<typename F>
bool GuestMemory::walk(std::uint64_t iova, std::uint64_t length, Access access, F &&piece) const
{
	while (length) {
		const Section *section = section_at(iova);
		if (!section || !section->allows(access))
			return false;
		const auto bytes = std::min(length, section->left(iova));
		piece(*section, iova, bytes);
		iova += bytes;
		length -= bytes;
		// A range that continues beyond the last address would wrap around to address 0.
		if (length && iova == 0)
			return false;
	}
	return true;
}

bool GuestMemory::covers(std::uint64_t iova, std::uint64_t length, Access access) const
{
	return walk(iova, length, access, [](const Section &, std::uint64_t, std::uint64_t) {});
}

bool GuestMemory::read_pieces(std::uint64_t iova, std::span<std::byte> data) const
{
	std::byte *to = data.data();
	return walk(iova, data.size(), Access::read,
		    [&](const Section &section, std::uint64_t address, std::uint64_t bytes) {
			    std::memcpy(to, section.at(address), bytes);
			    to += bytes;
		    });
}

bool GuestMemory::write_pieces(std::uint64_t iova, std::span<const std::byte> data)
{
	if (!covers(iova, data.size(), Access::write))
		return false;
	const std::byte *from = data.data();
	return walk(iova, data.size(), Access::write,
		    [&](const Section &section, std::uint64_t address, std::uint64_t bytes) {
			    std::memcpy(section.at(address), from, bytes);
			    from += bytes;
		    });
}

bool GuestMemory::translate(std::uint64_t iova, std::uint64_t length, Access access,
			    std::vector<MemorySegment> &out) const
{
	const auto before = out.size();
	const bool whole =
		walk(iova, length, access,
		     [&](const Section &section, std::uint64_t address, std::uint64_t bytes) {
			     out.push_back({section.mapping, section.at(address), bytes});
		     });
	if (!whole)
		out.resize(before);
	return whole;
}

} // namespace weft
