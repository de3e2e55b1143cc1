// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the control plane of the InfiniHost III for the transport engine (hca::Context), and
// holds its tables.
#pragma once

#include <cstdint>

#include "cards/mellanox_icm/card_context.hpp"
#include "cards/mthca/completion_queue.hpp"
#include "cards/mthca/completion_writer.hpp"
#include "cards/mthca/limits.hpp"
#include "cards/mthca/management.hpp"
#include "cards/mthca/queue_pair.hpp"
#include "cards/mthca/shared_receive_queue.hpp"
#include "cards/mthca/work_queues.hpp"

namespace weft::mthca
{

struct CardContext final : mellanox_icm::FamilyContext {
	explicit CardContext(const Parts &parts)
	    : FamilyContext(parts, work_queues, completion_writer, management_choice),
	      work_queues(*this), completion_writer(*this),
	      management_choice(parts.management, *this, parts.trusted)
	{
	}

	// Look an object up by number, with one table access. Return null if it does not exist.
	QueuePair *queue_pair(std::uint32_t qpn) const
	{
		return static_cast<QueuePair *>(hca::Context::queue_pair(qpn));
	}
	CompletionQueue *completion_queue(std::uint32_t cqn) const
	{
		CompletionQueue *const queue = completion_queues.find(cqn);
		return queue && queue->number() == cqn ? queue : nullptr;
	}
	SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const
	{
		return srqn < shared_receive_queues.size() ? shared_receive_queues.find(srqn)
							   : nullptr;
	}
	// Returns the location of a doorbell record of a user access region. A program can specify
	// any index. A record beyond the region's pages does not exist, or belongs to another
	// region. In the second case, the card only reads a counter from it.
	RecordPlace record(std::uint32_t uar_page, std::uint32_t index) const
	{
		const std::uint64_t entries = std::uint64_t{1} << (log_uarc_size - 3);
		return {uarc_base + (std::uint64_t{uar_page} << log_uarc_size) +
				8 * (index & (entries - 1)),
			true};
	}

	SparseTable<CompletionQueue> completion_queues{0};
	SparseTable<SharedReceiveQueue> shared_receive_queues{0};
	WorkQueues work_queues;
	CompletionWriter completion_writer;
	Management management_choice;
	// The contexts of user access regions, which INIT_HCA sets. They are not used before.
	std::uint64_t uarc_base = 0;
	unsigned log_uarc_size = 12;
};

} // namespace weft::mthca
