// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/memory_regions.hpp"

#include <algorithm>
#include <utility>

#include "cards/amso1100/bytes.hpp"
#include "base/guest_memory.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using wire::Status;

namespace
{

constexpr unsigned kKeyBits = 8;
constexpr std::uint32_t kIndices = 1u << 24;

std::span<const std::byte> list_of(const Message &message, std::size_t at, std::size_t entries)
{
	return std::span(message).subspan(at, entries * sizeof(std::uint64_t));
}

void append(std::vector<std::uint64_t> &pages, std::span<const std::byte> list)
{
	for (std::size_t at = 0; at < list.size(); at += sizeof(std::uint64_t))
		pages.push_back(load_be<std::uint64_t>(list, at));
}

} // namespace

MemoryRegions::Region *MemoryRegions::find(std::uint32_t stag)
{
	const auto found = regions_.find(stag >> kKeyBits);
	return found == regions_.end() ? nullptr : &found->second;
}

const MemoryRegions::Region *MemoryRegions::find(std::uint32_t stag) const
{
	return const_cast<MemoryRegions *>(this)->find(stag);
}

Status MemoryRegions::look_at(const Shape &shape)
{
	if (shape.page_size < kLeastPageSize || shape.page_size > kMostPageSize)
		return Status::invalid_page_size;
	if (shape.first_offset >= shape.page_size)
		return Status::invalid_first_offset;
	const std::uint64_t room = std::uint64_t{shape.pages} * shape.page_size;
	if (room < shape.first_offset || shape.length > room - shape.first_offset ||
	    shape.va + shape.length < shape.va)
		return Status::invalid_length;
	return Status::ok;
}

void MemoryRegions::set_shape(Region &region, const Shape &shape)
{
	region.base = region.flags & wire::mr_flag::va_based ? shape.va : 0;
	region.page_size = shape.page_size;
	region.first_offset = shape.first_offset;
	region.length = shape.length;
}

// Inserts a region. Indices are used in rotation, so that a freed index is not reused soon.
std::uint32_t MemoryRegions::insert(Region region)
{
	do
		last_index_ = last_index_ % (kIndices - 1) + 1;
	while (regions_.contains(last_index_));
	entries_ += region.most_pages;
	const std::uint32_t stag = last_index_ << kKeyBits | region.key;
	regions_.emplace(last_index_, std::move(region));
	return stag;
}

Status MemoryRegions::add(const Message &request, Message &reply)
{
	namespace field = wire::mr_register;
	const auto word = [&](std::size_t at) { return load_be<std::uint32_t>(request, at); };
	const std::uint32_t total = word(field::total_pages), here = word(field::pages_here);
	const Shape shape{.va = load_be<std::uint64_t>(request, field::va),
			  .page_size = word(field::page_size),
			  .first_offset = word(field::first_offset),
			  .length = word(field::length),
			  .pages = total};
	Region region;
	region.flags = load_be<std::uint16_t>(request, field::flags);
	const bool complete = region.flags & wire::mr_flag::complete;
	if (total > kMostPages || here > field::most_pages || here > total ||
	    (complete && here != total))
		return Status::page_list_too_big;
	if (const Status status = look_at(shape); status != Status::ok)
		return status;
	if (regions_.size() == kMostRegions || total > kMostEntries - entries_)
		return Status::insufficient_resources;
	region.state = complete ? State::valid : State::filling;
	region.key = static_cast<std::uint8_t>(request[field::key]);
	region.pd = word(field::pd);
	region.most_pages = total;
	set_shape(region, shape);
	append(region.pages, list_of(request, field::pages, here));
	store_be<std::uint32_t>(reply, field::reply_total_pages, total);
	store_be<std::uint32_t>(reply, field::reply_stag, insert(std::move(region)));
	return Status::ok;
}

Status MemoryRegions::add_pages(const Message &request)
{
	namespace field = wire::mr_page_list;
	Region *const region = find(load_be<std::uint32_t>(request, field::stag));
	if (!region)
		return Status::invalid_stag;
	const auto here = load_be<std::uint32_t>(request, field::pages_here);
	if (region->state != State::filling)
		return Status::stag_state_not_invalid;
	if (here > field::most_pages || here > region->most_pages - region->pages.size())
		region->wrong = Status::page_list_too_big;
	else
		append(region->pages, list_of(request, field::pages, here));
	if (!(load_be<std::uint32_t>(request, field::flags) & wire::mr_flag::complete) ||
	    region->wrong != Status::ok)
		return region->wrong;
	if (region->pages.size() != region->most_pages)
		return region->wrong = Status::page_list_too_big;
	region->state = State::valid;
	return Status::ok;
}

// Allocates an STag for fast registration, with access rights and space for a page list.
Status MemoryRegions::allocate(const Message &request, Message &reply)
{
	namespace field = wire::stag_alloc;
	const auto total = load_be<std::uint32_t>(request, field::total_pages);
	if (total > kMostPages)
		return Status::page_list_too_big;
	if (regions_.size() == kMostRegions || total > kMostEntries - entries_)
		return Status::insufficient_resources;
	Region region;
	region.state = State::invalid;
	region.allocated = true;
	region.pd = load_be<std::uint32_t>(request, field::pd);
	region.flags = load_be<std::uint32_t>(request, field::flags);
	region.most_pages = total;
	store_be<std::uint32_t>(reply, field::reply_total_pages, total);
	store_be<std::uint32_t>(reply, field::reply_stag, insert(std::move(region)));
	return Status::ok;
}

