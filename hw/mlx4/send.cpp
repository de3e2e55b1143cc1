// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts send requests to descriptors of the card. This is the fast path: one pass, one store for
// the owner bit of each descriptor, and one doorbell for a list.
//
// The send queue is created with prefetching disabled (QpContext::sq_no_prefetch): the card reads a
// descriptor only when it executes it. So the driver need not mark descriptors behind the producer
// index as invalid, and can use every entry of the queue.
#include "../mellanox_icm/requests.hpp"
#include "ah.hpp"
#include "inline_data.hpp"
#include "mr.hpp"
#include "qp.hpp"

namespace mlx4
{

namespace
{

using wire::WqeControl;

/* Bits of the control segment's flags word. */
struct FlagBits {
	static constexpr u32 always = 0;
	static constexpr u32 signaled = WqeControl::completion;
	static constexpr u32 solicited = WqeControl::solicited;
	static constexpr u32 checksums = WqeControl::ip_checksum | WqeControl::l4_checksum;
};
constexpr SendFlagWords<FlagBits> control_flags;

/* Returns the access rights in the format of a fast registration. */
constexpr u32 fast_register_access(int access)
{
	using F = wire::WqeFastRegister;
	return (access & IB_ACCESS_REMOTE_ATOMIC ? F::remote_atomic : 0u) |
	       (access & IB_ACCESS_REMOTE_WRITE ? F::remote_write : 0u) |
	       (access & IB_ACCESS_REMOTE_READ ? F::remote_read : 0u) |
	       (access & IB_ACCESS_LOCAL_WRITE ? F::local_write : 0u) |
	       (access & IB_ACCESS_MW_BIND ? F::bind_enable : 0u) | F::local_read;
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
	__builtin_memset(segment->ethernet, 0, sizeof(segment->ethernet));
	return at + sizeof(*segment);
}

/*
 * Writes the header that each segment of a large send begins with. Returns nullptr if it does not
 * fit.
 */
u8 *put_lso_header(u8 *at, const u8 *end, const ib_ud_wr &wr, u32 &opcode)
{
	const u32 length = static_cast<u32>(wr.hlen);
	const u32 bytes = (sizeof(wire::WqeLso) + length + 15) & ~15u;
	if (wr.hlen <= 0 || length > max_lso_header || wr.mss <= 0 || at + bytes > end)
		return nullptr;
	reinterpret_cast<wire::WqeLso *>(at)->word = static_cast<u32>(wr.mss) << 16 | length;
	__builtin_memcpy(at + sizeof(wire::WqeLso), wr.header, length);
	if (length > 60)
		opcode |= WqeControl::long_lso_header;
	return at + bytes;
}

u8 *put_fast_register(u8 *at, const ib_reg_wr &wr)
{
	const Mr &mr = Mr::of(wr.mr);
	auto *segment = reinterpret_cast<wire::WqeFastRegister *>(at);
	segment->flags = fast_register_access(wr.access);
	segment->key = wr.key;
	segment->page_list = mr.page_list_address();
	segment->start = wr.mr->iova;
	segment->length = wr.mr->length;
	segment->first_byte_offset = 0;
	segment->page_shift = static_cast<u32>(__builtin_ctz(wr.mr->page_size));
	segment->reserved = 0;
	return at + sizeof(*segment);
}

u8 *put_local_invalidate(u8 *at, u32 key)
{
	auto *segment = reinterpret_cast<wire::WqeLocalInvalidate *>(at);
	__builtin_memset(segment, 0, sizeof(*segment));
	segment->key = key;
	return at + sizeof(*segment);
}

u8 *put_bind(u8 *at, const ib_bind_mw_wr &wr)
{
	using B = wire::WqeBindWindow;
	auto *segment = reinterpret_cast<B *>(at);
	segment->access = (wr.access & IB_ACCESS_REMOTE_ATOMIC ? B::remote_atomic : 0u) |
			  (wr.access & IB_ACCESS_REMOTE_WRITE ? B::remote_write : 0u) |
			  (wr.access & IB_ACCESS_REMOTE_READ ? B::remote_read : 0u);
	segment->type = (wr.mw->type == IB_MW_TYPE_2 ? B::type_2 : 0u) |
			(wr.access & IB_ZERO_BASED ? B::zero_based : 0u);
	segment->new_rkey = wr.rkey;
	segment->region_lkey = wr.mr->lkey;
	segment->address = wr.addr;
	segment->length = wr.length;
	return at + sizeof(*segment);
}

/*
 * Writes the segments between the control segment and the data of a connected QP's request that
 * post_send() does not handle itself, and the last word of the control segment. Returns nullptr if
 * the QP does not support the request.
 */
[[gnu::noinline]] u8 *put_other(u8 *at, const ib_send_wr &wr, WqeControl &control)
{
	switch (wr.opcode) {
	case IB_WR_SEND_WITH_INV:
		control.immediate = wr.ex.invalidate_rkey;
		return at;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return put_atomic(at, *atomic_wr(&wr));
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP: {
		const ib_atomic_wr &atomic = *atomic_wr(&wr);
		at = put_remote_address(at, atomic.remote_addr, atomic.rkey);
		auto *segment = reinterpret_cast<wire::WqeMaskedAtomic *>(at);
		segment->swap = atomic.swap;
		segment->compare = atomic.compare_add;
		segment->swap_mask = atomic.swap_mask;
		segment->compare_mask = atomic.compare_add_mask;
		return at + sizeof(*segment);
	}
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD: {
		const ib_atomic_wr &atomic = *atomic_wr(&wr);
		at = put_remote_address(at, atomic.remote_addr, atomic.rkey);
		auto *segment = reinterpret_cast<wire::WqeAtomic *>(at);
		segment->swap_or_add = atomic.compare_add;
		segment->compare = atomic.compare_add_mask;
		return at + sizeof(*segment);
	}
	case IB_WR_LOCAL_INV:
		return put_local_invalidate(at, wr.ex.invalidate_rkey);
	case IB_WR_REG_MR:
		return put_fast_register(at, *reg_wr(&wr));
	case IB_WR_BIND_MW:
		return put_bind(at, *bind_mw_wr(&wr));
	default:
		return nullptr;
	}
}

} // namespace

int Qp::post_send(const ib_send_wr *wr, const ib_send_wr **bad)
{
	if (kind_ == QpKind::special) [[unlikely]]
		return post_special(wr, bad);

	kern::Guard guard(sq.lock);
	const u32 first = sq.head;
	u32 head = first;
	u32 tail = __atomic_load_n(&sq.tail, __ATOMIC_ACQUIRE);
	int error = 0;

	for (; wr; wr = wr->next) {
		if (head - tail > sq.mask) [[unlikely]] {
			error = -ENOMEM;
			break;
		}
		if (!fits(sq, *wr)) [[unlikely]] {
			error = -EINVAL;
			break;
		}
		const u32 index = head & sq.mask;
		sq.ids[index] = wr->wr_id;
		u8 *const wqe = sq.entries + (index << sq.log_stride);
		auto *const control = reinterpret_cast<WqeControl *>(wqe);
		u8 *at = wqe + sizeof(WqeControl);
		const u8 shape = send_shapes.of[static_cast<u32>(wr->opcode)];
		u32 opcode = shape & SendShapes::opcode_mask;
		const u32 flags = control_flags.of[wr->send_flags & 31] | sq.signal_all;
		control->flags_word = ib::be32::from_raw(flags);
		control->immediate = ib::be32::from_raw(
			shape & SendShapes::immediate ? wr->ex.imm_data.raw() : 0);
		if (kind_ == QpKind::datagram) {
			at = put_datagram(at, *ud_wr(wr));
			if (shape & (SendShapes::remote | SendShapes::other)) [[unlikely]]
				at = wr->opcode == IB_WR_LSO
					     ? put_lso_header(at, wqe + (1u << sq.log_stride),
							      *ud_wr(wr), opcode)
					     : nullptr;
		} else {
			if (shape & SendShapes::remote)
				at = put_remote_address(at, rdma_wr(wr)->remote_addr,
							rdma_wr(wr)->rkey);
			else if (shape & SendShapes::other) [[unlikely]]
				at = put_other(at, *wr, *control);
			if (specifies_srqs_) [[unlikely]]
				control->flags_word = control->flags_word | xrc_wr(wr)->remote_srqn
										    << 8;
		}
		if (!at) [[unlikely]] {
			error = -EINVAL;
			break;
		}
		if (wr->send_flags & IB_SEND_INLINE) [[unlikely]] {
			at = put_inline_sges(wqe, at, sq.max_inline, wr->sg_list, wr->num_sge);
			if (!at) {
				error = -EINVAL;
				break;
			}
		} else {
			at = put_data(at, wr->sg_list, wr->num_sge);
		}
		control->size_word = static_cast<u32>(at - wqe) / wire::wqe_unit |
				     (wr->send_flags & IB_SEND_FENCE ? WqeControl::fence : 0u);
		// Writing the owner bit passes the descriptor to the card, so everything else must
		// be written before.
		kern::dma_wmb();
		control->opcode_word = opcode | (head >> sq.log_size & 1) << 31;
		head++;
	}
	if (head != first) [[likely]] {
		kern::write_once(sq.head, head);
		uar_.write32(wire::uar::send_doorbell, sq.doorbell_value);
		if (hca_.wants_attention()) [[unlikely]]
			post_slow_path(hca_, verbs_);
	}
	if (error) [[unlikely]]
		*bad = wr;
	return error;
}

int Qp::post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad)
{
	return post_receives<0>(rq, hca_, wr, bad);
}

} // namespace mlx4
