// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the queue pair state that only the ConnectX-2 has: the location of its work queues.
#pragma once

#include <cstdint>

#include "cards/mlx4/names.hpp"
#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/hca/queue_pair.hpp"

namespace weft::mlx4
{

// WorkQueue - the location of the send or receive queue in the QP's buffer.
struct WorkQueue {
	std::uint64_t offset = 0; // from the start of the buffer, in bytes
	std::uint8_t log_size = 0;
	std::uint8_t log_stride = 4;
	bool present = false;

	std::uint32_t size() const { return std::uint32_t{1} << log_size; }
	std::uint32_t stride() const { return std::uint32_t{1} << log_stride; }
	// Returns the offset of the WQE with free-running index @index.
	std::uint64_t wqe_offset(std::uint32_t index) const
	{
		return offset + (std::uint64_t{index & (size() - 1)} << log_stride);
	}
};

struct QueuePair final : hca::QueuePair {
	std::uint32_t uar_page = 0;
	QueueBuffer buffer;
	WorkQueue send_queue;
	WorkQueue receive_queue;
	std::uint64_t doorbell_record = 0; // bus address of the receive queue's doorbell record
};

} // namespace weft::mlx4
