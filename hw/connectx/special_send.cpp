// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends on QP0 and QP1: the driver writes the whole packet, from the LRH on (Documentation/connectx.rst, "MLX transport").
#include "../../core/wire/headers.hpp"
#include "ah.hpp"
#include "inline_data.hpp"
#include "cq.hpp"
#include "qp.hpp"

namespace connectx {

namespace {

/* The flags word of a special QP's control segment. */
constexpr u32 flag_vl15 = 1u << 17;
constexpr u32 flag_permissive_source = 1u << 16;
constexpr unsigned int static_rate_shift = 12;
constexpr unsigned int sl_shift = 8;

constexpr u32 icrc_bytes = 4;

} // namespace

/* Builds a request's packet headers, and the descriptor in front of them. */
class SpecialSend {
public:
	SpecialSend(Qp &qp, const ib_ud_wr &wr) : qp_(qp), wr_(wr), smi_(qp.verbs_.qp_type == IB_QPT_SMI) {}

	/* Errors: EINVAL. */
	kern::Result<> build_headers()
	{
		const wire::AddressVector &vector = Ah::of(wr_.ah).vector();
		u64 payload = 0;
		for (int i = 0; i < wr_.wr.num_sge; i++)
			payload += wr_.wr.sg_list[i].length;
		if (payload > ib::payload_max)
			return kern::Error{-EINVAL};

		packet::Headers headers;
		headers.has_grh = vector.grh();
		headers.lrh.set_sl(vector.sl());
		headers.lrh.dlid = vector.dlid;
		// The card puts the port's own LID above the path bits.
		headers.lrh.slid = static_cast<u16>(permissive() ? ib::lid_permissive : vector.path_bits());
		const bool immediate = wr_.wr.opcode == IB_WR_SEND_WITH_IMM;
		headers.bth.opcode = static_cast<u8>(immediate ? ib::opcode_ud_send_only_imm : ib::opcode_ud_send_only);
		headers.bth.set_solicited(wr_.wr.send_flags & IB_SEND_SOLICITED);
		headers.bth.set_migrated(true);
		headers.bth.set_dest_qp(wr_.remote_qpn);
		headers.bth.set_psn(qp_.psn_++);
		// With the top bit set the QP's own counts (MGMT-05).
		headers.deth.qkey = wr_.remote_qkey & wire::WqeDatagram::own_qkey ? qp_.qkey_ : wr_.remote_qkey;
		headers.deth.src_qp = qp_.verbs_.qp_num;
		if (immediate)
			headers.immdt.value = wr_.wr.ex.imm_data;
		Port &port = qp_.hca_.port(qp_.port_);
		const bool known = port.with_tables([&](const PortTables &tables) {
			const u32 pkey_index = smi_ ? 0 : wr_.pkey_index;
			if (vector.sgid_index >= port.capabilities().gids || pkey_index >= port.capabilities().pkeys)
				return false;
			headers.lrh.set_vl(smi_ ? ib::vl_management : tables.sl_to_vl.vl(vector.sl()));
			headers.bth.pkey = smi_ ? ib::pkey_default_full : tables.pkeys[pkey_index];
			headers.grh.sgid = ib::Gid::from_parts(tables.gid_prefix, tables.guids[vector.sgid_index]);
			return true;
		});
		if (!known)
			return kern::Error{-EINVAL};
		if (headers.has_grh) {
			headers.grh.set_traffic_class(vector.traffic_class());
			headers.grh.set_flow_label(vector.flow_label());
			headers.grh.hop_limit = vector.hop_limit;
			__builtin_memcpy(headers.grh.dgid.raw, vector.dgid, sizeof(vector.dgid));
		}
		if (packet::build(headers, static_cast<unsigned>(payload), headers_, sizeof(headers_),
				  &header_bytes_) != packet::Error::none)
			return kern::Error{-EINVAL};
		pad_ = static_cast<u32>(-payload & 3);
		return {};
	}

	/* All of the descriptor but the word with the owner bit. */
	void write(u8 *wqe)
	{
		auto *const control = reinterpret_cast<wire::WqeControl *>(wqe);
		InlineWriter head(wqe, wqe + sizeof(*control));
		head.write(headers_, header_bytes_);
		u8 *at = head.finish();
		for (int i = 0; i < wr_.wr.num_sge; i++, at += sizeof(wire::WqeData)) {
			auto *segment = reinterpret_cast<wire::WqeData *>(at);
			segment->byte_count = wr_.wr.sg_list[i].length;
			segment->lkey = wr_.wr.sg_list[i].lkey;
			segment->address = wr_.wr.sg_list[i].addr;
		}
		// The pad, and the place of the ICRC, which the card computes.
		constexpr u8 zeros[icrc_bytes + 3] = {};
		InlineWriter tail(wqe, at);
		tail.write(zeros, pad_ + icrc_bytes);
		at = tail.finish();

		const wire::AddressVector &vector = Ah::of(wr_.ah).vector();
		const bool signaled = (wr_.wr.send_flags & IB_SEND_SIGNALED) || qp_.sq.signal_all;
		control->size_word = static_cast<u32>(at - wqe) / wire::wqe_unit;
		control->flags_word = (smi_ ? flag_vl15 : 0) | (permissive() ? flag_permissive_source : 0) |
				      u32{vector.static_rate} << static_rate_shift | vector.sl() << sl_shift |
				      (signaled ? u32{wire::WqeControl::completion} : 0);
		control->immediate = u32{vector.dlid} << 16;
	}

private:
	/* A directed-route packet to the neighbour comes from nowhere in particular. */
	bool permissive() const { return smi_ && Ah::of(wr_.ah).vector().dlid == ib::lid_permissive; }

	Qp &qp_;
	const ib_ud_wr &wr_;
	bool smi_;
	u8 headers_[ib::headers_max];
	unsigned header_bytes_ = 0;
	u32 pad_ = 0;
};

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
		    static_cast<u32>(wr->num_sge) > sq.max_sge || (wr->send_flags & IB_SEND_INLINE)) {
			error = -EINVAL;
			break;
		}
		u8 *const wqe = sq.entries + ((head & sq.mask) << sq.log_stride);
		if (ud_wr(wr)->ah) {
			SpecialSend send(*this, *ud_wr(wr));
			if (const auto built = send.build_headers(); !built) {
				error = built.error();
				break;
			}
			send.write(wqe);
		} else {
			// A request to be flushed by a QP in error; elsewhere the card refuses a packet of no bytes.
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
			attend();
	}
	if (error)
		*bad = wr;
	return error;
}

} // namespace connectx
