// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The sizes of a QP's queues, and their layout in its buffer.
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
 * Room that the header of a large send has in a descriptor: the encapsulation, IPv4 or IPv6, TCP
 * with options.
 */
inline constexpr u32 max_lso_header = 124;

/*
 * Returns the smallest queues of powers of two that hold the requested numbers. Errors: EINVAL for
 * more than the card's descriptors or queues hold. Context: any.
 */
kern::Result<QpGeometry> plan_queues(const Capabilities &capabilities, const ib_qp_init_attr &attr);

/*
 * Returns a program's queues: the receive queue as the library has computed it from the same
 * numbers, the send queue as the command specifies. Errors: EINVAL for sizes that the card does not
 * support, or sizes of a receive queue if there is none. Context: any.
 */
kern::Result<QpGeometry> plan_user_queues(const Capabilities &capabilities,
					  const ib_qp_init_attr &attr,
					  const user_abi::CreateQp &command);

/*
 * Bytes that inline data takes in a descriptor that it starts `offset` bytes into: a piece never
 * crosses a multiple of 64.
 */
constexpr u32 inline_bytes(u32 offset, u32 length)
{
	u32 at = offset;
	while (length) {
		const u32 room = 64 - at % 64 - 4;
		const u32 part = length < room ? length : room;
		at = (at + 4 + part + 15) & ~15u;
		length -= part;
	}
	return at - offset;
}

} // namespace mlx4
