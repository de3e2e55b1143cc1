// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements sends on QP0 and QP1, for which the driver builds the whole packet, beginning with the
// LRH (Documentation/connectx.rst, "MLX transport").
#include "../mellanox_icm/requests.hpp"
#include "../mellanox_icm/special_packet.hpp"
#include "ah.hpp"
#include "inline_data.hpp"
#include "cq.hpp"
#include "qp.hpp"

namespace mlx4
{

namespace
{

/* Bits of the flags word of a special QP's control segment. */
constexpr u32 flag_vl15 = 1u << 17;
constexpr u32 flag_permissive_source = 1u << 16;
constexpr unsigned int static_rate_shift = 12;
constexpr unsigned int sl_shift = 8;

/* Writes the descriptor, except for the word with the owner bit. */
void put_packet(u8 *wqe, const SpecialPacket &packet, const wire::AddressVector &vector,
		const ib_ud_wr &wr, bool smi, bool signaled)
{
	auto *const control = reinterpret_cast<wire::WqeControl *>(wqe);
	InlineWriter head(wqe, wqe + sizeof(*control));
	head.write(packet.headers(), packet.header_bytes());
	u8 *at = put_data(head.finish(), wr.wr.sg_list, wr.wr.num_sge);
	// The padding, and space for the ICRC, which the card computes.
	constexpr u8 zeros[SpecialPacket::icrc_bytes + 3] = {};
	InlineWriter tail(wqe, at);
	tail.write(zeros, packet.pad() + SpecialPacket::icrc_bytes);
	at = tail.finish();

	control->size_word = static_cast<u32>(at - wqe) / wire::wqe_unit;
	control->flags_word =
		(smi ? flag_vl15 : 0) | (packet.permissive() ? flag_permissive_source : 0) |
		u32{vector.static_rate} << static_rate_shift | vector.sl() << sl_shift |
		(signaled ? u32{wire::WqeControl::completion} : 0);
	control->immediate = u32{vector.dlid} << 16;
}

} // namespace

int Qp::post_special(const ib_send_wr *wr, const ib_send_wr **bad)
{
	kern::Guard guard(sq.lock);
	const u32 first = sq.head;
	u32 head = first;
	int error = 0;
	for (; wr; wr = wr->next) {
		if (head - __atomic_load_n(&sq.tail, __ATOMIC_ACQUIRE) > sq.mask) {
			error = -ENOMEM;
			break;
		}
		if ((wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM) ||
		    static_cast<u32>(wr->num_sge) > sq.max_sge ||
		    (wr->send_flags & IB_SEND_INLINE)) {
			error = -EINVAL;
			break;
		}
		u8 *const wqe = sq.entries + ((head & sq.mask) << sq.log_stride);
		if (ud_wr(wr)->ah) {
			const Ah::Address to = Ah::of(ud_wr(wr)->ah).address();
			const bool smi = verbs_.qp_type == IB_QPT_SMI;
			SpecialPacket packet;
			const auto built =
				packet.build({.smi = smi,
					      .qpn = verbs_.qp_num,
					      .qkey = saved_.qkey,
					      .psn = saved_.psn++},
					     hca_.port(saved_.port), *ud_wr(wr), to.attr);
			if (!built) {
				error = built.error();
				break;
			}
			put_packet(wqe, packet, to.vector, *ud_wr(wr), smi,
				   (wr->send_flags & IB_SEND_SIGNALED) || sq.signal_all);
		} else {
			// Only a QP in error accepts a request without an address, and flushes it.
			// Otherwise the card rejects an empty packet.
			auto *control = reinterpret_cast<wire::WqeControl *>(wqe);
			control->size_word = sizeof(*control) / wire::wqe_unit;
			control->flags_word = u32{wire::WqeControl::completion};
			control->immediate = 0;
		}
		sq.ids[head & sq.mask] = wr->wr_id;
		kern::dma_wmb();
		reinterpret_cast<wire::WqeControl *>(wqe)->opcode_word =
			static_cast<u32>(wire::WqeOpcode::send) | (head >> sq.log_size & 1) << 31;
		head++;
	}
	if (head != first) {
		kern::write_once(sq.head, head);
		uar_.write32(wire::uar::send_doorbell, sq.doorbell_value);
		if (hca_.wants_attention())
			post_slow_path(hca_, verbs_);
	}
	if (error)
		*bad = wr;
	return error;
}

} // namespace mlx4
