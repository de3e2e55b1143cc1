// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the sizes of a QP's queues, and their layout in its buffer.
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>
#include <hw/mthca/wqe.hpp>
#include "capabilities.hpp"

namespace mthca
{

struct QpGeometry {
	u32 log_sq_size, log_sq_stride;
	u32 log_rq_size, log_rq_stride;
	bool has_rq;
	u32 sq_offset; // the send queue is behind the receive queue
	u32 bytes;
	u32 max_send_sge, max_recv_sge, max_inline;
};

/* Maximum size of the buffer, which is one block of memory for both queues. */
inline constexpr u32 max_queue_bytes = 4 << 20;

/*
 * Returns the smallest queues, with sizes that are powers of two, for the requested numbers.
 * Errors: EINVAL if they exceed the limits of the card's descriptors or queues. Context: any.
 */
kern::Result<QpGeometry> plan_queues(const Capabilities &capabilities, const ib_qp_init_attr &attr);

/*
 * Returns the queues with the layout of the user library, which depends only on the requested
 * numbers. attr: RC, UC or UD. Space for a receive queue is included even if an SRQ replaces it.
 * Errors, context: as for plan_queues().
 */
kern::Result<QpGeometry> plan_user_queues(const Capabilities &capabilities,
					  const ib_qp_init_attr &attr);

/* Returns the size of inline data in a descriptor, including its length field and padding. */
constexpr u32 inline_bytes(u32 length)
{
	return length ? (sizeof(wire::WqeInline) + length + 15) & ~15u : 0;
}

} // namespace mthca
