// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the device's side of a split virtqueue (virtio 1.1, 2.6). The queue is in memory that
// the guest may change or unshare at any time, so each access is checked, and every value is read
// once.
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
	// Guest addresses of the three parts.
	struct Addresses {
		std::uint64_t descriptors = 0;
		std::uint64_t available = 0;
		std::uint64_t used = 0;
	};

	// The buffers of a descriptor chain.
	struct Chain {
		std::uint16_t head = 0;
		std::vector<Descriptor> readable; // readable by the device
		std::vector<Descriptor> writable;
	};

	// nothing: no chain is available. broken: the ring is invalid, see trouble(), and cannot be
	// used any more.
	enum class Taken { chain, nothing, broken };

	explicit Ring(GuestMemory &memory) : memory_(memory) {}

	// These set up the ring while it is disabled. They return false for invalid values:
	// @entries must be a power of two and at most kMaxRing; addresses must be aligned as virtio
	// requires and lie in the guest's memory.
	bool set_entries(std::uint32_t entries);
	bool set_addresses(const Addresses &addresses);
	bool set_next(std::uint16_t next);
	// enable() returns false if the ring has no addresses yet, or is broken.
	bool enable(bool on);
	bool enabled() const { return enabled_; }

	std::uint32_t entries() const { return entries_; }

	// Takes the next chain. A chain whose buffers exceed @most bytes in total breaks the ring.
	// A chain must be returned before the next one is taken.
	Taken take(Chain &chain, std::uint64_t most);
	const char *trouble() const { return trouble_; }
	// Returns a chain to the guest, with @written bytes in its writable part. Returns false if
	// the ring is broken.
	bool return_chain(const Chain &chain, std::uint32_t written);
	// Returns true if the guest wants a notification about used buffers.
	bool wants_call() const;

private:
	Taken broken(const char *why);
	Taken walk(Chain &chain, std::uint64_t most);

	GuestMemory &memory_;
	std::uint32_t entries_ = 0;
	std::optional<Addresses> addresses_;
	std::uint16_t next_ = 0; // the next entry of the available ring; the index of the used ring
	bool enabled_ = false;
	const char *trouble_ = nullptr;
};

// Copies the readable part of a chain to @data, as far as it fits. Returns the number of bytes, or
// nothing if the part is not in guest memory.
std::optional<std::size_t> gather(const GuestMemory &memory, const std::vector<Descriptor> &parts,
				  std::span<std::byte> data);
// Copies @data to the writable part of a chain. Returns false, possibly after a partial write, if
// there is not enough space or the part is not in guest memory.
bool scatter(GuestMemory &memory, const std::vector<Descriptor> &parts,
	     std::span<const std::byte> data);

} // namespace weft::vhost_user
