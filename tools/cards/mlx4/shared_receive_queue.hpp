// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A shared receive queue: a list of WQEs that the driver links and the card consumes.
#pragma once

#include <cstdint>
#include <optional>

#include <hw/mlx4/contexts.hpp>

#include "cards/mlx4/names.hpp"
#include "cards/hca/work_source.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mlx4
{

class SharedReceiveQueue final : public hca::SharedReceiveQueue
{
public:
	// @faults, if any: those of the card.
	SharedReceiveQueue(MemoryTable &memory, EventQueues &events, Faults *faults,
			   std::uint32_t which, const hw::mlx4::SrqContext &context);

	bool failed() const { return failed_; }

	const QueueBuffer &buffer() const { return buffer_; }
	std::uint32_t size() const { return std::uint32_t{1} << log_size_; }
	std::uint32_t stride() const { return std::uint32_t{1} << log_stride_; }
	// Offset of a WQE in the buffer. Its first 16 bytes are the link; data segments follow.
	std::uint64_t wqe_offset(std::uint16_t index) const
	{
		return std::uint64_t{index & (size() - 1)} << log_stride_;
	}

	// How many WQEs are posted and not taken, read from the doorbell record.
	std::uint32_t available() const;
	// Takes the next WQE and returns its index, which is also what the completion names;
	// nothing if none is posted. Raises the limit event when due, and the catastrophic event
	// if the list cannot be read.
	std::optional<std::uint16_t> take();

	// Commands.
	void arm_limit(std::uint16_t limit);
	hw::mlx4::SrqContext context() const;

private:
	void check_limit();

	MemoryTable &memory_;
	EventQueues &events_;
	Faults *faults_;
	QueueBuffer buffer_;
	std::uint8_t log_size_;
	std::uint8_t log_stride_;
	std::uint64_t doorbell_record_;
	std::uint16_t limit_ = 0;
	std::uint16_t head_ = 0;
	std::uint16_t taken_ = 0;
	bool failed_ = false;
};

} // namespace weft::mlx4
