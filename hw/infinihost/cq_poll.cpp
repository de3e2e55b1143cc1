// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// From entries of a completion queue to work completions.
#include "cq.hpp"
#include <kern/log.hpp>
#include "../mellanox/syndromes.hpp"
#include "qp.hpp"
#include "srq.hpp"

namespace infinihost
{

namespace
{

/* Of an opcode that no completed send has. */
constexpr u8 none = 0xff;

/* The ib_wc_opcode of a completed send, by the opcode of its descriptor. */
struct SendOpcodes {
	u8 verbs[32];

	constexpr SendOpcodes() : verbs{}
	{
		using wire::WqeOpcode;
		for (u8 &opcode : verbs)
			opcode = none;
		const auto set = [this](WqeOpcode from, ib_wc_opcode to) {
			verbs[static_cast<u8>(from)] = static_cast<u8>(to);
		};
		set(WqeOpcode::send, IB_WC_SEND);
		set(WqeOpcode::send_imm, IB_WC_SEND);
		set(WqeOpcode::rdma_write, IB_WC_RDMA_WRITE);
		set(WqeOpcode::rdma_write_imm, IB_WC_RDMA_WRITE);
		set(WqeOpcode::rdma_read, IB_WC_RDMA_READ);
		set(WqeOpcode::compare_swap, IB_WC_COMP_SWAP);
		set(WqeOpcode::fetch_add, IB_WC_FETCH_ADD);
	}
};
constexpr SendOpcodes send_opcodes;

/*
 * What a receive was, by the low bits of its packet's opcode: last or only ones with immediate data
 * stand out.
 */
constexpr u8 receive_mask = 0x1f;
constexpr bool is_send_imm(u8 opcode)
{
	return (opcode & receive_mask) == 0x03 ||
	       (opcode & receive_mask) == static_cast<u8>(wire::ReceiveOpcode::send_imm);
}
constexpr bool is_write_imm(u8 opcode)
{
	return (opcode & receive_mask) == 0x09 ||
	       (opcode & receive_mask) == static_cast<u8>(wire::ReceiveOpcode::rdma_write_imm);
}

} // namespace

bool Cq::bogus(const wire::Cqe &cqe, const char *what)
{
	bogus_entries_++;
	if (!reported_)
		kern_dev_error(hca_.dma_device(),
			       "CQ %u: %s (QPN %#x, opcode %#x); further ones are only counted\n",
			       number(), what, cqe.qpn.value(), cqe.opcode);
	reported_ = true;
	return false;
}

bool Cq::retire_send(const wire::Cqe &cqe, Qp &qp, u64 &id)
{
	// An address below the ring, or beyond, is that of no request: the distance is not within
	// it.
	const u32 offset = cqe.wqe_address - qp.sq_base();
	if (offset >> qp.sq.log_stride > qp.sq.mask) [[unlikely]]
		return false;
	const u32 tail = qp.sq.tail;
	const u32 ahead = ((offset >> qp.sq.log_stride) - tail) & qp.sq.mask;
	return retire_sends(qp.sq, static_cast<u16>(tail + ahead), id);
}

s64 Cq::retire_receive(const wire::Cqe &cqe, Qp &qp, u64 &id)
{
	return qp.srq ? qp.srq->complete(cqe.wqe_address, id) : mellanox::retire_receive(qp.rq, id);
}

bool Cq::translate_send(const wire::Cqe &cqe, ib_wc &wc, Qp &qp)
{
	const u8 opcode =
		cqe.opcode < sizeof(send_opcodes.verbs) ? send_opcodes.verbs[cqe.opcode] : none;
	if (opcode == none || !retire_send(cqe, qp, wc.wr_id)) [[unlikely]]
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
	s64 room = retire_receive(cqe, qp, wc.wr_id);
	if (room == not_posted) [[unlikely]]
		return bogus(cqe, "completion of no receive");
	const u32 length = cqe.byte_count;
	wc.status = IB_WC_SUCCESS;
	wc.opcode = IB_WC_RECV;
	wc.byte_len = length;

	int flags = 0;
	if (is_write_imm(cqe.opcode)) {
		// The data went elsewhere.
		room = length;
		wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
	}
	if (is_write_imm(cqe.opcode) || is_send_imm(cqe.opcode)) {
		flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cqe.immediate;
	}
	// The consumer will believe the length: no card talks it into reading beyond its buffer.
	if (length > room) [[unlikely]] {
		bogus(cqe, "receive longer than its buffer");
		wc.status = IB_WC_LOC_LEN_ERR;
	}
	if (qp.kind() != QpKind::connected) {
		const u32 source = cqe.source_word;
		wc.src_qp = cqe.remote_qpn & 0xffffff;
		wc.slid = static_cast<u16>(source);
		wc.sl = static_cast<u8>(source >> 28);
		wc.dlid_path_bits = static_cast<u8>(source >> 16 & 0x7f);
		wc.pkey_index = static_cast<u16>(flags ? 0 : cqe.immediate >> 16 & 0x7f);
		if (source & 1u << 23)
			flags |= IB_WC_GRH;
	}
	wc.wc_flags = flags;
	return true;
}

bool Cq::translate_error(const wire::Cqe &cqe, ib_wc &wc, Qp &qp)
{
	if (cqe.opcode == wire::Cqe::send_error) {
		if (!retire_send(cqe, qp, wc.wr_id))
			return bogus(cqe, "error of no send");
		wc.opcode = IB_WC_SEND;
	} else {
		if (retire_receive(cqe, qp, wc.wr_id) == not_posted)
			return bogus(cqe, "error of no receive");
		wc.opcode = IB_WC_RECV;
	}
	wc.status = status_of(cqe.syndrome());
	wc.vendor_err = cqe.immediate >> 16 & 0xff;
	wc.byte_len = 0;
	wc.wc_flags = 0;
	return true;
}

Qp *Cq::qp_of(const wire::Cqe &cqe)
{
	const u32 qpn = cqe.qpn;
	const QpEntry &entry = qps_[qpn & qp_mask_];
	// An error says by its opcode alone whose request it was.
	const bool sends = cqe.is_error() ? cqe.opcode == wire::Cqe::send_error : cqe.is_send != 0;
	if ((sends ? kern::read_once(entry.send_cqn) : kern::read_once(entry.recv_cqn)) != number())
		[[unlikely]]
		return nullptr;
	return entry.qp->number() == qpn ? entry.qp : nullptr;
}

bool Cq::translate_of(const wire::Cqe &cqe, ib_wc &wc, Qp &qp)
{
	wc.qp = &qp.verbs();
	wc.vendor_err = 0;
	if (cqe.is_error()) [[unlikely]]
		return translate_error(cqe, wc, qp);
	return cqe.is_send ? translate_send(cqe, wc, qp) : translate_receive(cqe, wc, qp);
}

bool Cq::translate(const wire::Cqe &cqe, ib_wc &wc)
{
	if (cqe.opcode == remains_opcode) [[unlikely]]
		return members_.take(cqe.qpn, wc) ||
		       bogus(cqe, "completion of nothing that remains");
	// Completions mostly come in runs, of one QP in one direction.
	// 24 bits: with more, the card could make it no_key.
	const u32 key = (cqe.qpn & 0xffffff) << 1 |
			(cqe.is_error() ? cqe.opcode == wire::Cqe::send_error : cqe.is_send != 0);
	if (key != last_key_) [[unlikely]] {
		Qp *qp = qp_of(cqe);
		if (!qp)
			return bogus(cqe, "completion of no QP of this CQ");
		last_qp_ = qp;
		last_key_ = key;
	}
	return translate_of(cqe, wc, *last_qp_);
}

int Cq::poll(int count, ib_wc *wc)
{
	kern::Guard guard(lock_);
	const u32 first = consumer_;
	u32 skipped = 0;
	int got = 0;
	while (got < count && look()) {
		// What the entry says is younger than its owner bit.
		kern::dma_rmb();
		wire::Cqe &entry = ring_.at(consumer_);
		// A copy, which the card cannot change between one look at it and the next.
		wire::Cqe cqe;
		__builtin_memcpy(&cqe, &entry, sizeof(cqe));
		kern::dma_rmb();
		const bool translated = translate(cqe, wc[got]);
		// Before the card hears of it.
		kern::write_once(entry.owner, wire::Cqe::owner_bit);
		consumer_++;
		if (translated) [[likely]]
			got++;
		else if (++skipped >> ring_.log_entries)
			break;
	}
	if (consumer_ != first)
		report_consumer();
	if (got == 0 && hca_.failed()) [[unlikely]]
		return members_.take_unflushed(count, wc);
	return got;
}

int Cq::poll(ib_cq *cq, int count, ib_wc *wc)
{
	return of(cq).poll(count, wc);
}

int Cq::peek(int count)
{
	kern::Guard guard(lock_);
	const u32 found = end_locked() - consumer_;
	return found < static_cast<u32>(count) ? static_cast<int>(found) : count;
}

int Cq::request_notify(ib_cq *cq, ib_cq_notify_flags flags)
{
	using namespace wire::uar;
	static_assert(cq_arm_solicited == IB_CQ_SOLICITED && cq_arm_next == IB_CQ_NEXT_COMP);
	Cq &self = of(cq);
	const u32 command = static_cast<u32>(flags & ~IB_CQ_REPORT_MISSED_EVENTS);
	if (command - IB_CQ_SOLICITED > IB_CQ_NEXT_COMP - IB_CQ_SOLICITED) [[unlikely]]
		return -EINVAL;
	const u32 sequence = kern::read_once(self.sequence_) & 3;
	const u32 consumer = __atomic_load_n(self.consumer_record_, __ATOMIC_RELAXED);
	// First the record, which the card may look at, then the doorbell. The card raises an event
	// for what is already there from `consumer` on, so nothing is missed and the answer is
	// always 0 (NOTIFY-06).
	__atomic_store_n(
		self.arm_record_ + 1,
		__builtin_bswap32(wire::DoorbellRecord::number.in(self.number()) |
				  wire::DoorbellRecord::type.in(wire::record_type::cq_arm) |
				  wire::DoorbellRecord::arm_sequence.in(sequence) |
				  wire::DoorbellRecord::arm_command.in(command)),
		__ATOMIC_RELAXED);
	__atomic_store_n(self.arm_record_, consumer, __ATOMIC_RELEASE);
	const u32 first =
		cq_sequence.in(sequence) | cq_command.in(command) | cq_cqn.in(self.number());
	self.uar_.write64(cq_doorbell, u64{consumer} << 32 | __builtin_bswap32(first));
	return 0;
}

} // namespace infinihost
