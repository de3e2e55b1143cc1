// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the sizes of a QP's queues, and their layout in its buffer.
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>
#include "capabilities.hpp"
#include "user_abi.hpp"

namespace mlx4
{

struct QpGeometry {
	u32 log_sq_size, log_sq_stride;
	u32 log_rq_size, log_rq_stride;
	bool has_sq, has_rq;
	u32 sq_offset, rq_offset;
	u32 bytes;
	u32 max_send_sge, max_recv_sge, max_inline;
};

/*
 * Space for the header of a large send in a descriptor: encapsulation, IPv4 or IPv6, TCP with
 * options.
 */
inline constexpr u32 max_lso_header = 124;

/*
 * Returns the smallest queues, with sizes that are powers of two, for the requested numbers.
 * Errors: EINVAL if they exceed the limits of the card's descriptors or queues. Context: any.
 */
kern::Result<QpGeometry> plan_queues(const Capabilities &capabilities, const ib_qp_init_attr &attr);

/*
 * Returns a program's queues. The size of the receive queue is computed as in the user library; the
 * command specifies the send queue. Errors: EINVAL for sizes that the card does not support, or for
 * a receive queue of a QP that has none. Context: any.
 */
kern::Result<QpGeometry> plan_user_queues(const Capabilities &capabilities,
					  const ib_qp_init_attr &attr,
					  const user_abi::CreateQp &command);

/*
 * Returns the size of inline data in a descriptor that starts `offset` bytes into it. A segment
 * never crosses a multiple of 64 bytes.
 */
constexpr u32 inline_bytes(u32 offset, u32 length)
{
	u32 at = offset;
	while (length) {
		const u32 space = 64 - at % 64 - 4;
		const u32 part = length < space ? length : space;
		at = (at + 4 + part + 15) & ~15u;
		length -= part;
	}
	return at - offset;
}

} // namespace mlx4
