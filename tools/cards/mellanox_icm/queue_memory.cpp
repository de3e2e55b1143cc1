// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/queue_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::mellanox_icm
{

bool store_entry(const MemoryTable &memory, const QueueBuffer &buffer, std::uint32_t slot,
		 std::span<const std::uint8_t, kEntrySize> entry)
{
	const auto bus = memory.bus_address(buffer, std::uint64_t{slot} * kEntrySize,
					    KeyAccess::local_write);
	if (!bus)
		return false;
	// The last word contains the owner bit. A release store makes it visible after the other
	// words.
	constexpr std::size_t head = kEntrySize - sizeof(std::uint64_t);
	std::uint64_t last;
	std::memcpy(&last, entry.data() + head, sizeof(last));
	GuestMemory &guest = *memory.memory();
	return guest.write(*bus, std::as_bytes(entry).first(head)) &&
	       guest.store(*bus + head, last);
}

bool fill_hardware_owned(const MemoryTable &memory, const QueueBuffer &buffer, std::uint32_t first,
			 std::uint32_t count, unsigned log_size)
{
	constexpr std::uint8_t filler = 0xcc;
	constexpr std::uint8_t owner = 0x80;
	constexpr std::uint32_t piece_entries = 128;
	std::array<std::uint8_t, piece_entries * kEntrySize> piece;
	const std::uint32_t size = std::uint32_t{1} << log_size;

	for (std::uint32_t index = first; count;) {
		// Write within one lap of the ring, so that all entries get the same owner bit.
		const std::uint32_t slot = index & (size - 1);
		const std::uint32_t run = std::min({count, piece_entries, size - slot});
		const bool lap = index >> log_size & 1;
		piece.fill(filler);
		for (std::uint32_t i = 0; i < run; ++i) {
			std::uint8_t &last = piece[(i + 1) * kEntrySize - 1];
			last = lap ? last & ~owner : last | owner;
		}
		if (!memory.write(buffer, std::uint64_t{slot} * kEntrySize,
				  std::as_bytes(std::span(piece)).first(run * kEntrySize)))
			return false;
		index += run;
		count -= run;
	}
	return true;
}

} // namespace weft::mellanox_icm
