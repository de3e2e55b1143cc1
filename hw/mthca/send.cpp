// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts send requests to descriptors of the card. This is the fast path.
//
// The link to a descriptor is in the previous descriptor. The card follows the link after it has
// executed that previous descriptor. So posting a request does not change the link in its own
// descriptor, which is set when the next request is posted.
#include "../mellanox_icm/requests.hpp"
#include "../mellanox_icm/special_packet.hpp"
#include "ah.hpp"
#include "qp.hpp"

namespace mthca
{

namespace
{

using wire::WqeNext;
using wire::WqeOpcode;

/* Maximum number of requests in one doorbell. */
constexpr u32 max_per_doorbell = 255;
constexpr unsigned int static_rate_shift = 12;
constexpr unsigned int sl_shift = 8;
constexpr u8 rate_mask = 7;

/* The flags of a descriptor. */
struct FlagBits {
	static constexpr u32 always = WqeNext::always;
	static constexpr u32 signaled = WqeNext::completion;
	static constexpr u32 solicited = WqeNext::solicited;
	// The card cannot compute checksums.
	static constexpr u32 checksums = 0;
};
constexpr SendFlagWords<FlagBits> descriptor_flags;

/* Writes an inline segment with these bytes. */
u8 *put_inline(u8 *at, const void *data, u32 length)
{
	reinterpret_cast<wire::WqeInline *>(at)->byte_count = wire::WqeData::inline_bit | length;
	__builtin_memcpy(at + sizeof(wire::WqeInline), data, length);
	return at + inline_bytes(length);
}

/*
 * Copies the data of a request, which the CPU addresses, into one inline segment. Returns nullptr
 * if the data is longer than `limit`.
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
	// Only a QP in error accepts a request without an address, and flushes it. Otherwise the
	// card rejects an address of zeros.
	if (wr.ah) [[likely]]
		Ah::of(wr.ah).copy_vector(segment->address);
	else
		segment->address = {};
	segment->qpn_word = wr.remote_qpn;
	segment->qkey = wr.remote_qkey;
	segment->reserved[0] = segment->reserved[1] = 0;
	return at + sizeof(*segment);
}

/*
 * Writes the segments between the link and the data of a connected QP's request that post_send()
 * does not handle itself. Returns nullptr if the QP does not support the request.
 */
[[gnu::noinline]] u8 *put_other(u8 *at, const ib_send_wr &wr)
{
	const bool atomic =
		wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
	return atomic ? put_atomic(at, *atomic_wr(&wr)) : nullptr;
}

} // namespace

/*
 * Rings the doorbell. It repeats the description of the first request: the opcode and the size are
 * in the same bytes of its words as in the link, but the fence bit is not.
 */
[[gnu::always_inline]] inline void Qp::ring(const WqeNext &link, u32 first, u32 head)
{
	using namespace wire::uar;
	static_assert(send_count.low == 24 && send_index.low == 8 && send_opcode.low == 0 &&
		      send_opcode.high == 4 && send_units.low == 0 && send_units.high == 5);
	kern::write_once(sq.head, head);
	// Write the descriptors first, then the record, then the doorbell.
	__atomic_store_n(sq_record_, __builtin_bswap32(head & 0xffff), __ATOMIC_RELEASE);
	constexpr u32 opcode_mask = __builtin_bswap32(0x1f),
		      units_mask = __builtin_bswap32(WqeNext::units_mask),
		      fence = __builtin_bswap32(WqeNext::fence_bit);
	static_assert(WqeNext::fence_bit >> 1 == send_fence.in(1));
	const u32 size = link.size_word.raw();
	const u32 high = (head - first) | u32{__builtin_bswap16(static_cast<u16>(first))} << 8 |
			 (link.next_word.raw() & opcode_mask) | (size & fence) >> 1;
	const u32 low = sq.doorbell_value | (size & units_mask);
	uar_.write64(send_doorbell, u64{low} << 32 | high);
	if (hca_.wants_attention()) [[unlikely]]
		post_slow_path(hca_, verbs_);
}

/*
 * Writes a request of QP0 or QP1: the driver builds the whole packet, beginning with the LRH
 * (Documentation/connectx.rst, "MLX transport").
 */
kern::Result<u32> Qp::put_special(const ib_send_wr &wr, u8 *wqe)
{
	if ((wr.opcode != IB_WR_SEND && wr.opcode != IB_WR_SEND_WITH_IMM) ||
	    static_cast<u32>(wr.num_sge) > sq.max_sge || (wr.send_flags & IB_SEND_INLINE))
		return kern::Error{-EINVAL};
	auto *const own = reinterpret_cast<WqeNext *>(wqe);
	u8 *at = wqe + sizeof(WqeNext);
	u32 flags = wr.send_flags & IB_SEND_SIGNALED ? u32{WqeNext::completion} : 0;
	u32 destination = 0;
	// Only a QP in error accepts a request without an address, and flushes it. Otherwise the
	// card rejects an empty packet.
	if (ud_wr(&wr)->ah) {
		const Ah::Address to = Ah::of(ud_wr(&wr)->ah).address();
		const bool smi = verbs_.qp_type == IB_QPT_SMI;
		SpecialPacket packet;
		KERN_TRY(packet.build({.smi = smi,
				       .qpn = verbs_.qp_num,
				       .qkey = saved_.qkey,
				       .psn = saved_.psn++},
				      hca_.port(saved_.port), *ud_wr(&wr), to.attr));
		at = put_inline(at, packet.headers(), packet.header_bytes());
		at = put_data(at, wr.sg_list, wr.num_sge);
		// The padding, and space for the ICRC, which the card computes.
		constexpr u8 zeros[SpecialPacket::icrc_bytes + 3] = {};
		at = put_inline(at, zeros, packet.pad() + SpecialPacket::icrc_bytes);
		flags |= (smi ? WqeNext::vl15 : 0) |
			 (packet.permissive() ? WqeNext::permissive_source : 0) |
			 static_cast<u32>(to.vector.rate & rate_mask) << static_rate_shift |
			 to.vector.sl() << sl_shift;
		destination = u32{to.vector.dlid} << 16;
	}
	own->flags = ib::be32::from_raw(__builtin_bswap32(flags) | sq.signal_all);
	own->immediate = destination;
	return static_cast<u32>(at - wqe) / wire::wqe_unit;
}

/* Rings a doorbell for each request, because there are few. */
int Qp::post_special(const ib_send_wr *wr, const ib_send_wr **bad)
{
	kern::Guard guard(sq.lock);
	for (; wr; wr = wr->next) {
		const u32 head = sq.head;
		const bool full = head - __atomic_load_n(&sq.tail, __ATOMIC_ACQUIRE) > sq.mask;
		const auto put = full ? kern::Result<u32>(kern::Error{-ENOMEM})
				      : put_special(*wr, send_slot(head));
		if (!put) {
			*bad = wr;
			return put.error();
		}
		auto *const before = reinterpret_cast<WqeNext *>(send_slot(head - 1));
		before->next_word = before->next_address() | static_cast<u32>(WqeOpcode::send);
		sq.ids[head & sq.mask] = wr->wr_id;
		kern::dma_wmb();
		before->size_word = WqeNext::doorbell | put.value();
		ring(*before, head, head + 1);
	}
	return 0;
}

int Qp::post_send(const ib_send_wr *wr, const ib_send_wr **bad)
{
	if (kind_ == QpKind::special) [[unlikely]]
		return post_special(wr, bad);

	kern::Guard guard(sq.lock);
	u32 first = sq.head;
	u32 head = first;
	const u32 full = __atomic_load_n(&sq.tail, __ATOMIC_ACQUIRE) + sq.mask + 1;
	auto *before = last_sent_;
	const WqeNext *link = before;
	int error = -EINVAL;

	for (;; wr = wr->next) {
		if (!wr) {
			error = 0;
			break;
		}
		if (head == full) [[unlikely]] {
			error = -ENOMEM;
			break;
		}
		if (!fits(sq, *wr)) [[unlikely]]
			break;
		const u32 index = head & sq.mask;
		const u32 offset = index << sq.log_stride;
		const u8 shape = send_shapes.of[static_cast<u32>(wr->opcode)];
		// Fields of the link that are written before its size have no effect yet.
		before->next_word = (sq_base_ + offset) | (shape & SendShapes::opcode_mask);
		sq.ids[index] = wr->wr_id;
		u8 *const wqe = sq.entries + offset;
		auto *const own = reinterpret_cast<WqeNext *>(wqe);
		own->flags = ib::be32::from_raw(descriptor_flags.of[wr->send_flags & 31] |
						sq.signal_all);
		own->immediate = ib::be32::from_raw(
			shape & SendShapes::immediate ? wr->ex.imm_data.raw() : 0);
		u8 *at = wqe + sizeof(WqeNext);
		if (kind_ != QpKind::connected) {
			if (shape & (SendShapes::remote | SendShapes::other)) [[unlikely]]
				break;
			at = put_datagram(at, *ud_wr(wr));
		} else if (shape & SendShapes::remote) {
			at = put_remote_address(at, rdma_wr(wr)->remote_addr, rdma_wr(wr)->rkey);
		} else if (shape & SendShapes::other) [[unlikely]] {
			at = put_other(at, *wr);
			if (!at)
				break;
		}
		if (wr->send_flags & IB_SEND_INLINE) [[unlikely]] {
			at = put_inline_sges(at, sq.max_inline, wr->sg_list, wr->num_sge);
			if (!at)
				break;
		} else {
			at = put_data(at, wr->sg_list, wr->num_sge);
		}
		// Writing the size makes this descriptor valid, so its segments must be written
		// before.
		kern::dma_wmb();
		before->size_word = WqeNext::doorbell |
				    (wr->send_flags & IB_SEND_FENCE ? WqeNext::fence_bit : 0u) |
				    static_cast<u32>(at - wqe) / wire::wqe_unit;
		before = own;
		head++;
	}
	for (; head - first > max_per_doorbell; first += max_per_doorbell) {
		ring(*link, first, first + max_per_doorbell);
		link = reinterpret_cast<WqeNext *>(send_slot(first + max_per_doorbell - 1));
	}
	if (head != first) [[likely]] {
		last_sent_ = before;
		ring(*link, first, head);
	}
	if (error) [[unlikely]]
		*bad = wr;
	return error;
}

int Qp::post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad)
{
	return post_receives<sizeof(WqeNext)>(rq, hca_, wr, bad);
}

} // namespace mthca
