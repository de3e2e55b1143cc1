// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The third of the three interfaces that the transport engine needs from a card: memory keys and
// the guest's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/guest_memory.hpp"

namespace weft::hca
{

// BusRange - a stretch of guest physical (I/O virtual) addresses.
struct BusRange {
	std::uint64_t address;
	std::uint64_t length;
};

enum class KeyAccess : std::uint8_t {
	local_read,
	local_write,
	remote_read,
	remote_write,
	remote_atomic,
};

enum class MemoryError : std::uint8_t {
	none,
	invalid_key,       // no such key, or not valid now
	protection_domain, // another PD, or a window of another QP
	permission,
	bounds,
	translation, // a page is missing: in the MTT, in ICM, or in the guest
	bad_request, // memory operation not possible on this kind of key
	taken_back,  // the bytes of a packet are its sender's again: the packet counts as lost
};

// KeyUse - who wants to use a memory key, and for what.
struct KeyUse {
	std::uint32_t key = 0;
	KeyAccess access = KeyAccess::local_read;
	std::uint32_t pd = 0;
	std::uint32_t qpn = 0;
	// The QP may use the reserved lkey, which covers bus addresses (local access only).
	bool reserved_lkey = false;
};

// KeyRights - what a work request opens memory for.
struct KeyRights {
	bool local_read = false;
	bool local_write = false;
	bool remote_read = false;
	bool remote_write = false;
	bool remote_atomic = false;
	bool bind = false;
};

// Work requests on keys (IBA 10.6.5, 10.6.7).
struct FastRegister {
	std::uint32_t key = 0;
	KeyRights rights;
	std::uint64_t page_list = 0; // bus address
	std::uint64_t start = 0;
	std::uint64_t length = 0;
	std::uint32_t page_shift = 0;
};

struct UpdateKey; // requests.hpp

struct BindWindow {
	std::uint32_t new_rkey = 0;
	std::uint32_t region_lkey = 0;
	KeyRights rights;
	bool type_2 = false;
	bool zero_based = false;
	std::uint64_t address = 0;
	std::uint64_t length = 0;
};

// Answers are good until control returns to the card's loop.
class Memory
{
public:
	virtual ~Memory() = default;

	// Memory that the card may access now; null while it may access none. For atomics and other
	// bus addresses.
	GuestMemory *memory() const { return memory_; }
	void set_memory(GuestMemory *memory) { memory_ = memory; }

	// Appends the bus ranges that make up [@address, @address + @length) as @use sees it.
	// On an error @out is as before. A length of 0 is not checked and gives no range
	// (IBA 9.7.4.1.5).
	virtual MemoryError resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				    std::vector<BusRange> &out) const = 0;
	// The same, as host memory that stays valid as long as the segments are kept.
	virtual MemoryError translate(const KeyUse &use, std::uint64_t address,
				      std::uint64_t length,
				      std::vector<MemorySegment> &out) const = 0;
	// Returns true if @key is still in use, by whatever object.
	virtual bool holds(std::uint32_t key) const = 0;
	// Returns true if @key refers to parts of other keys' memory.
	virtual bool has_parts(std::uint32_t /* key */) const { return false; }
	// Returns true, once, after a key that others have parts of was destroyed or changed.
	virtual bool take_lost_parts() { return false; }
	// The place in the table of a key's index (the key less its low eight bits): drivers leave
	// bits beyond the table in keys, and out of commands.
	virtual std::uint32_t slot(std::uint32_t index) const = 0;

	// Work requests on keys. On an error nothing has changed.
	virtual MemoryError fast_register(const FastRegister &request, std::uint32_t pd) = 0;
	virtual MemoryError invalidate(std::uint32_t key, std::uint32_t pd, std::uint32_t qpn,
				       bool remote) = 0;
	// @user: the queue pair's domain, number and rights; its key and access say nothing.
	virtual MemoryError update_key(const UpdateKey &, const KeyUse & /* user */)
	{
		return MemoryError::bad_request;
	}
	virtual MemoryError bind_window(const BindWindow &request, std::uint32_t pd,
					std::uint32_t qpn) = 0;

protected:
	GuestMemory *memory_ = nullptr;
};

constexpr bool is_remote(KeyAccess access)
{
	return access >= KeyAccess::remote_read;
}

// Appends @ranges as host memory to @out, for an access of that kind. On an error @out is as
// before.
MemoryError to_segments(const GuestMemory *memory, KeyAccess access,
			std::span<const BusRange> ranges, std::vector<MemorySegment> &out);

} // namespace weft::hca
