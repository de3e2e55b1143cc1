// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds receive queues without a queue pair, and the objects by which the card selects a queue for
// a datagram: transport interfaces (TIR), which compute a hash, and tables of queues (RQT), which
// the hash indexes. Objects refer to each other by number. If a number refers to no object, the
// datagram is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hw/mlx5/raw_queues.hpp>

#include "cards/hca/work_source.hpp"
#include "cards/mlx5/flow_headers.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/names.hpp"
#include "cards/mlx5/number_pool.hpp"
#include "cards/mlx5/numbered.hpp"
#include "cards/mlx5/page_list.hpp"

namespace weft::mlx5
{

using hw::mlx5::RawState;

// An RQ: a cyclic queue. The driver posts entries by a counter in guest memory.
class ReceiveQueue
{
public:
	struct Settings {
		std::uint8_t log_size = 0;
		std::uint8_t log_stride = 4;
		std::uint32_t pd = 0;
		std::uint32_t cqn = 0;
		std::uint32_t user_index = 0;
		std::uint32_t counter_set = 0;
		std::uint64_t record = 0; // bus address of the count of posted entries
	};

	ReceiveQueue(const Settings &settings, PageList pages)
	    : settings_(settings), pages_(std::move(pages))
	{
	}

	const Settings &settings() const { return settings_; }
	const PageList &pages() const { return pages_; }
	RawState state() const { return state_; }
	// Resetting the queue makes entry 0 the next one.
	void set_state(RawState state);
	std::uint16_t next() const { return next_; }
	// Takes the next entry, if it has space for @bytes. Otherwise, the entry remains posted.
	Taken take(const GuestMemory *memory, std::uint64_t bytes, ReceiveWork &work);

	static std::uint64_t bytes_of(const Settings &settings)
	{
		return std::uint64_t{1} << (settings.log_size + settings.log_stride);
	}

private:
	Settings settings_;
	PageList pages_;
	RawState state_ = RawState::reset;
	std::uint16_t next_ = 0; // free-running
};

// A TIS: identifies the queue pair whose number, path and Q_Key its send queues use.
struct SendInterface {
	std::uint32_t underlay_qpn = 0;
};

// A TIR: one receive queue, or a table of them that is indexed by a hash.
struct ReceiveInterface {
	bool indirect = false;
	std::uint32_t rqn = 0;
	std::uint32_t rqt = 0;
	HashRule rule;
};

// An RQT: a table of receive queues.
struct QueueTable {
	std::size_t most = 0;
	std::vector<std::uint32_t> queues; // not empty
};

class RawQueues
{
public:
	void reset();

	struct Choice {
		std::uint32_t rqn = 0;
		Hash hash;
	};
	// Selects the queue for a packet. Returns nothing if the interface or its table does not
	// exist.
	std::optional<Choice> choose(std::uint32_t tir, const hw::mlx5::FlowHeaders &headers) const;
	// Counts a datagram for which @queue had no entry.
	void count_drop(const ReceiveQueue &queue);

	// RQs, and send queues, which the transport sees as queue pairs, have numbers from the pool
	// of queue pairs.
	Numbered<ReceiveQueue> receive_queues;
	std::size_t send_queues = 0;
	Numbered<SendInterface> send_interfaces;
	Numbered<ReceiveInterface> receive_interfaces;
	Numbered<QueueTable> tables;
	// Datagrams without a receive request, for each set of counters.
	Numbered<std::uint32_t> counter_sets;

	NumberPool tis_numbers{limits::kFirstNumber,
			       limits::kFirstNumber + (1u << limits::kLogSendInterfaces)};
	NumberPool tir_numbers{limits::kFirstNumber,
			       limits::kFirstNumber + (1u << limits::kLogReceiveInterfaces)};
	NumberPool rqt_numbers{limits::kFirstNumber,
			       limits::kFirstNumber + (1u << limits::kLogQueueTables)};
	NumberPool counter_numbers{1, 1 + limits::kCounterSets};
};

} // namespace weft::mlx5
