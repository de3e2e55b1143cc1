// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the control plane of the ConnectX-2 for the transport engine (hca::Context), and holds
// its tables.
#pragma once

#include <cstdint>

#include "cards/mellanox_icm/card_context.hpp"
#include "cards/mlx4/completion_queue.hpp"
#include "cards/mlx4/queue_pair.hpp"
#include "cards/mlx4/shared_receive_queue.hpp"
#include "cards/mlx4/transport/completion_writer.hpp"
#include "cards/mlx4/transport/work_queues.hpp"

namespace weft::mlx4
{

struct CardContext final : mellanox_icm::FamilyContext {
	explicit CardContext(const Parts &parts, unsigned log_objects = 0)
	    : FamilyContext(parts, work_queues, completion_writer, parts.management),
	      completion_queues(log_objects), shared_receive_queues(log_objects),
	      work_queues(*this), completion_writer(*this)
	{
		queue_pairs.resize(log_objects);
	}

	// Look an object up by number, with one table access. Return null if it does not exist.
	QueuePair *queue_pair(std::uint32_t qpn) const
	{
		return static_cast<QueuePair *>(hca::Context::queue_pair(qpn));
	}
	CompletionQueue *completion_queue(std::uint32_t cqn) const
	{
		return cqn < completion_queues.size() ? completion_queues.find(cqn) : nullptr;
	}
	SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const
	{
		return srqn < shared_receive_queues.size() ? shared_receive_queues.find(srqn)
							   : nullptr;
	}

	SparseTable<CompletionQueue> completion_queues;
	SparseTable<SharedReceiveQueue> shared_receive_queues;
	transport::WorkQueues work_queues;
	transport::CompletionWriter completion_writer;
};

} // namespace weft::mlx4
