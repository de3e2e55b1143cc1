// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Writes work requests to the card's queues, and converts the card's completions. */
#include "qp.hpp"

namespace amso1100
{
namespace
{

ib_wc_opcode completed_as(ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return IB_WC_RDMA_READ;
	default:
		return IB_WC_SEND;
	}
}

ib_wc_status status_of(wire::Status status)
{
	using enum wire::Status;
	switch (status) {
	case ok:
		return IB_WC_SUCCESS;
	case flushed:
		return IB_WC_WR_FLUSH_ERR;
	case bounds_violation:
		return IB_WC_LOC_PROT_ERR;
	case access_violation:
		return IB_WC_LOC_ACCESS_ERR;
	case total_length_too_big:
		return IB_WC_LOC_LEN_ERR;
	case remote_termination:
		return IB_WC_REM_OP_ERR;
	default:
		return IB_WC_GENERAL_ERR;
	}
}

} // namespace

/*
 * Writes the segments. Segments of length 0 confuse the board, so they are omitted. Returns the
 * number of segments, or -EINVAL if the total length is too large.
 */
int Qp::build_sges(const ib_sge *list, int count, u8 *slot, size_t at, u32 &total) const
{
	u64 sum = 0;
	int used = 0;
	for (int i = 0; i < count; i++) {
		if (!list[i].length)
			continue;
		u8 *const sge = slot + at + static_cast<size_t>(used++) * wire::sge::size;
		put_be(sge + wire::sge::stag, list[i].lkey);
		put_be(sge + wire::sge::length, list[i].length);
		put_be(sge + wire::sge::offset, list[i].addr);
		sum += list[i].length;
	}
	total = static_cast<u32>(sum);
	return sum == total ? used : -EINVAL;
}

int Qp::build(const ib_send_wr &wr, u8 *slot) const
{
	const bool solicited = wr.send_flags & IB_SEND_SOLICITED;
	wire::WorkId id;
	u32 total = 0;
	int sges;
	size_t bytes;

	if (wr.num_sge < 0 || static_cast<u32>(wr.num_sge) > sq_.max_sge ||
	    (wr.send_flags & ~(IB_SEND_SIGNALED | IB_SEND_SOLICITED | IB_SEND_FENCE)))
		return -EINVAL;
	switch (wr.opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_INV: {
		const bool invalidate = wr.opcode == IB_WR_SEND_WITH_INV;
		id = solicited    ? (invalidate ? wire::WorkId::send_solicited_invalidate
						: wire::WorkId::send_solicited)
		     : invalidate ? wire::WorkId::send_invalidate
				  : wire::WorkId::send;
		sges = build_sges(wr.sg_list, wr.num_sge, slot, wire::send::sges, total);
		put_be(slot + wire::send::total, total);
		put_be(slot + wire::send::remote_stag, invalidate ? wr.ex.invalidate_rkey : 0);
		bytes = wire::send::sges;
		break;
	}
	case IB_WR_RDMA_WRITE: {
		const ib_rdma_wr &write = *rdma_wr(&wr);
		id = wire::WorkId::rdma_write;
		sges = build_sges(wr.sg_list, wr.num_sge, slot, wire::rdma_write::sges, total);
		put_be(slot + wire::rdma_write::remote_offset, write.remote_addr);
		put_be(slot + wire::rdma_write::remote_stag, write.rkey);
		put_be(slot + wire::rdma_write::total, total);
		bytes = wire::rdma_write::sges;
		break;
	}
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV: {
		/*
		 * There is only one data sink, because the peer's response contains its STag (RFC
		 * 5040, 4.4).
		 */
		const ib_rdma_wr &read = *rdma_wr(&wr);
		if (wr.num_sge > 1)
			return -EINVAL;
		const ib_sge sink = wr.num_sge ? wr.sg_list[0] : ib_sge{};
		id = wr.opcode == IB_WR_RDMA_READ ? wire::WorkId::rdma_read
						  : wire::WorkId::rdma_read_invalidate;
		put_be(slot + wire::rdma_read::local_offset, sink.addr);
		put_be(slot + wire::rdma_read::remote_offset, read.remote_addr);
		put_be(slot + wire::rdma_read::local_stag, sink.lkey);
		put_be(slot + wire::rdma_read::remote_stag, read.rkey);
		put_be(slot + wire::rdma_read::length, sink.length);
		slot[wire::work::sge_count] = 1;
		sges = 0;
		bytes = wire::rdma_read::size;
		break;
	}
	default:
		return -EINVAL;
	}
	if (sges < 0)
		return sges;
	slot[wire::header::id] = static_cast<u8>(id);
	if (sges)
		slot[wire::work::sge_count] = static_cast<u8>(sges);
	slot[wire::work::flags] = static_cast<u8>(
		(wr.send_flags & IB_SEND_SIGNALED || verbs_.sq_sig_type == IB_SIGNAL_ALL_WR
			 ? wire::work::signaled
			 : 0) |
		(wr.send_flags & IB_SEND_FENCE ? wire::work::read_fence : 0));
	return static_cast<int>(bytes + static_cast<size_t>(sges) * wire::sge::size);
}

void Qp::publish(WorkRing &ring)
{
	ring.head = ring.head + 1 == ring.depth ? 0 : ring.head + 1;
	kern::wmb();
	write_be16(ring.shared, wire::shared::index, static_cast<u16>(ring.head));
	rnic_.ring(ring.index, ++ring.hints);
}

