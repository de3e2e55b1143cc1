// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The device's end of a split virtqueue (virtio 1.1, 2.6). It lies in memory that the guest may
// change or unshare at any time, so each access is checked, and every value is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bus/vhost-user/protocol.hpp"

namespace weft
{
class GuestMemory;
}

namespace weft::vhost_user
{

class Ring
{
public:
	// Addresses of its parts in the guest.
	struct Addresses {
		std::uint64_t descriptors = 0;
		std::uint64_t available = 0;
		std::uint64_t used = 0;
	};

	// Buffers that the guest made available under one head.
	struct Chain {
		std::uint16_t head = 0;
		std::vector<Descriptor> readable; // by the device
		std::vector<Descriptor> writable;
	};

	// Nothing: no chain is available. Broken: the ring is invalid, see trouble(), and nothing
	// after it can be read.
	enum class Taken { chain, nothing, broken };

	explicit Ring(GuestMemory &memory) : memory_(memory) {}

	// These set up the ring while it is disabled. They return false for invalid values:
	// @entries must be a power of two and at most kMaxRing; addresses must be aligned as virtio
	// requires and lie in the guest's memory.
	bool set_entries(std::uint32_t entries);
	bool set_addresses(const Addresses &addresses);
	bool set_next(std::uint16_t next);
	// False if it has no place yet, or is broken.
	bool enable(bool on);
	bool enabled() const { return enabled_; }

	std::uint32_t entries() const { return entries_; }

	// The next chain. The total of its lengths is @most at most. It is returned before the
	// next is taken.
	Taken take(Chain &chain, std::uint64_t most);
	const char *trouble() const { return trouble_; }
	// Returns a chain with @written bytes of its writable part. False if the ring is broken.
	bool give_back(const Chain &chain, std::uint32_t written);
	// Returns true if the guest wants a notification about used buffers.
	bool wants_call() const;

private:
	Taken broken(const char *why);
	Taken walk(Chain &chain, std::uint64_t most);

	GuestMemory &memory_;
	std::uint32_t entries_ = 0;
	std::optional<Addresses> addresses_;
	std::uint16_t next_ =
		0; // the entry of the available ring that is looked at next; the used ring's index
	bool enabled_ = false;
	const char *trouble_ = nullptr;
};

// Copies what a chain gives, up to @data's size; returns how much that was, or nothing if it is not
// in memory.
std::optional<std::size_t> gather(const GuestMemory &memory, const std::vector<Descriptor> &parts,
				  std::span<std::byte> data);
// Copies @data to where a chain takes. False, and perhaps some was written, if it has no room or is
// not in memory.
bool scatter(GuestMemory &memory, const std::vector<Descriptor> &parts,
	     std::span<const std::byte> data);

} // namespace weft::vhost_user
