// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a completion queue: a ring of entries in the guest's memory, and the indices that the
// driver writes to the card's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hw/amso1100/work.hpp>

#include "cards/amso1100/message_queues.hpp"

namespace weft::amso1100
{

class CompletionQueue
{
public:
	static constexpr unsigned kMostDepth = 4096 + 1;
	// kShared is the offset of the first queue's shared structure from the register page, and
	// kFirstIndex the index of the first queue in hints.
	static constexpr std::uint64_t kShared = 0x10000;
	static constexpr std::size_t kMost = 1024;
	static constexpr std::uint32_t kFirstIndex = hw::amso1100::least_queue_index;

	using Entry = std::array<std::byte, hw::amso1100::completion::size>;
	struct Config {
		std::uint64_t producer_word, pool, user_context;
		std::uint32_t slot_size, depth;
	};
	enum class Added {
		yes,
		full,
		out_of_reach, // an address is not mapped, so no more entries are written
	};

	CompletionQueue(std::uint32_t handle, std::uint16_t place, PciHost &host,
			MessageQueues &queues, const Config &config);

	const std::uint32_t handle;
	const Config config;
	std::uint32_t index() const { return kFirstIndex + place_; }
	std::uint64_t shared_offset() const
	{
		return kShared + std::uint64_t{place_} * hw::amso1100::shared::size;
	}

	// Access the shared structure at @offset. The access must be within the structure.
	void read(std::size_t offset, std::span<std::byte> data) const;
	void write(std::size_t offset, std::span<const std::byte> data);

	// Adds an entry. If the host has armed the queue, it is notified once. Entries that were
	// added before do not notify it.
	Added add(const Entry &entry, bool solicited);

	unsigned users = 0;           // number of queues that use this CQ
	std::uint64_t last_event = 0; // the last event that refers to this CQ
	bool failure_reported = false;

private:
	const std::uint16_t place_;
	PciHost &host_;
	MessageQueues &queues_;
	std::array<std::byte, hw::amso1100::shared::size> shared_{};
	std::uint32_t produced_ = 0;
	bool out_of_reach_ = false;
};

} // namespace weft::amso1100
