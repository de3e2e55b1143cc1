// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the queue pair state that only the InfiniHost III has: the location of the work queues,
// and the index up to which the driver has posted sends.
#pragma once

#include <cstdint>

#include "cards/hca/queue_pair.hpp"
#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/memory_table.hpp"

namespace weft::mthca
{

// WorkQueue - the WQEs of one direction, in the memory of a key.
struct WorkQueue {
	std::uint32_t base = 0; // low dword of the address of the first WQE
	std::uint8_t log_size = 0;
	std::uint8_t log_stride = 6;
	std::uint32_t record = 0; // index of the doorbell record

	std::uint32_t size() const { return std::uint32_t{1} << log_size; }
	std::uint32_t stride() const { return std::uint32_t{1} << log_stride; }
	// Returns the offset of the WQE with free-running index @index from the first WQE.
	std::uint64_t offset(std::uint32_t index) const
	{
		return std::uint64_t{index & (size() - 1)} << log_stride;
	}
	// Returns the address of a WQE as completions report it.
	std::uint32_t wqe_address(std::uint32_t index) const
	{
		return static_cast<std::uint32_t>(base + offset(index));
	}
};

struct QueuePair final : hca::QueuePair {
	std::uint32_t uar_page = 0;
	std::uint32_t wqe_base_high = 0;
	std::uint32_t wqe_lkey = 0;
	bool signal_all = false;
	WorkQueue send_queue;
	WorkQueue receive_queue;
	// Free-running index after the last WQE for which a doorbell was rung.
	std::uint16_t send_producer = 0;

	// Returns a queue's memory, as its key sees it.
	QueueBuffer buffer(const WorkQueue &queue) const
	{
		return QueueBuffer::keyed(wqe_lkey, pd,
					  std::uint64_t{wqe_base_high} << 32 | queue.base);
	}
};

// All queue pairs of this card's engine are of this type.
inline const QueuePair &own(const hca::QueuePair &qp)
{
	return static_cast<const QueuePair &>(qp);
}

} // namespace weft::mthca