int Qp::post_send(const ib_send_wr *wr, const ib_send_wr **bad)
{
	kern::Guard guard(sq_.lock);
	for (; wr; wr = wr->next) {
		const u32 tail = __atomic_load_n(&sq_.tail, __ATOMIC_ACQUIRE);
		alignas(8) u8 slot[wire::message_size] = {};
		const int bytes = rnic_.channel().failed()                 ? -EIO
				  : sq_.outstanding(tail) == sq_.depth - 1 ? -ENOMEM
									   : build(*wr, slot);
		if (bytes < 0) {
			*bad = wr;
			return bytes;
		}
		slot[wire::header::result] = static_cast<u8>(wire::Status::pending);
		const u64 context = sq_.head;
		__builtin_memcpy(slot + wire::header::context, &context, sizeof(context));
		const ib_wc_opcode opcode = completed_as(wr->opcode);
		const u32 read =
			opcode == IB_WC_RDMA_READ && wr->num_sge ? wr->sg_list[0].length : 0;
		sq_.posted[sq_.head] = {wr->wr_id, read, opcode};
		sq_.slots.copy64(u64{sq_.head} * sq_.slot_bytes, slot,
				 (static_cast<size_t>(bytes) + 7) / 8);
		publish(sq_);
	}
	return 0;
}

int Qp::post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad)
{
	kern::Guard guard(rq_.lock);
	for (; wr; wr = wr->next) {
		const u32 tail = __atomic_load_n(&rq_.tail, __ATOMIC_ACQUIRE);
		alignas(8) u8 slot[wire::message_size] = {};
		u32 total = 0;
		const int sges = rnic_.channel().failed()                 ? -EIO
				 : rq_.outstanding(tail) == rq_.depth - 1 ? -ENOMEM
				 : wr->num_sge < 0 || static_cast<u32>(wr->num_sge) > rq_.max_sge
					 ? -EINVAL
					 : build_sges(wr->sg_list, wr->num_sge, slot,
						      wire::receive_request::sges, total);
		if (sges < 0) {
			*bad = wr;
			return sges;
		}
		slot[wire::header::id] = static_cast<u8>(wire::WorkId::receive);
		slot[wire::header::result] = static_cast<u8>(wire::Status::pending);
		slot[wire::work::sge_count] = static_cast<u8>(sges);
		slot[wire::work::flags] = wire::work::signaled;
		const u64 context = rq_.head;
		__builtin_memcpy(slot + wire::header::context, &context, sizeof(context));
		rq_.posted[rq_.head] = {wr->wr_id, total, IB_WC_RECV};
		rq_.slots.copy64(u64{rq_.head} * rq_.slot_bytes, slot,
				 (wire::receive_request::sges +
				  static_cast<size_t>(sges) * wire::sge::size + 7) /
					 8);
		publish(rq_);
	}
	return 0;
}

/*
 * Retires `count` requests, and returns the last of them. Returns false if fewer are outstanding.
 */
bool Qp::retire(WorkRing &ring, u32 count, Posted &posted)
{
	const u32 tail = ring.tail;
	const u32 there = (kern::read_once(ring.head) + ring.depth - tail) % ring.depth;
	if (count > there)
		return false;
	posted = ring.posted[(tail + count - 1) % ring.depth];
	/* post_send() and post_receive() reuse the slots of retired requests. */
	__atomic_store_n(&ring.tail, (tail + count) % ring.depth, __ATOMIC_RELEASE);
	return true;
}

bool Qp::flush_one(bool receives, ib_wc &wc)
{
	Posted posted;
	if (!retire(receives ? rq_ : sq_, 1, posted))
		return false;
	wc = {};
	wc.wr_id = posted.wr_id;
	wc.opcode = posted.opcode;
	wc.status = IB_WC_WR_FLUSH_ERR;
	wc.vendor_err = static_cast<u32>(wire::Status::flushed);
	wc.qp = &verbs_;
	return true;
}

bool Qp::complete(const u8 *entry, ib_wc &wc)
{
	const auto status = static_cast<wire::Status>(entry[wire::header::result]);
	const bool receive = entry[wire::header::id] == static_cast<u8>(wire::WorkId::receive);
	const u64 silent = get_be<u32>(entry + wire::work::silent_count);
	WorkRing &ring = receive ? rq_ : sq_;
	if (receive ? silent != 0 : silent >= ring.depth)
		return false;
	/* The context in the completion must be that of the request. */
	u64 context;
	__builtin_memcpy(&context, entry + wire::header::context, sizeof(context));
	Posted posted;
	if (context != (ring.tail + silent) % ring.depth ||
	    !retire(ring, static_cast<u32>(silent) + 1, posted))
		return false;
	wc.wr_id = posted.wr_id;
	wc.opcode = posted.opcode;
	wc.status = status_of(status);
	wc.vendor_err = static_cast<u32>(status);
	wc.byte_len = posted.length;
	if (receive && status == wire::Status::ok) {
		wc.byte_len = get_be<u32>(entry + wire::completion::bytes);
		const u32 invalidated = get_be<u32>(entry + wire::completion::stag);
		if (invalidated) {
			wc.ex.invalidate_rkey = invalidated;
			wc.wc_flags = IB_WC_WITH_INVALIDATE;
		}
		/* The message is longer than the receive buffer. */
		if (wc.byte_len > posted.length)
			wc.status = IB_WC_GENERAL_ERR;
	}
	return true;
}

} // namespace amso1100
