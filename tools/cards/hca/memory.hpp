// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface by which the transport engine accesses guest memory through the memory keys
// of a card. Each card implements this interface, because each card has its own format of key
// tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/guest_memory.hpp"

namespace weft::hca
{

// BusRange - a range of guest physical (I/O virtual) addresses.
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
	invalid_key,       // the key does not exist, or is invalid at present
	protection_domain, // the key has another PD, or is a window of another QP
	permission,
	bounds,
	translation, // a page is not mapped: in the MTT, in ICM, or in the guest
	bad_request, // this kind of key does not permit the memory operation
	taken_back,  // the lease on the packet's payload has ended, so the packet counts as lost
};

// KeyUse - the QP that uses a memory key, and the kind of access.
struct KeyUse {
	std::uint32_t key = 0;
	KeyAccess access = KeyAccess::local_read;
	std::uint32_t pd = 0;
	std::uint32_t qpn = 0;
	// True if the QP may use the reserved lkey, which covers bus addresses (local access only).
	bool reserved_lkey = false;
};

// KeyRights - access rights that a work request sets on a key.
struct KeyRights {
	bool local_read = false;
	bool local_write = false;
	bool remote_read = false;
	bool remote_write = false;
	bool remote_atomic = false;
	bool bind = false;
};

// Work requests that change keys (IBA 10.6.5, 10.6.7).
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

// Results are valid until control returns to the card's loop.
class Memory
{
public:
	virtual ~Memory() = default;

	// Returns the memory that the card may access, for atomics and other uses of bus addresses.
	// Null while it may access none.
	GuestMemory *memory() const { return memory_; }
	void set_memory(GuestMemory *memory) { memory_ = memory; }

	// Appends the bus ranges of [@address, @address + @length), as translated for @use. Leaves
	// @out unchanged on error. If the length is 0, the key is not checked and there is no range
	// (IBA 9.7.4.1.5).
	virtual MemoryError resolve(const KeyUse &use, std::uint64_t address, std::uint64_t length,
				    std::vector<BusRange> &out) const = 0;
	// Like resolve(), but returns host memory that stays valid as long as the segments are
	// kept.
	virtual MemoryError translate(const KeyUse &use, std::uint64_t address,
				      std::uint64_t length,
				      std::vector<MemorySegment> &out) const = 0;
	// Returns true if @key is valid at present, so that packets in flight keep their access to
	// its memory.
	virtual bool holds(std::uint32_t key) const = 0;
	// Returns true if @key refers to parts of other keys' memory.
	virtual bool has_parts(std::uint32_t /* key */) const { return false; }
	// Returns true once after a key was destroyed or changed, if other keys have used parts of
	// its memory.
	virtual bool take_lost_parts() { return false; }
	// Returns the position in the table of a key's index (the key without its low eight bits).
	// Drivers set bits beyond the table's size in keys, but not in commands.
	virtual std::uint32_t slot(std::uint32_t index) const = 0;

	// Execute work requests on keys. After an error, nothing has changed.
	virtual MemoryError fast_register(const FastRegister &request, std::uint32_t pd) = 0;
	virtual MemoryError invalidate(std::uint32_t key, std::uint32_t pd, std::uint32_t qpn,
				       bool remote) = 0;
	// @user has the queue pair's domain, number and rights. Its key and access are ignored.
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

// Appends @ranges to @out as host memory for this kind of access. Leaves @out unchanged on error.
MemoryError to_segments(const GuestMemory *memory, KeyAccess access,
			std::span<const BusRange> ranges, std::vector<MemorySegment> &out);

} // namespace weft::hca
