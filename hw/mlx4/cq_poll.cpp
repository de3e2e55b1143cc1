// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts completion queue entries to work completions.
#include "cq.hpp"
#include "../mellanox_icm/syndromes.hpp"
#include "qp.hpp"
#include "srq.hpp"
#include "xrc_domain.hpp"
#include <kern/log.hpp>

namespace mlx4
{

namespace
{

/* Marks opcodes that are not those of ordinary completions. */
constexpr u8 unusual = 0xff;

/*
 * The ib_wc_opcode of a completion, or `unusual`, indexed by the last byte of its entry without the
 * owner bit.
 */
struct Opcodes {
	u8 verbs[wire::Cqe::owner_bit];

	constexpr Opcodes() : verbs{}
	{
		using wire::WqeOpcode;
		for (u8 &opcode : verbs)
			opcode = unusual;
		// Bit 5 is ignored.
		const auto set = [this](u8 from, ib_wc_opcode to) {
			verbs[from] = verbs[from | 1u << 5] = static_cast<u8>(to);
		};
		const auto send = [&](WqeOpcode from, ib_wc_opcode to) {
			set(static_cast<u8>(wire::Cqe::send_bit | static_cast<u8>(from)), to);
		};
		send(WqeOpcode::send, IB_WC_SEND);
		send(WqeOpcode::send_imm, IB_WC_SEND);
		send(WqeOpcode::send_invalidate, IB_WC_SEND);
		send(WqeOpcode::rdma_write, IB_WC_RDMA_WRITE);
		send(WqeOpcode::rdma_write_imm, IB_WC_RDMA_WRITE);
		send(WqeOpcode::rdma_read, IB_WC_RDMA_READ);
		send(WqeOpcode::compare_swap, IB_WC_COMP_SWAP);
		send(WqeOpcode::fetch_add, IB_WC_FETCH_ADD);
		send(WqeOpcode::masked_compare_swap, IB_WC_MASKED_COMP_SWAP);
		send(WqeOpcode::masked_fetch_add, IB_WC_MASKED_FETCH_ADD);
		send(WqeOpcode::lso, IB_WC_LSO);
		send(WqeOpcode::bind_window, IB_WC_BIND_MW);
		send(WqeOpcode::fast_register, IB_WC_REG_MR);
		send(WqeOpcode::local_invalidate, IB_WC_LOCAL_INV);
		// A receive with any other opcode has also consumed its request.
		for (u8 opcode = 0; opcode <= wire::Cqe::opcode_mask; opcode++)
			if (opcode != wire::cqe_opcode_error && opcode != wire::cqe_opcode_resize &&
			    opcode != wire::Cqe::opcode_mask)
				set(opcode, IB_WC_RECV);
		set(static_cast<u8>(wire::CqeReceiveOpcode::rdma_write_imm),
		    IB_WC_RECV_RDMA_WITH_IMM);
	}
};
constexpr Opcodes opcodes;

/* See Documentation/connectx.rst, "IPoIB checksum and LSO". */
bool checksum_ok(const wire::Cqe &cqe)
{
	if (cqe.checksum_flags & wire::Cqe::l4_checksum_ok)
		return true;
	const u16 status = cqe.status;
	return (status & wire::Cqe::ip_checksum_ok) &&
	       (status & (wire::Cqe::tcp | wire::Cqe::udp)) &&
	       cqe.checksum == wire::Cqe::checksum_correct;
}

} // namespace

bool Cq::bogus(const wire::Cqe &cqe, const char *what)
{
	bogus_entries_++;
	if (!reported_)
		kern_dev_error(hca_.dma_device(),
			       "CQ %u: %s (QPN %#x, opcode %#x); later ones are only counted\n",
			       number(), what, cqe.qpn(), cqe.owner_opcode);
	reported_ = true;
	return false;
}

[[gnu::always_inline]] inline bool Cq::translate_send(const wire::Cqe &cqe, u8 opcode, ib_wc &wc,
						      Qp &qp)
{
	if (!retire_sends(qp.sq, cqe.wqe_index, wc.wr_id)) [[unlikely]]
		return bogus(cqe, "completion of no send");
	wc.status = IB_WC_SUCCESS;
	wc.opcode = static_cast<ib_wc_opcode>(opcode);
	wc.wc_flags = 0;
	// Only reads and atomics return data. Their length is that of the request.
	wc.byte_len = opcode == IB_WC_RDMA_READ ? cqe.byte_count.value() : 8;
	return true;
}

Srq *Cq::shared_queue(const wire::Cqe &cqe, const Qp &qp)
{
	if (qp.verbs().qp_type != IB_QPT_XRC_TGT)
		return qp.srq;
	// The message specifies an SRQ. Accept it only if it belongs to the QP's domain and its
	// receives complete in this CQ.
	const SrqEntry *entry = hca_.srq_entry(cqe.remote_qpn());
	const u32 domain = QpEntry::xrc_target | xrcd_number(qp.verbs().xrcd);
	if (!entry || kern::read_once(entry->cqn) != number() ||
	    kern::read_once(entry->domain) != domain)
		return nullptr;
	return entry->srq;
}

s64 Cq::retire_shared(const wire::Cqe &cqe, Qp &qp, u64 &id)
{
	Srq *srq = shared_queue(cqe, qp);
	return srq ? srq->complete(cqe.wqe_index, id) : not_posted;
}

[[gnu::always_inline]] inline bool Cq::translate_receive(const wire::Cqe &cqe, u8 opcode, ib_wc &wc,
							 Qp &qp)
{
	// A QP that uses an SRQ has no request in its own ring.
	s64 capacity = retire_receive(qp.rq, wc.wr_id);
	if (capacity == not_posted) [[unlikely]] {
		capacity = retire_shared(cqe, qp, wc.wr_id);
		if (capacity == not_posted)
			return bogus(cqe, "completion of no receive");
	}
	const u32 length = cqe.byte_count;
	wc.status = IB_WC_SUCCESS;
	wc.opcode = static_cast<ib_wc_opcode>(opcode);
	wc.byte_len = length;

	int flags = 0;
	const auto kind = static_cast<wire::CqeReceiveOpcode>(cqe.opcode());
	if (kind != wire::CqeReceiveOpcode::send) {
		switch (kind) {
		case wire::CqeReceiveOpcode::rdma_write_imm:
			// The data was written to the address in the packet, not to the receive
			// buffer.
			capacity = length;
			[[fallthrough]];
		case wire::CqeReceiveOpcode::send_imm:
			flags = IB_WC_WITH_IMM;
			wc.ex.imm_data = cqe.immediate;
			break;
		case wire::CqeReceiveOpcode::send_invalidate:
			flags = IB_WC_WITH_INVALIDATE;
			wc.ex.invalidate_rkey = cqe.immediate;
			break;
		default:
			wc.status = IB_WC_GENERAL_ERR;
		}
	}
	// The consumer relies on the length, so a faulty card must not make it read beyond its
	// buffer.
	if (length > capacity) [[unlikely]] {
		bogus(cqe, "receive longer than its buffer");
		wc.status = IB_WC_LOC_LEN_ERR;
	}
	if (qp.kind() != QpKind::connected) {
		const u32 remote = cqe.remote_word;
		wc.src_qp = remote & 0xffffff;
		wc.slid = cqe.source_lid;
		wc.sl = static_cast<u8>(cqe.sl());
		wc.dlid_path_bits = static_cast<u8>(remote >> 24 & 0x7f);
		wc.pkey_index = static_cast<u16>(flags ? 0 : cqe.immediate & 0x7f);
		static_assert(IB_WC_GRH == 1);
		flags |= static_cast<int>(remote >> 31);
		if (checksums_ && checksum_ok(cqe))
			flags |= IB_WC_IP_CSUM_OK;
	}
	wc.wc_flags = flags;
	return true;
}

bool Cq::translate_unusual(const wire::Cqe &cqe, ib_wc &wc)
{
	switch (cqe.opcode()) {
	case wire::cqe_opcode_resize:
		return !switch_ring() && bogus(cqe, "resize that was not requested");
	case stale_opcode:
		// The ring and the saved completions use the same indices.
		return stale_.take(static_cast<u32>(&cqe - entry(0)), wc) ||
		       bogus(cqe, "no completion was saved for this entry");
	case wire::cqe_opcode_error:
		break;
	default:
		return bogus(cqe, "completion of no send");
	}
	Qp *qp = qp_of(cqe);
	if (!qp)
		return bogus(cqe, "error of no QP");
	return translate_error(cqe, wc, *qp);
}

bool Cq::translate_error(const wire::Cqe &cqe, ib_wc &wc, Qp &qp)
{
	const auto &error = reinterpret_cast<const wire::ErrorCqe &>(cqe);
	if (cqe.is_send()) {
		if (!retire_sends(qp.sq, cqe.wqe_index, wc.wr_id))
			return bogus(cqe, "error of no send");
		wc.opcode = IB_WC_SEND;
	} else {
		s64 capacity = retire_receive(qp.rq, wc.wr_id);
		if (capacity == not_posted)
			capacity = retire_shared(cqe, qp, wc.wr_id);
		if (capacity == not_posted)
			return bogus(cqe, "error of no receive");
		wc.opcode = IB_WC_RECV;
	}
	wc.qp = &qp.verbs();
	wc.status = status_of(error.syndrome);
	wc.vendor_err = error.vendor_syndrome;
	wc.byte_len = 0;
	wc.wc_flags = 0;
	return true;
}

Qp *Cq::qp_of(const wire::Cqe &cqe)
{
	const u32 qpn = cqe.qpn();
	const QpEntry &entry = qps_[qpn & qp_mask_];
	const u32 cqn =
		cqe.is_send() ? kern::read_once(entry.send_cqn) : kern::read_once(entry.recv_cqn);
	if (cqn != number()) [[unlikely]] {
		// For an XRC target, the CQ is that of the SRQ.
		const SrqEntry *srq = hca_.srq_entry(cqe.remote_qpn());
		if (!(cqn & QpEntry::xrc_target) || !srq || kern::read_once(srq->cqn) != number() ||
		    kern::read_once(srq->domain) != cqn)
			return nullptr;
	}
	return entry.qp->number() == qpn ? entry.qp : nullptr;
}

[[gnu::always_inline]] inline bool Cq::translate(const wire::Cqe &cqe, u8 kind, u8 opcode,
						 ib_wc &wc)
{
	// Completions usually arrive in runs of one QP and one direction.
	static_assert(__builtin_offsetof(wire::Cqe, qpn_word) == 0);
	const u32 key = (cqe.qpn_word.raw() & ~0xffu) | (kind & wire::Cqe::send_bit);
	if (key != last_key_) [[unlikely]] {
		Qp *qp = qp_of(cqe);
		if (!qp)
			return bogus(cqe, "completion of no QP of this CQ");
		last_qp_ = qp;
		last_key_ = key;
	}
	return translate_of(cqe, kind, opcode, wc, *last_qp_);
}

/*
 * The attribute inlines the function into poll(), which the compiler does not do for two callers.
 */
[[gnu::always_inline]] inline bool Cq::translate_of(const wire::Cqe &cqe, u8 kind, u8 opcode,
						    ib_wc &wc, Qp &qp)
{
	wc.qp = &qp.verbs();
	wc.vendor_err = 0;
	return kind & wire::Cqe::send_bit ? translate_send(cqe, opcode, wc, qp)
					  : translate_receive(cqe, opcode, wc, qp);
}

u32 Cq::save_completions(Qp &qp)
{
	last_key_ = no_key;
	return members_.save(qp, consumer_, end_locked(), stale_, [&](u32 at, ib_wc &wc) {
		auto &cqe = const_cast<wire::Cqe &>(*entry(at));
		if (!is_entry_of(cqe, qp))
			return false;
		const u8 kind = kind_of(&cqe, at);
		const u8 opcode = opcodes.verbs[kind];
		const bool translated = opcode == unusual
						? cqe.opcode() == wire::cqe_opcode_error &&
							  translate_error(cqe, wc, qp)
						: translate_of(cqe, kind, opcode, wc, qp);
		if (translated)
			kern::write_once(cqe.owner_opcode,
					 static_cast<u8>((cqe.owner_opcode & wire::Cqe::owner_bit) |
							 stale_opcode));
		return translated;
	});
}

[[gnu::always_inline]] inline int Cq::poll(int count, ib_wc *wc)
{
	kern::Guard guard(lock_);
	const u32 events = __atomic_load_n(&events_, __ATOMIC_ACQUIRE);
	u32 at = consumer_;
	int got = 0;
	while (got < count) {
		const wire::Cqe &cqe = *entry(at);
		const u8 kind = kind_of(&cqe, at);
		if (kind & wire::Cqe::owner_bit) {
			kern::write_once(events_at_empty_, events);
			break;
		}
		// Read the entry's contents only after its owner bit.
		kern::dma_rmb();
		at++;
		const u8 opcode = opcodes.verbs[kind];
		if (opcode != unusual ? translate(cqe, kind, opcode, *wc)
				      : translate_unusual(cqe, *wc)) [[likely]] {
			got++;
			wc++;
		} else if ((at - consumer_) >> log_entries_) {
			// Stop after a whole ring of invalid entries.
			break;
		}
	}
	if (at != consumer_) {
		consumer_ = at;
		report_consumer(at);
	}
	if (got == 0 && hca_.failed()) [[unlikely]]
		return members_.take_unflushed(count, wc, stale_);
	return got;
}

int Cq::poll(ib_cq *cq, int count, ib_wc *wc)
{
	return of(cq).poll(count, wc);
}

int Cq::peek(int count)
{
	kern::Guard guard(lock_);
	int found = 0;
	while (found < count && owned(entry(consumer_ + found), consumer_ + found))
		found++;
	return found;
}

int Cq::request_notify(ib_cq *cq, ib_cq_notify_flags flags)
{
	using namespace wire::uar;
	// All words are in the card's byte order; the command is in the first byte.
	static_assert(cq_doorbell_command.low == 24 && cq_arm_solicited == IB_CQ_SOLICITED &&
		      cq_arm_next == IB_CQ_NEXT_COMP);
	Cq &self = of(cq);
	const u32 command = static_cast<u32>(flags & ~IB_CQ_REPORT_MISSED_EVENTS);
	if (command - IB_CQ_SOLICITED > IB_CQ_NEXT_COMP - IB_CQ_SOLICITED) [[unlikely]]
		return -EINVAL;
	const u32 arm = kern::read_once(self.arm_word_) | command;
	const u32 consumer = __atomic_load_n(self.record_, __ATOMIC_RELAXED);
	// Write the record first, because the card may read it, and then the doorbell. If an entry
	// from `consumer` on already exists, the card raises an event for it, unless it has raised
	// one for that entry before. In that case, the driver reports the entry (NOTIFY-06).
	__atomic_store_n(self.record_ + 1, (arm & 0xff) | consumer, __ATOMIC_RELEASE);
	self.uar_.write64(cq_doorbell, u64{consumer} << 32 | arm);
	return (flags & IB_CQ_REPORT_MISSED_EVENTS) && self.missed_event();
}

} // namespace mlx4
