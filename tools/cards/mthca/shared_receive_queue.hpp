// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A shared receive queue: a list of WQEs that software links by address. The card consumes them in
// the order of the links.
#pragma once

#include <cstdint>
#include <optional>

#include <hw/mthca/contexts.hpp>

#include "cards/hca/work_source.hpp"
#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mellanox_icm/memory_table.hpp"

namespace weft::mthca
{

class SharedReceiveQueue final : public hca::SharedReceiveQueue
{
public:
	// @record: its count of posted WQEs. @faults outlives it.
	SharedReceiveQueue(MemoryTable &memory, EventQueues &events, std::uint32_t which,
			   const hw::mthca::SrqContext &context, RecordPlace record,
			   Faults &faults);

	bool failed() const { return failed_; }
	std::uint32_t size() const { return std::uint32_t{1} << log_size_; }
	std::uint32_t stride() const { return std::uint32_t{1} << log_stride_; }
	const QueueBuffer &buffer() const { return buffer_; }
	std::uint64_t wqe_offset(std::uint16_t index) const
	{
		return std::uint64_t{index & (size() - 1)} << log_stride_;
	}
	// Address of a WQE as completions report it.
	std::uint32_t wqe_address(std::uint16_t index) const
	{
		return static_cast<std::uint32_t>(buffer_.start + wqe_offset(index));
	}

	// How many WQEs are posted and not taken, read from the doorbell record.
	std::uint32_t available() const;
	// Takes the next WQE: its place in the buffer; nothing if none is posted. Raises the limit
	// event when due, and the catastrophic event if the list cannot be read.
	std::optional<std::uint16_t> take();

	void arm_limit(std::uint16_t limit);
	hw::mthca::SrqContext context() const;

private:
	void check_limit();

	MemoryTable &memory_;
	EventQueues &events_;
	const hw::mthca::SrqContext given_;
	const QueueBuffer buffer_;
	const std::uint8_t log_size_;
	const std::uint8_t log_stride_;
	const RecordPlace record_;
	Faults &faults_;
	std::uint16_t limit_ = 0;
	std::uint16_t head_ = 0; // the WQE that is taken next
	std::uint16_t taken_ = 0;
	bool failed_ = false;
};

} // namespace weft::mthca
