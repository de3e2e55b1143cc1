// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and writes entries of event and completion queues in the guest's memory. EQEs and CQEs have
// 64 bytes, with the owner bit in the last byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/guest_memory.hpp"

namespace weft::mlx5
{

constexpr std::size_t kEntrySize = 64;

// Writes @entry at the bus address @bus; its last word, with the owner bit, becomes visible last.
// Returns false if the address is not accessible.
inline bool store_entry(GuestMemory *memory, std::uint64_t bus,
			std::span<const std::uint8_t, kEntrySize> entry)
{
	constexpr std::size_t head = kEntrySize - sizeof(std::uint64_t);
	std::uint64_t last;
	std::memcpy(&last, entry.data() + head, sizeof(last));
	return memory && memory->write(bus, std::as_bytes(entry).first(head)) &&
	       memory->store(bus + head, last);
}

} // namespace weft::mlx5
