// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "queue_layout.hpp"

namespace amso1100
{
namespace
{

/* Indices have 16 bits, and a pool in host memory is one block. */
constexpr u32 max_entries = 4096, max_slot_bytes = 1024;

bool is_valid(const FixedQueue &queue, u32 least_bytes, u64 window_bytes)
{
	return queue.entries >= 2 && queue.entries <= max_entries &&
	       queue.slot_bytes >= least_bytes && queue.slot_bytes <= max_slot_bytes &&
	       queue.slot_bytes % 8 == 0 && fits(window_bytes, queue.shared, wire::shared::size);
}

} // namespace

kern::Result<QueueLayout> read_queue_layout(const kern::Mmio &page, u64 window_bytes)
{
	const auto read = [&](size_t entries, size_t bytes, size_t pool, size_t shared) {
		return FixedQueue{page.read_be32(entries), page.read_be32(bytes),
				  page.read_be32(pool), page.read_be32(shared)};
	};
	namespace at = wire::page;
	const QueueLayout layout = {
		.requests = read(at::q0_q_size, at::q0_msg_size, at::q0_pool_start, at::q0_shared),
		.replies = read(at::q1_q_size, at::q1_msg_size, at::q1_pool_start, at::q1_shared),
		.events = read(at::q2_q_size, at::q2_msg_size, at::q2_pool_start, at::q2_shared),
	};
	if (!is_valid(layout.requests, wire::message_size, window_bytes) ||
	    !is_valid(layout.replies, wire::rnic_query::reply_size, window_bytes) ||
	    !is_valid(layout.events, wire::header::size + 40, window_bytes) ||
	    !fits(window_bytes, layout.requests.pool,
		  u64{layout.requests.entries} * layout.requests.slot_bytes))
		return kern::Error{-EPROTO};
	return layout;
}

} // namespace amso1100
