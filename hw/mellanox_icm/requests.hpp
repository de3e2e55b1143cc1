// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts work requests to those segments of descriptors whose format is the same for mlx4 and
// mthca. This code is on the fast path.
#pragma once
#include <hw/mellanox_icm/wqe.hpp>
#include <kern/abi/trace.h>
#include <rdma/ib_verbs.h>
#include "work_queue.hpp"

namespace mellanox_icm
{

/*
 * Attributes of a send request by its opcode: the card's opcode, and the segments before the data.
 * Common opcodes need no second check.
 */
class SendShapes
{
public:
	static constexpr u8 opcode_mask = 0x1f;
	/* The request has a remote address segment. */
	static constexpr u8 remote = 1u << 5;
	/*
	 * The request has no additional segment, but the last word of the first segment is
	 * immediate data.
	 */
	static constexpr u8 immediate = 1u << 6;
	/* The request needs other segments, or its opcode is unknown. */
	static constexpr u8 other = 1u << 7;

	u8 of[IB_WR_REG_MR + 1];

	constexpr SendShapes() : of{}
	{
		using hw::mellanox_icm::WqeOpcode;
		for (u8 &shape : of)
			shape = other;
		const auto set = [this](ib_wr_opcode from, WqeOpcode to, u8 shape = other) {
			of[from] = static_cast<u8>(static_cast<u8>(to) | shape);
		};
		set(IB_WR_SEND, WqeOpcode::send, 0);
		set(IB_WR_SEND_WITH_IMM, WqeOpcode::send_imm, immediate);
		set(IB_WR_RDMA_WRITE, WqeOpcode::rdma_write, remote);
		set(IB_WR_RDMA_WRITE_WITH_IMM, WqeOpcode::rdma_write_imm, remote | immediate);
		set(IB_WR_RDMA_READ, WqeOpcode::rdma_read, remote);
		set(IB_WR_ATOMIC_CMP_AND_SWP, WqeOpcode::compare_swap);
		set(IB_WR_ATOMIC_FETCH_AND_ADD, WqeOpcode::fetch_add);
		set(IB_WR_LOCAL_INV, WqeOpcode::local_invalidate);
		set(IB_WR_BIND_MW, WqeOpcode::bind_window);
		set(IB_WR_SEND_WITH_INV, WqeOpcode::send_invalidate);
		set(IB_WR_LSO, WqeOpcode::lso);
		set(IB_WR_MASKED_ATOMIC_CMP_AND_SWP, WqeOpcode::masked_compare_swap);
		set(IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, WqeOpcode::masked_fetch_add);
		set(IB_WR_REG_MR, WqeOpcode::fast_register);
	}
};
inline constexpr SendShapes send_shapes;

/*
 * A request's flags word in memory format, indexed by its ib_send_flags. Card: the bits of the
 * card's word.
 */
template<class Card>
class SendFlagWords
{
public:
	u32 of[32];

	constexpr SendFlagWords() : of{}
	{
		for (u32 flags = 0; flags < 32; flags++) {
			u32 value = Card::always;
			if (flags & IB_SEND_SIGNALED)
				value |= Card::signaled;
			if (flags & IB_SEND_SOLICITED)
				value |= Card::solicited;
			if (flags & IB_SEND_IP_CSUM)
				value |= Card::checksums;
			of[flags] = __builtin_bswap32(value);
		}
	}
};

/*
 * Returns true if the queue may accept the request. send_shapes must have an entry for the opcode.
 */
[[gnu::always_inline]] inline bool fits(const SendQueue &sq, const ib_send_wr &wr)
{
	return static_cast<u32>(wr.opcode) <= IB_WR_REG_MR &&
	       static_cast<u32>(wr.num_sge) <= sq.max_sge;
}

/* These functions write a segment, and return the address of the next. */
inline u8 *put_remote_address(u8 *at, u64 address, u32 rkey)
{
	auto *segment = reinterpret_cast<hw::mellanox_icm::WqeRemoteAddress *>(at);
	segment->address = address;
	segment->rkey = rkey;
	segment->reserved = 0;
	return at + sizeof(*segment);
}

inline u8 *put_atomic(u8 *at, const ib_atomic_wr &wr)
{
	at = put_remote_address(at, wr.remote_addr, wr.rkey);
	auto *segment = reinterpret_cast<hw::mellanox_icm::WqeAtomic *>(at);
	const bool swap = wr.wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP;
	segment->swap_or_add = swap ? wr.swap : wr.compare_add;
	segment->compare = swap ? wr.compare_add : 0;
	return at + sizeof(*segment);
}

inline u8 *put_data(u8 *at, const ib_sge &sge)
{
	auto *segment = reinterpret_cast<hw::mellanox_icm::WqeData *>(at);
	segment->byte_count = sge.length;
	segment->lkey = sge.lkey;
	segment->address = sge.addr;
	return at + sizeof(*segment);
}

inline u8 *put_data(u8 *at, const ib_sge *sge, int count)
{
	for (; count > 0; count--, sge++)
		at = put_data(at, *sge);
	return at;
}

/*
 * Writes the data segments of a receive request with at most `max_sge` segments, and the end marker
 * of a shorter list. Returns the total length.
 */
[[gnu::always_inline]] inline u32 put_receive(u8 *at, const ib_recv_wr &wr, u32 max_sge)
{
	u32 length = 0;
	const ib_sge *sge = wr.sg_list;
	for (int left = wr.num_sge; left > 0; left--, sge++) {
		length += sge->length;
		at = put_data(at, *sge);
	}
	if (static_cast<u32>(wr.num_sge) < max_sge)
		put_data(at, {.addr = 0,
			      .length = 0,
			      .lkey = hw::mellanox_icm::WqeData::terminator_lkey});
	return length;
}

/* Implements post_recv for descriptors whose segments begin after `head_bytes`. Context: any. */
template<u32 head_bytes, class Hca>
[[gnu::always_inline]] inline int post_receives(ReceiveQueue &rq, Hca &hca, const ib_recv_wr *wr,
						const ib_recv_wr **bad)
{
	kern::Guard guard(rq.lock);
	const u32 first = rq.head;
	u32 head = first;
	const u32 tail = __atomic_load_n(&rq.tail, __ATOMIC_ACQUIRE);
	int error = 0;

	for (; wr; wr = wr->next) {
		if (head - tail > rq.mask || !rq.entries) [[unlikely]] {
			error = -ENOMEM;
			break;
		}
		if (static_cast<u32>(wr->num_sge) > rq.max_sge) [[unlikely]] {
			error = -EINVAL;
			break;
		}
		const u32 length =
			put_receive(rq.entries + ((head & rq.mask) << rq.log_stride) + head_bytes,
				    *wr, rq.max_sge);
		rq.posted[head & rq.mask] = {wr->wr_id, length};
		head++;
	}
	if (head != first) [[likely]] {
		kern::write_once(rq.head, head);
		kern::dma_wmb();
		__atomic_store_n(rq.record, __builtin_bswap32(head & 0xffff), __ATOMIC_RELAXED);
		if (hca.failed()) [[unlikely]]
			hca.announce_failure();
	}
	if (error) [[unlikely]]
		*bad = wr;
	return error;
}

/* Called after a doorbell if the card has failed or tracing is enabled. */
template<class Hca>
[[gnu::noinline, gnu::cold]] void post_slow_path(Hca &hca, const ib_qp &qp)
{
	if (hca.failed())
		hca.announce_failure();
	if (hca.commands().watched())
		kern_trace_doorbell(qp.device->name, qp.qp_num);
}

} // namespace mellanox_icm
