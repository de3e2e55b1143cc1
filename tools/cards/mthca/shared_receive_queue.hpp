// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a shared receive queue: a list of WQEs that software links by address. The card
// consumes them in the order of the links.
#pragma once

#include <cstdint>
#include <optional>

#include <hw/mthca/contexts.hpp>

#include "cards/hca/linked_receives.hpp"
#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mellanox_icm/memory_table.hpp"

namespace weft::mthca
{

class SharedReceiveQueue final : public hca::LinkedReceives<SharedReceiveQueue>
{
public:
	// @record is the location of the doorbell record with the number of posted WQEs. @faults
	// must outlive the queue.
	SharedReceiveQueue(MemoryTable &memory, EventQueues &events, std::uint32_t which,
			   const hw::mthca::SrqContext &context, RecordPlace record,
			   Faults &faults);

	const QueueBuffer &buffer() const { return buffer_; }
	// Returns the address of a WQE as completions report it.
	std::uint32_t wqe_address(std::uint16_t index) const
	{
		return static_cast<std::uint32_t>(buffer_.start + wqe_offset(index));
	}
	hw::mthca::SrqContext context() const;

private:
	friend hca::LinkedReceives<SharedReceiveQueue>;
	std::optional<std::uint32_t> posted() const { return memory_.load_record(record_); }
	std::optional<std::uint32_t> read_link(std::uint16_t index);
	void report_limit() { events_.raise(EventType::srq_limit, number()); }
	void report_broken_list() { events_.raise(EventType::srq_catastrophic, number()); }

	MemoryTable &memory_;
	EventQueues &events_;
	const hw::mthca::SrqContext given_;
	const QueueBuffer buffer_;
	const RecordPlace record_;
	Faults &faults_;
};

} // namespace weft::mthca