Status MemoryRegions::remove(std::uint32_t stag)
{
	const Region *const region = find(stag);
	if (!region || region->key != (stag & 0xff))
		return Status::invalid_stag;
	entries_ -= region->most_pages;
	regions_.erase(stag >> kKeyBits);
	return Status::ok;
}

Status MemoryRegions::fast_register(std::uint32_t pd, std::span<const std::byte> slot)
{
	namespace field = wire::fast_register;
	const auto word = [&](std::size_t at) { return load_be<std::uint32_t>(slot, at); };
	Region *const region = find(word(field::stag));
	if (!region || region->pd != pd)
		return Status::invalid_stag;
	if (region->state != State::invalid)
		return Status::stag_state_not_invalid;
	const std::uint32_t here = word(field::pages_here);
	if (here > region->most_pages ||
	    here > (slot.size() - field::pages) / sizeof(std::uint64_t))
		return Status::page_list_too_big;
	const Shape shape{.va = load_be<std::uint64_t>(slot, field::va),
			  .page_size = word(field::page_size),
			  .first_offset = word(field::first_offset),
			  .length = word(field::length),
			  .pages = here};
	if (const Status status = look_at(shape); status != Status::ok)
		return status;
	region->key = static_cast<std::uint8_t>(slot[field::key]);
	set_shape(*region, shape);
	region->pages.clear();
	append(region->pages, slot.subspan(field::pages, here * sizeof(std::uint64_t)));
	region->state = State::valid;
	return Status::ok;
}

Verdict MemoryRegions::invalidate_for_peer(std::uint32_t pd, std::uint32_t stag)
{
	const Region *const region = find(stag);
	constexpr std::uint32_t offered = wire::mr_flag::remote_read | wire::mr_flag::remote_write;
	// invalidate() refuses an unknown STag, and an STag of another PD. Both are reported to the
	// peer as invalid STags, so that it cannot distinguish them.
	if (region && region->key == (stag & 0xff) && region->pd == pd &&
	    (!region->allocated || !(region->flags & offered)))
		return Verdict::rights;
	return invalidate(pd, stag);
}

Verdict MemoryRegions::invalidate(std::uint32_t pd, std::uint32_t stag)
{
	Region *const region = find(stag);
	if (!region || region->key != (stag & 0xff) || region->state != State::valid)
		return Verdict::invalid_stag;
	if (region->pd != pd)
		return Verdict::other_pd;
	region->state = State::invalid;
	return Verdict::good;
}

Verdict MemoryRegions::check(const Who &who, std::uint32_t stag, std::uint64_t offset,
			     std::uint64_t length, std::uint32_t right) const
{
	if (length && offset + (length - 1) < offset)
		return Verdict::wrapped;
	if (!stag)
		return who.zero_stag ? Verdict::good : Verdict::invalid_stag;
	const Region *const region = find(stag);
	if (!region || region->key != (stag & 0xff) || region->state != State::valid)
		return Verdict::invalid_stag;
	if (region->pd != who.pd)
		return Verdict::other_pd;
	if (!(region->flags & right))
		return Verdict::rights;
	if (offset < region->base || offset - region->base > region->length ||
	    length > region->length - (offset - region->base))
		return Verdict::bounds;
	return Verdict::good;
}

// Calls @piece for each contiguous bus range of a range that check() has permitted, until @piece
// returns false.
template<typename Piece>
bool MemoryRegions::walk(const Region &region, std::uint64_t offset, std::size_t length,
			 Piece &&piece)
{
	std::uint64_t position = region.first_offset + (offset - region.base);
	for (std::size_t done = 0; done < length;) {
		const std::uint64_t within = position % region.page_size;
		const auto size = static_cast<std::size_t>(
			std::min<std::uint64_t>(length - done, region.page_size - within));
		if (!piece(region.pages[position / region.page_size] + within, done, size))
			return false;
		done += size;
		position += size;
	}
	return true;
}

Verdict MemoryRegions::read(const Who &who, std::uint32_t stag, std::uint64_t offset,
			    std::span<std::byte> into, std::uint32_t right) const
{
	if (const Verdict verdict = check(who, stag, offset, into.size(), right);
	    verdict != Verdict::good)
		return verdict;
	if (!host_.bus_master())
		return Verdict::bounds;
	const auto piece = [&](std::uint64_t address, std::size_t done, std::size_t size) {
		return host_.dma().read(address, into.subspan(done, size));
	};
	const bool done = stag ? walk(*find(stag), offset, into.size(), piece)
			       : piece(offset, 0, into.size());
	return done ? Verdict::good : Verdict::bounds;
}

Verdict MemoryRegions::write(const Who &who, std::uint32_t stag, std::uint64_t offset,
			     std::span<const std::byte> bytes, std::uint32_t right)
{
	if (const Verdict verdict = check(who, stag, offset, bytes.size(), right);
	    verdict != Verdict::good)
		return verdict;
	if (!host_.bus_master())
		return Verdict::bounds;
	const auto piece = [&](std::uint64_t address, std::size_t done, std::size_t size) {
		return host_.dma().write(address, bytes.subspan(done, size));
	};
	const bool done = stag ? walk(*find(stag), offset, bytes.size(), piece)
			       : piece(offset, 0, bytes.size());
	return done ? Verdict::good : Verdict::bounds;
}

} // namespace weft::amso1100
