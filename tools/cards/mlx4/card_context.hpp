// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The control plane of this card as its transport engine sees it (hca::Context), and the tables
// behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cards/mlx4/completion_queue.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/multicast_table.hpp"
#include "cards/mellanox_icm/special_qps.hpp"
#include "cards/mlx4/queue_pair.hpp"
#include "cards/mlx4/shared_receive_queue.hpp"
#include "cards/mlx4/transport/completion_writer.hpp"
#include "cards/mlx4/transport/work_queues.hpp"
#include "cards/hca/context.hpp"

namespace weft::mlx4
{

struct CardContext final : hca::Context {
	// Parts that the card creates first; they outlive this.
	struct Parts {
		std::string name;
		Loop &loop;
		MemoryTable &memory;
		EventQueues &events;
		MulticastTable &multicast;
		ManagementAgent &management;
		Diagnostics &diagnostics;
		std::vector<std::unique_ptr<CardPort>> &ports;
	};

	explicit CardContext(const Parts &parts, unsigned log_objects = 0)
	    : hca::Context{parts.name,        parts.loop,        work_queues,
			   completion_writer, parts.memory,      parts.multicast,
			   parts.management,  parts.diagnostics, parts.ports},
	      memory(parts.memory), events(parts.events), multicast(parts.multicast),
	      completion_queues(log_objects), shared_receive_queues(log_objects),
	      work_queues(*this), completion_writer(*this)
	{
		queue_pairs.resize(log_objects);
	}

	// These look an object up by number, with one table access. They return null if it does not
	// exist.
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

	MemoryTable &memory;
	EventQueues &events;
	MulticastTable &multicast;
	mellanox_icm::SpecialQps special_qps{*this};
	SparseTable<CompletionQueue> completion_queues;
	SparseTable<SharedReceiveQueue> shared_receive_queues;
	transport::WorkQueues work_queues;
	transport::CompletionWriter completion_writer;
};

} // namespace weft::mlx4
