// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB Requests to descriptors: the fast path. A
// send is described by the descriptor before it, which the card reads when it is done with that
// one: so a new one's own link is left alone, which may still describe a request that has not been
// executed.
#include "../mellanox/requests.hpp"
#include "../mellanox/special_packet.hpp"
#include "ah.hpp"
#include "qp.hpp"

namespace infinihost
{

namespace
{

using wire::WqeNext;
using wire::WqeOpcode;

/* The most that a doorbell tells of. */
constexpr u32 most_per_doorbell = 255;
constexpr unsigned int static_rate_shift = 12;
constexpr unsigned int sl_shift = 8;
constexpr u8 rate_mask = 7;

/* Bytes, as an inline segment. */
u8 *put_inline(u8 *at, const void *data, u32 length)
{
	reinterpret_cast<wire::WqeInline *>(at)->byte_count = wire::WqeData::inline_bit | length;
	__builtin_memcpy(at + sizeof(wire::WqeInline), data, length);
	return at + inline_bytes(length);
}

/*
 * The memory of a request, by the CPU's addresses, as one inline segment; nullptr if it is longer
 * than `limit`.
 */
u8 *put_inline_sges(u8 *at, u32 limit, const ib_sge *sge, int count)
{
	u64 total = 0;
	for (int i = 0; i < count; i++)
		total += sge[i].length;
	if (total > limit)
		return nullptr;
	if (!total)
		return at;
	reinterpret_cast<wire::WqeInline *>(at)->byte_count =
		wire::WqeData::inline_bit | static_cast<u32>(total);
	u8 *to = at + sizeof(wire::WqeInline);
	for (int i = 0; i < count; to += sge[i++].length)
		__builtin_memcpy(to, reinterpret_cast<const void *>(sge[i].addr), sge[i].length);
	return at + inline_bytes(static_cast<u32>(total));
}

inline u8 *put_datagram(u8 *at, const ib_ud_wr &wr)
{
	auto *segment = reinterpret_cast<wire::WqeDatagram *>(at);
	// Without an address only a QP in error takes a request, to flush it; elsewhere the card
	// refuses the zeros.
	if (wr.ah) [[likely]]
		segment->address = Ah::of(wr.ah).vector();
	else
		segment->address = {};
	segment->qpn_word = wr.remote_qpn;
	segment->qkey = wr.remote_qkey;
	segment->reserved[0] = segment->reserved[1] = 0;
	return at + sizeof(*segment);
}

/*
 * The segments between link and data of a connected QP's request, and its opcode. nullptr for one
 * that has no place here.
 */
inline u8 *put_connected(u8 *at, const ib_send_wr &wr, u32 &opcode)
{
	const auto is = [&](WqeOpcode value) { opcode = static_cast<u32>(value); };
	switch (wr.opcode) {
	case IB_WR_SEND:
		is(WqeOpcode::send);
		return at;
	case IB_WR_SEND_WITH_IMM:
		is(WqeOpcode::send_imm);
		return at;
	case IB_WR_RDMA_WRITE:
		is(WqeOpcode::rdma_write);
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		is(WqeOpcode::rdma_write_imm);
		break;
	case IB_WR_RDMA_READ:
		is(WqeOpcode::rdma_read);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD: {
		const ib_atomic_wr &atomic = *atomic_wr(&wr);
		at = put_remote_address(at, atomic.remote_addr, atomic.rkey);
		auto *segment = reinterpret_cast<wire::WqeAtomic *>(at);
		const bool swap = wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP;
		is(swap ? WqeOpcode::compare_swap : WqeOpcode::fetch_add);
		segment->swap_or_add = swap ? atomic.swap : atomic.compare_add;
		segment->compare = swap ? atomic.compare_add : 0;
		return at + sizeof(*segment);
	}
	default:
		return nullptr;
	}
	return put_remote_address(at, rdma_wr(&wr)->remote_addr, rdma_wr(&wr)->rkey);
}

} // namespace

kern::Result<Qp::Description> Qp::put_request(const ib_send_wr &wr, u8 *wqe)
{
	auto *const own = reinterpret_cast<WqeNext *>(wqe);
	const bool immediate =
		wr.opcode == IB_WR_SEND_WITH_IMM || wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	u32 opcode = static_cast<u32>(immediate ? WqeOpcode::send_imm : WqeOpcode::send);
	u8 *at = wqe + sizeof(WqeNext);
	if (kind_ == QpKind::datagram) {
		if (wr.opcode != IB_WR_SEND && wr.opcode != IB_WR_SEND_WITH_IMM) [[unlikely]]
			return kern::Error{-EINVAL};
		at = put_datagram(at, *ud_wr(&wr));
	} else {
		at = put_connected(at, wr, opcode);
		if (!at) [[unlikely]]
			return kern::Error{-EINVAL};
	}
	if (wr.send_flags & IB_SEND_INLINE) [[unlikely]] {
		at = put_inline_sges(at, sq.max_inline, wr.sg_list, wr.num_sge);
		if (!at)
			return kern::Error{-EINVAL};
	} else {
		at = put_data(at, wr.sg_list, wr.num_sge);
	}
	own->flags = u32{WqeNext::always} | sq.signal_all |
		     (wr.send_flags & IB_SEND_SIGNALED ? u32{WqeNext::completion} : 0) |
		     (wr.send_flags & IB_SEND_SOLICITED ? u32{WqeNext::solicited} : 0);
	own->immediate = immediate ? wr.ex.imm_data.value() : 0;
	return Description{opcode, static_cast<u32>(at - wqe) / wire::wqe_unit,
			   (wr.send_flags & IB_SEND_FENCE) != 0};
}

/*
 * On QP0 and QP1: the driver writes the whole packet, from the LRH on (Documentation/connectx.rst,
 * "MLX transport").
 */
kern::Result<Qp::Description> Qp::put_special(const ib_send_wr &wr, u8 *wqe)
{
	if ((wr.opcode != IB_WR_SEND && wr.opcode != IB_WR_SEND_WITH_IMM) ||
	    (wr.send_flags & IB_SEND_INLINE))
		return kern::Error{-EINVAL};
	auto *const own = reinterpret_cast<WqeNext *>(wqe);
	u8 *at = wqe + sizeof(WqeNext);
	u32 flags =
		sq.signal_all | (wr.send_flags & IB_SEND_SIGNALED ? u32{WqeNext::completion} : 0);
	u32 destination = 0;
	// Without an address: a request to be flushed by a QP in error; elsewhere the card refuses
	// a packet of no bytes.
	if (ud_wr(&wr)->ah) {
		const Ah &ah = Ah::of(ud_wr(&wr)->ah);
		const bool smi = verbs_.qp_type == IB_QPT_SMI;
		SpecialPacket packet;
		TRY(packet.build({.smi = smi, .qpn = verbs_.qp_num, .qkey = qkey_, .psn = psn_++},
				 hca_.port(port_), *ud_wr(&wr), ah.attr()));
		at = put_inline(at, packet.headers(), packet.header_bytes());
		at = put_data(at, wr.sg_list, wr.num_sge);
		// The pad, and the place of the ICRC, which the card computes.
		constexpr u8 zeros[SpecialPacket::icrc_bytes + 3] = {};
		at = put_inline(at, zeros, packet.pad() + SpecialPacket::icrc_bytes);
		flags |= (smi ? WqeNext::vl15 : 0) |
			 (packet.permissive() ? WqeNext::permissive_source : 0) |
			 static_cast<u32>(ah.vector().rate & rate_mask) << static_rate_shift |
			 ah.vector().sl() << sl_shift;
		destination = u32{ah.vector().dlid} << 16;
	}
	own->flags = flags;
	own->immediate = destination;
	return Description{static_cast<u32>(WqeOpcode::send),
			   static_cast<u32>(at - wqe) / wire::wqe_unit, false};
}

void Qp::ring(u32 head, u32 count, const Description &first)
{
	using namespace wire::uar;
	kern::write_once(sq.head, head);
	// Descriptors, then the record, then the doorbell.
	__atomic_store_n(sq_record_, __builtin_bswap32(head & 0xffff), __ATOMIC_RELEASE);
	const u32 high = send_count.in(count) | send_index.in(head - count) |
			 send_fence.in(first.fence) | send_opcode.in(first.opcode);
	const u32 low = send_qpn.in(number_) | send_units.in(first.units);
	uar_.write_be64(send_doorbell, u64{high} << 32 | low);
}

int Qp::post_send(const ib_send_wr *wr, const ib_send_wr **bad)
{
	kern::Guard guard(sq.lock);
	u32 head = sq.head;
	const u32 tail = __atomic_load_n(&sq.tail, __ATOMIC_ACQUIRE);
	Description first{};
	u32 pending = 0;
	bool rung = false;
	int error = 0;

	for (; wr; wr = wr->next) {
		if (head - tail > sq.mask) [[unlikely]] {
			error = -ENOMEM;
			break;
		}
		if (static_cast<u32>(wr->num_sge) > sq.max_sge) [[unlikely]] {
			error = -EINVAL;
			break;
		}
		u8 *const wqe = send_slot(head);
		const auto put =
			kind_ == QpKind::special ? put_special(*wr, wqe) : put_request(*wr, wqe);
		if (!put) [[unlikely]] {
			error = put.error();
			break;
		}
		const Description &description = put.value();
		auto *const before = reinterpret_cast<WqeNext *>(send_slot(head - 1));
		before->next_word = before->next_address() | description.opcode;
		// With its size there, the one behind exists; the segments are older.
		kern::dma_wmb();
		before->size_word = WqeNext::doorbell |
				    (description.fence ? WqeNext::fence_bit : 0) |
				    description.units;
		sq.ids[head & sq.mask] = wr->wr_id;
		head++;
		if (!pending)
			first = description;
		if (++pending == most_per_doorbell) [[unlikely]] {
			ring(head, pending, first);
			rung = true;
			pending = 0;
		}
	}
	if (pending) [[likely]]
		ring(head, pending, first);
	if ((pending || rung) && hca_.wants_attention()) [[unlikely]]
		attend(hca_, verbs_);
	if (error) [[unlikely]]
		*bad = wr;
	return error;
}

int Qp::post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad)
{
	return post_receives<sizeof(WqeNext)>(rq, hca_, wr, bad);
}

} // namespace infinihost
