// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and writes the entries of event and completion queues in guest memory. EQEs and CQEs have
// 32 bytes, with the owner bit in the last byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cards/mellanox_icm/memory_table.hpp"

namespace weft::mellanox_icm
{

constexpr std::size_t kEntrySize = 32;
using QueueEntry = std::array<std::uint8_t, kEntrySize>;
// Mask of producer and consumer indexes.
constexpr std::uint32_t kIndexMask = 0xffffff;

// OwnerRule - the condition under which the entry with free-running index n belongs to the driver.
enum class OwnerRule : std::uint8_t {
	lap,   // the bit equals bit log2(size) of n
	plain, // the bit is clear; software sets it again
};

// Returns the owner bit of an entry that is passed to the driver.
constexpr bool owner_bit(OwnerRule rule, std::uint32_t index, unsigned log_size)
{
	return rule == OwnerRule::lap && (index >> log_size & 1);
}

// Writes @entry to slot @slot. Its owner byte becomes visible last. Returns false if the slot is
// not accessible.
bool store_entry(const MemoryTable &memory, const QueueBuffer &buffer, std::uint32_t slot,
		 std::span<const std::uint8_t, kEntrySize> entry);

// Marks the slots of the indexes @first to @first + @count - 1 as owned by the card, by
// OwnerRule::lap, in a queue of 2^@log_size entries. Writes only to these slots.
bool fill_hardware_owned(const MemoryTable &memory, const QueueBuffer &buffer, std::uint32_t first,
			 std::uint32_t count, unsigned log_size);

} // namespace weft::mellanox_icm
