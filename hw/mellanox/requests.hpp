// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Requests to descriptors: what all cards of the family read in the same form. The fast path.
#pragma once
#include <hw/mellanox/wqe.hpp>
#include <kern/abi/trace.h>
#include <rdma/ib_verbs.h>
#include "work_queue.hpp"

namespace mellanox
{

/* Each writes a segment and returns the place of the next. */
inline u8 *put_remote_address(u8 *at, u64 address, u32 rkey)
{
	auto *segment = reinterpret_cast<hw::mellanox::WqeRemoteAddress *>(at);
	segment->address = address;
	segment->rkey = rkey;
	segment->reserved = 0;
	return at + sizeof(*segment);
}

inline u8 *put_data(u8 *at, const ib_sge &sge)
{
	auto *segment = reinterpret_cast<hw::mellanox::WqeData *>(at);
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
 * The memory of a receive of at most `max_sge` pieces, and the end of the list where it is shorter:
 * its length.
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
		put_data(at,
			 {.addr = 0, .length = 0, .lkey = hw::mellanox::WqeData::terminator_lkey});
	return length;
}

/* post_recv, of descriptors whose segments begin behind `head_bytes`. Any context. */
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

/* A doorbell has been rung, and the card has failed, or somebody watches. */
template<class Hca>
[[gnu::noinline, gnu::cold]] void attend(Hca &hca, const ib_qp &qp)
{
	if (hca.failed())
		hca.announce_failure();
	if (hca.commands().watched())
		kern_trace_doorbell(qp.device->name, qp.qp_num);
}

} // namespace mellanox
