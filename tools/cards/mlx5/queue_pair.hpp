// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the queue pair state that only the ConnectX-5 has: for example the location of the work
// queues, and the first flow table for received datagrams.
#pragma once

#include <cstdint>
#include <optional>

#include <hw/mlx5/queues.hpp>

#include "cards/hca/queue_pair.hpp"
#include "cards/mlx5/names.hpp"
#include "cards/mlx5/page_list.hpp"

namespace weft::mlx5
{

using hw::mlx5::QpService;

struct QueuePair final : hca::QueuePair {
	QpService kind = QpService::rc;
	std::uint32_t uar_page = 0;
	std::uint32_t user_index = hw::mlx5::QpContext::no_user_index;
	bool block_loopback = false;
	bool ip_offload = false; // requests have a segment with offload flags, see WqeOffload
	// A send queue (SQ), which the transport sees as a queue pair. Commands for queue pairs
	// must not apply to it.
	bool is_send_queue = false;
	std::uint32_t tis = 0; // its transport interface; 0: none
	// The first flow table for its received datagrams, if it is steered; 0: they are dropped.
	std::uint32_t root_table = 0;
	std::uint64_t record = 0; // bus address of two counters: posted receives and sends
	// The count of posted sends in the record when the card last polled it.
	std::optional<std::uint32_t> polled_sends;

	// The receive queue is at the start of the buffer, the send queue behind it.
	PageList buffer;
	bool has_send_queue = true;
	std::uint8_t log_send_blocks = 0; // of 64 bytes
	std::uint8_t log_receive_size = 0;
	std::uint8_t log_receive_stride = 4;

	std::uint32_t send_blocks() const { return std::uint32_t{1} << log_send_blocks; }
	std::uint32_t receive_size() const { return std::uint32_t{1} << log_receive_size; }
	std::uint32_t receive_stride() const { return std::uint32_t{1} << log_receive_stride; }
	std::uint64_t send_offset() const
	{
		return has_receive_queue ? std::uint64_t{receive_size()} << log_receive_stride : 0;
	}
	std::uint64_t buffer_bytes() const
	{
		return send_offset() +
		       (has_send_queue ? std::uint64_t{send_blocks()} * hw::mlx5::send_block : 0);
	}
};

} // namespace weft::mlx5
