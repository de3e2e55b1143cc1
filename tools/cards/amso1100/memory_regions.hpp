// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages the memory regions that the driver has registered with the card: their STags, page lists
// and access rights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <hw/amso1100/work.hpp>

#include "cards/amso1100/message_queues.hpp"

namespace weft
{
class PciHost;
}

namespace weft::amso1100
{

// Result of an access check.
enum class Verdict { good, invalid_stag, other_pd, bounds, rights, wrapped };

class MemoryRegions
{
public:
	static constexpr std::size_t kMostRegions = 32768;
	// Maximum length of one page list, and of all lists together.
	static constexpr std::uint32_t kMostPages = 131072;
	static constexpr std::size_t kMostEntries = 4 << 20;
	static constexpr std::uint32_t kLeastPageSize = 1024, kMostPageSize = 1 << 30;

	// The accessor. If @zero_stag is set, STag 0 permits access by bus address.
	struct Who {
		std::uint32_t pd;
		bool zero_stag = false;
	};

	explicit MemoryRegions(PciHost &host) : host_(host) {}

	// Handlers of the host's request messages.
	hw::amso1100::Status add(const Message &request, Message &reply);
	hw::amso1100::Status add_pages(const Message &request);
	hw::amso1100::Status allocate(const Message &request, Message &reply);
	hw::amso1100::Status remove(std::uint32_t stag);
	// Executes a work request. @slot may be too short for its page list.
	hw::amso1100::Status fast_register(std::uint32_t pd, std::span<const std::byte> slot);
	// An invalidated STag may be registered again or removed.
	Verdict invalidate(std::uint32_t pd, std::uint32_t stag);
	// Invalidates an STag for a peer. A peer may invalidate only an STag that STAG_ALLOC has
	// allocated, that a work request has registered, and that has remote access rights. It must
	// not invalidate an STag that several streams share (RFC 5042, 6.5).
	Verdict invalidate_for_peer(std::uint32_t pd, std::uint32_t stag);

	// Checks an access. @right is a bit of mr_flag.
	Verdict check(const Who &who, std::uint32_t stag, std::uint64_t offset,
		      std::uint64_t length, std::uint32_t right) const;
	// These return Verdict::bounds if memory of the region is no longer mapped.
	Verdict read(const Who &who, std::uint32_t stag, std::uint64_t offset,
		     std::span<std::byte> into, std::uint32_t right) const;
	Verdict write(const Who &who, std::uint32_t stag, std::uint64_t offset,
		      std::span<const std::byte> bytes, std::uint32_t right);

private:
	enum class State {
		filling, // the page list is not complete
		valid,
		invalid,
	};
	struct Region {
		State state = State::filling;
		bool allocated = false; // true if STAG_ALLOC has allocated it
		std::uint8_t key = 0;
		std::uint32_t pd = 0;
		std::uint32_t flags = 0;
		std::uint64_t base = 0; // offset of the first byte
		std::uint32_t length = 0;
		std::uint32_t first_offset = 0; // within the first page
		std::uint32_t page_size = 0;
		std::uint32_t most_pages = 0; // counted against kMostEntries
		std::vector<std::uint64_t> pages{};
		// Error in an earlier part of the page list, which is returned for the last part.
		hw::amso1100::Status wrong = hw::amso1100::Status::ok;
	};
	// Parameters that REGISTER and a fast registration have in common.
	struct Shape {
		std::uint64_t va;
		std::uint32_t page_size, first_offset, length, pages;
	};

	static hw::amso1100::Status look_at(const Shape &shape);
	static void set_shape(Region &region, const Shape &shape);
	std::uint32_t insert(Region region);
	Region *find(std::uint32_t stag);
	const Region *find(std::uint32_t stag) const;
	template<typename Piece>
	static bool walk(const Region &region, std::uint64_t offset, std::size_t length,
			 Piece &&piece);

	PciHost &host_;
	// The key of the map is the STag without its key byte.
	std::unordered_map<std::uint32_t, Region> regions_;
	std::size_t entries_ = 0;
	std::uint32_t last_index_ = 0;
};

} // namespace weft::amso1100
