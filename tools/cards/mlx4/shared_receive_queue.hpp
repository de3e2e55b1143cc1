// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a shared receive queue: a list of WQEs that the driver links and the card consumes.
#pragma once

#include <cstdint>
#include <optional>

#include <hw/mlx4/contexts.hpp>

#include "cards/mlx4/names.hpp"
#include "cards/hca/linked_receives.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mlx4
{

class SharedReceiveQueue final : public hca::LinkedReceives<SharedReceiveQueue>
{
public:
	// @faults are the card's simulated faults, or null.
	SharedReceiveQueue(MemoryTable &memory, EventQueues &events, Faults *faults,
			   std::uint32_t which, const hw::mlx4::SrqContext &context);

	const QueueBuffer &buffer() const { return buffer_; }
	// Command.
	hw::mlx4::SrqContext context() const;

private:
	friend hca::LinkedReceives<SharedReceiveQueue>;
	std::optional<std::uint32_t> posted() const;
	std::optional<std::uint32_t> read_link(std::uint16_t index);
	void report_limit() { events_.raise(EventType::srq_limit, number()); }
	void report_broken_list() { events_.raise(EventType::srq_catastrophic, number()); }

	MemoryTable &memory_;
	EventQueues &events_;
	Faults *faults_;
	QueueBuffer buffer_;
	std::uint64_t doorbell_record_;
};

} // namespace weft::mlx4
