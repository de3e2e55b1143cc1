// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the control plane of the ConnectX-5 for the transport engine (hca::Context), and holds
// the tables that it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cards/hca/context.hpp"
#include "cards/mlx5/completion_queue.hpp"
#include "cards/mlx5/completion_writer.hpp"
#include "cards/mlx5/groups.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/memory_keys.hpp"
#include "cards/mlx5/queue_pair.hpp"
#include "cards/mlx5/raw_queues.hpp"
#include "cards/mlx5/shared_receive_queue.hpp"
#include "cards/mlx5/steering.hpp"
#include "cards/mlx5/work_queues.hpp"

namespace weft::mlx5
{

struct CardContext final : hca::Context {
	// Parts that the card creates first; they outlive this.
	struct Parts {
		std::string name;
		Loop &loop;
		MemoryKeys &memory;
		EventQueues &events;
		HeldCompletions &held_completions;
		MulticastGroups &groups;
		RawQueues &raw;
		FlowTables &flows;
		ManagementAgent &management;
		Diagnostics &diagnostics;
		std::vector<std::unique_ptr<CardPort>> &ports;
	};

	explicit CardContext(const Parts &parts)
	    : hca::Context{parts.name,        parts.loop,        work_queues,
			   completion_writer, parts.memory,      parts.groups,
			   parts.management,  parts.diagnostics, parts.ports},
	      memory(parts.memory), events(parts.events), held_completions(parts.held_completions),
	      multicast(parts.groups), raw(parts.raw), flows(parts.flows), work_queues(*this),
	      completion_writer(*this)
	{
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

	MemoryKeys &memory;
	EventQueues &events;
	HeldCompletions &held_completions;
	MulticastGroups &multicast;
	RawQueues &raw;
	FlowTables &flows;
	SparseTable<CompletionQueue> completion_queues{0};
	SparseTable<SharedReceiveQueue> shared_receive_queues{0};
	WorkQueues work_queues;
	CompletionWriter completion_writer;
};

} // namespace weft::mlx5
