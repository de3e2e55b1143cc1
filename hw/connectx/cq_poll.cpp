// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// From entries of a completion queue to work completions.
#include "cq.hpp"
#include "qp.hpp"
#include "srq.hpp"
#include <kern/log.hpp>

namespace connectx {

namespace {

constexpr u8 no_opcode = 0xff;

/* What a completed send was, by the descriptor's opcode. */
struct SendOpcodes {
	u8 verbs[32];

	constexpr SendOpcodes() : verbs{}
	{
		using wire::WqeOpcode;
		for (u8 &opcode : verbs)
			opcode = no_opcode;
		const auto set = [this](WqeOpcode from, ib_wc_opcode to) {
			verbs[static_cast<u8>(from)] = static_cast<u8>(to);
		};
		set(WqeOpcode::send, IB_WC_SEND);
		set(WqeOpcode::send_imm, IB_WC_SEND);
		set(WqeOpcode::send_invalidate, IB_WC_SEND);
		set(WqeOpcode::rdma_write, IB_WC_RDMA_WRITE);
		set(WqeOpcode::rdma_write_imm, IB_WC_RDMA_WRITE);
		set(WqeOpcode::rdma_read, IB_WC_RDMA_READ);
		set(WqeOpcode::compare_swap, IB_WC_COMP_SWAP);
		set(WqeOpcode::fetch_add, IB_WC_FETCH_ADD);
		set(WqeOpcode::masked_compare_swap, IB_WC_MASKED_COMP_SWAP);
		set(WqeOpcode::masked_fetch_add, IB_WC_MASKED_FETCH_ADD);
		set(WqeOpcode::lso, IB_WC_LSO);
		set(WqeOpcode::bind_window, IB_WC_BIND_MW);
		set(WqeOpcode::fast_register, IB_WC_REG_MR);
		set(WqeOpcode::local_invalidate, IB_WC_LOCAL_INV);
	}
};
constexpr SendOpcodes send_opcodes;

ib_wc_status status_of(u8 syndrome)
{
	switch (static_cast<wire::CqeSyndrome>(syndrome)) {
	case wire::CqeSyndrome::local_length:
		return IB_WC_LOC_LEN_ERR;
	case wire::CqeSyndrome::local_qp_operation:
		return IB_WC_LOC_QP_OP_ERR;
	case wire::CqeSyndrome::local_protection:
		return IB_WC_LOC_PROT_ERR;
	case wire::CqeSyndrome::flushed:
		return IB_WC_WR_FLUSH_ERR;
	case wire::CqeSyndrome::window_bind:
		return IB_WC_MW_BIND_ERR;
	case wire::CqeSyndrome::bad_response:
		return IB_WC_BAD_RESP_ERR;
	case wire::CqeSyndrome::local_access:
		return IB_WC_LOC_ACCESS_ERR;
	case wire::CqeSyndrome::remote_invalid_request:
		return IB_WC_REM_INV_REQ_ERR;
	case wire::CqeSyndrome::remote_access:
		return IB_WC_REM_ACCESS_ERR;
	case wire::CqeSyndrome::remote_operation:
		return IB_WC_REM_OP_ERR;
	case wire::CqeSyndrome::retry_exceeded:
		return IB_WC_RETRY_EXC_ERR;
	case wire::CqeSyndrome::rnr_retry_exceeded:
		return IB_WC_RNR_RETRY_EXC_ERR;
	case wire::CqeSyndrome::remote_aborted:
		return IB_WC_REM_ABORT_ERR;
	case wire::CqeSyndrome::none:
		break;
	}
	return IB_WC_GENERAL_ERR;
}

/* Documentation/connectx.rst, "IPoIB checksum and LSO". */
bool checksum_ok(const wire::Cqe &cqe)
{
	if (cqe.checksum_flags & wire::Cqe::l4_checksum_ok)
		return true;
	const u16 status = cqe.status;
	return (status & wire::Cqe::ip_checksum_ok) && (status & (wire::Cqe::tcp | wire::Cqe::udp)) &&
	       cqe.checksum == wire::Cqe::checksum_correct;
}

/* The send request that an entry completes, and with it those before it. False if none is outstanding there. */
inline bool retire_sends(SendQueue &sq, u16 index, u64 &id)
{
	const u32 tail = sq.tail;
	const u32 ahead = static_cast<u16>(index - tail);
	if (ahead >= kern::read_once(sq.head) - tail) [[unlikely]]
		return false;
	const u32 at = tail + ahead;
	id = sq.ids[at & sq.mask];
	// The poster reuses what it sees retired.
	__atomic_store_n(&sq.tail, at + 1, __ATOMIC_RELEASE);
	return true;
}

inline bool retire_receive(ReceiveQueue &rq, PostedReceive &posted)
{
	const u32 tail = rq.tail;
	if (tail == kern::read_once(rq.head)) [[unlikely]]
		return false;
	posted = rq.posted[tail & rq.mask];
	__atomic_store_n(&rq.tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}

} // namespace

bool Cq::bogus(const wire::Cqe &cqe, const char *what)
{
	bogus_entries_++;
	if (!reported_)
		kern_dev_error(hca_.dma_device(), "CQ %u: %s (QPN %#x, opcode %#x); further ones are only counted\n",
			       number(), what, cqe.qpn(), cqe.owner_opcode);
	reported_ = true;
	return false;
}

bool Cq::translate_send(const wire::Cqe &cqe, ib_wc &wc, Qp &qp)
{
	const u8 opcode = send_opcodes.verbs[cqe.opcode()];
	if (opcode == no_opcode || !retire_sends(qp.sq, cqe.wqe_index, wc.wr_id)) [[unlikely]]
		return bogus(cqe, "completion of no send");
	wc.status = IB_WC_SUCCESS;
	wc.opcode = static_cast<ib_wc_opcode>(opcode);
	wc.wc_flags = 0;
	// Only what brings data back has a length, which is that of the request.
	wc.byte_len = opcode == IB_WC_RDMA_READ ? cqe.byte_count.value() : 8;
	return true;
}

bool Cq::translate_receive(const wire::Cqe &cqe, ib_wc &wc, Qp &qp)
{
	PostedReceive posted;
	if (Srq *srq = qp.srq) {
		if (!srq->complete(cqe.wqe_index, posted)) [[unlikely]]
			return bogus(cqe, "completion of no SRQ entry");
	} else if (qp.verbs().qp_type == IB_QPT_XRC_TGT) {
		const SrqEntry *entry = hca_.srq_entry(cqe.remote_qpn());
		if (!entry || kern::read_once(entry->cqn) != number() ||
		    !entry->srq->complete(cqe.wqe_index, posted)) [[unlikely]]
			return bogus(cqe, "completion of no XRC entry");
	} else if (!retire_receive(qp.rq, posted)) [[unlikely]] {
		return bogus(cqe, "completion of no receive");
	}
	const u32 length = cqe.byte_count;
	wc.wr_id = posted.wr_id;
	wc.status = IB_WC_SUCCESS;
	wc.byte_len = length;

	int flags = 0;
	wc.opcode = IB_WC_RECV;
	bool scattered = true;
	switch (static_cast<wire::CqeReceiveOpcode>(cqe.opcode())) {
	case wire::CqeReceiveOpcode::send:
		break;
	case wire::CqeReceiveOpcode::send_imm:
		flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cqe.immediate;
		break;
	case wire::CqeReceiveOpcode::send_invalidate:
		flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = cqe.immediate;
		break;
	case wire::CqeReceiveOpcode::rdma_write_imm:
		wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
		flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cqe.immediate;
		// The data went elsewhere.
		scattered = false;
		break;
	default:
		wc.status = IB_WC_GENERAL_ERR;
	}
	// The consumer will believe the length: no card talks it into reading beyond its buffer.
	if (scattered && length > posted.length) [[unlikely]] {
		bogus(cqe, "receive longer than its buffer");
		wc.status = IB_WC_LOC_LEN_ERR;
	}
	if (qp.kind() != QpKind::connected) {
		wc.src_qp = cqe.remote_qpn();
		wc.slid = cqe.source_lid;
		wc.sl = static_cast<u8>(cqe.sl());
		wc.dlid_path_bits = static_cast<u8>(cqe.path_bits());
		wc.pkey_index = static_cast<u16>(flags ? 0 : cqe.immediate & 0x7f);
		flags |= cqe.grh() ? IB_WC_GRH : 0;
		if (checksums_ && checksum_ok(cqe))
			flags |= IB_WC_IP_CSUM_OK;
	}
	wc.wc_flags = flags;
	return true;
}

bool Cq::translate_error(const wire::Cqe &cqe, ib_wc &wc)
{
	const auto &error = reinterpret_cast<const wire::ErrorCqe &>(cqe);
	Qp *qp = qp_of(cqe);
	if (!qp)
		return bogus(cqe, "error of no QP");
	if (cqe.is_send()) {
		if (!retire_sends(qp->sq, cqe.wqe_index, wc.wr_id))
			return bogus(cqe, "error of no send");
		wc.opcode = IB_WC_SEND;
	} else {
		PostedReceive posted;
		if (qp->srq ? !qp->srq->complete(cqe.wqe_index, posted) : !retire_receive(qp->rq, posted))
			return bogus(cqe, "error of no receive");
		wc.wr_id = posted.wr_id;
		wc.opcode = IB_WC_RECV;
	}
	wc.qp = &qp->verbs();
	wc.status = status_of(error.syndrome);
	wc.vendor_err = error.vendor_syndrome;
	wc.byte_len = 0;
	wc.wc_flags = 0;
	return true;
}

inline Qp *Cq::qp_of(const wire::Cqe &cqe)
{
	const u32 qpn = cqe.qpn();
	const QpEntry &entry = qps_[qpn & qp_mask_];
	const u32 cqn = cqe.is_send() ? kern::read_once(entry.send_cqn) : kern::read_once(entry.recv_cqn);
	if (cqn != number() || entry.qp->number() != qpn) [[unlikely]]
		return nullptr;
	return entry.qp;
}

inline bool Cq::translate(const wire::Cqe &cqe, ib_wc &wc, CachedQp &cached)
{
	if (cqe.opcode() == wire::cqe_opcode_error) [[unlikely]]
		return translate_error(cqe, wc);
	// A run of completions of one QP in one direction is looked up once.
	const u32 key = cqe.qpn() << 1 | cqe.is_send();
	if (key != cached.key) {
		cached.qp = qp_of(cqe);
		cached.key = key;
	}
	Qp *qp = cached.qp;
	if (!qp) [[unlikely]]
		return bogus(cqe, "completion of no QP of this CQ");
	wc.qp = &qp->verbs();
	wc.vendor_err = 0;
	return cqe.is_send() ? translate_send(cqe, wc, *qp) : translate_receive(cqe, wc, *qp);
}

int Cq::poll(int count, ib_wc *wc)
{
	kern::Guard guard(lock_);
	const u32 first = consumer_;
	u32 at = first;
	u32 skipped = 0;
	int got = 0;
	CachedQp cached;
	while (got < count) {
		const wire::Cqe *cqe = entry(at);
		if (!owned(cqe, at))
			break;
		// What the entry says is younger than its owner bit.
		kern::dma_rmb();
		if (cqe->opcode() == wire::cqe_opcode_resize) [[unlikely]] {
			at++;
			if (!switch_ring())
				bogus(*cqe, "resize that nobody asked for");
			continue;
		}
		at++;
		if (translate(*cqe, wc[got], cached)) [[likely]]
			got++;
		else if (++skipped >> log_entries_)
			break;
	}
	if (at != first) {
		consumer_ = at;
		report_consumer(at);
	}
	if (got == 0 && hca_.failed()) [[unlikely]]
		return poll_failed(count, wc);
	return got;
}

int Cq::peek(int count)
{
	kern::Guard guard(lock_);
	int found = 0;
	while (found < count && owned(entry(consumer_ + found), consumer_ + found))
		found++;
	return found;
}

int Cq::request_notify(ib_cq_notify_flags flags)
{
	using namespace wire::uar;
	if (!rdma::valid_notify_flags(flags)) [[unlikely]]
		return -EINVAL;
	const u32 command = flags & IB_CQ_SOLICITED ? cq_arm_solicited : cq_arm_next;
	const u32 arm = (kern::read_once(arm_sequence_) & 3) << cq_doorbell_sequence.low |
			command << cq_doorbell_command.low;
	const u32 consumer = kern::read_once(consumer_) & cq_doorbell_consumer_index.max();
	// First the record, which the card may look at, then the doorbell. The card raises an event for what is already
	// there from `consumer` on, so nothing is missed and the answer is always 0 (NOTIFY-06).
	__atomic_store_n(record_ + 1, __builtin_bswap32(arm | consumer), __ATOMIC_RELEASE);
	uar_.write_be64(cq_doorbell, u64{arm | number_word_} << 32 | consumer);
	return 0;
}

} // namespace connectx
