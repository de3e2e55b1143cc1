// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Entries of event and completion queues in guest memory. Both have 32 bytes and an owner bit in
// the last one: the entry with free-running index n is the driver's when the bit equals bit
// log2(size) of n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mellanox/memory_table.hpp"

namespace weft::mellanox
{

constexpr std::size_t kEntrySize = 32;
// Producer and consumer indexes.
constexpr std::uint32_t kIndexMask = 0xffffff;

// Writes @entry into slot @slot; its owner byte becomes visible last. False if out of reach.
bool store_entry(const MemoryTable &memory, const QueueBuffer &buffer, std::uint32_t slot,
		 std::span<const std::uint8_t, kEntrySize> entry);

// Marks the slots of the indexes @first to @first + @count - 1 as the card's, in a queue of
// 2^@log_size entries, and touches nothing beyond them.
bool fill_hardware_owned(const MemoryTable &memory, const QueueBuffer &buffer, std::uint32_t first,
			 std::uint32_t count, unsigned log_size);

} // namespace weft::mellanox
