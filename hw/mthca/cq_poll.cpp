// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts completion queue entries to work completions.
#include "cq.hpp"
#include <kern/log.hpp>
#include "../mellanox_icm/syndromes.hpp"
#include "qp.hpp"
#include "srq.hpp"

namespace mthca
{

namespace
{

/* Marks opcodes that are not those of ordinary completions. */
constexpr u8 unusual = 0xff;

/*
 * The ib_wc_opcode of a completion, or `unusual`, indexed by the opcode in the entry and, in the
 * bit above it, the direction. A receive has the opcode of its packet. Its low bits distinguish the
 * last or only packet of a message with immediate data.
 */
struct Opcodes {
	static constexpr u32 sends = 1u << 8;
	u8 verbs[2 * sends];

	constexpr Opcodes() : verbs{}
	{
		using wire::WqeOpcode;
		for (u8 &opcode : verbs)
			opcode = unusual;
		const auto set = [this](WqeOpcode from, ib_wc_opcode to) {
			verbs[sends | static_cast<u8>(from)] = static_cast<u8>(to);
		};
		set(WqeOpcode::send, IB_WC_SEND);
		set(WqeOpcode::send_imm, IB_WC_SEND);
		set(WqeOpcode::rdma_write, IB_WC_RDMA_WRITE);
		set(WqeOpcode::rdma_write_imm, IB_WC_RDMA_WRITE);
		set(WqeOpcode::rdma_read, IB_WC_RDMA_READ);
		set(WqeOpcode::compare_swap, IB_WC_COMP_SWAP);
		set(WqeOpcode::fetch_add, IB_WC_FETCH_ADD);
		// A receive with any other opcode has also consumed its request.
		for (u32 opcode = 0; opcode < sends; opcode++)
			if (opcode != wire::Cqe::send_error && opcode != wire::Cqe::receive_error &&
			    opcode != wire::Cqe::stale)
				verbs[opcode] = is_write_imm(opcode) ? IB_WC_RECV_RDMA_WITH_IMM
								     : IB_WC_RECV;
	}

	static constexpr u32 receive_mask = 0x1f;
	static constexpr bool is_send_imm(u32 opcode)
	{
		return (opcode & receive_mask) == 0x03 ||
		       (opcode & receive_mask) == static_cast<u8>(wire::ReceiveOpcode::send_imm);
	}
	static constexpr bool is_write_imm(u32 opcode)
	{
		return (opcode & receive_mask) == 0x09 ||
		       (opcode & receive_mask) ==
			       static_cast<u8>(wire::ReceiveOpcode::rdma_write_imm);
	}
};
constexpr Opcodes opcodes;

} // namespace

bool Cq::bogus(const wire::Cqe &cqe, const char *what)
{
	bogus_entries_++;
	if (!reported_)
		kern_dev_error(hca_.dma_device(),
			       "CQ %u: %s (QPN %#x, opcode %#x); later ones are only counted\n",
			       number(), what, cqe.qpn.value(), cqe.opcode);
	reported_ = true;
	return false;
}

[[gnu::always_inline]] inline bool Cq::retire_send(const wire::Cqe &cqe, Qp &qp, u64 &id)
{
	// If the address is outside the ring, the distance is larger than the ring, and there is no
	// such request.
	const u32 index = (cqe.wqe_address - qp.sq_base()) >> qp.sq.log_stride;
	const u32 mask = qp.sq.mask;
	if (index > mask) [[unlikely]]
		return false;
	return retire_sends_ahead(qp.sq, (index - qp.sq.tail) & mask, id);
}

s64 Cq::retire_shared(const wire::Cqe &cqe, Qp &qp, u64 &id)
{
	return qp.srq ? qp.srq->complete(cqe.wqe_address, id) : not_posted;
}

[[gnu::always_inline]] inline bool Cq::translate_send(const wire::Cqe &cqe, u8 opcode, ib_wc &wc,
						      Qp &qp)
{
	if (!retire_send(cqe, qp, wc.wr_id)) [[unlikely]]
		return bogus(cqe, "completion of no send");
	wc.status = IB_WC_SUCCESS;
	wc.opcode = static_cast<ib_wc_opcode>(opcode);
	wc.wc_flags = 0;
	// Only reads and atomics return data. Their length is that of the request.
	wc.byte_len = opcode == IB_WC_RDMA_READ ? cqe.byte_count.value() : 8;
	return true;
}

[[gnu::always_inline]] inline bool Cq::translate_receive(const wire::Cqe &cqe, u32 kind, u8 opcode,
							 ib_wc &wc, Qp &qp)
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
	if (opcode == IB_WC_RECV_RDMA_WITH_IMM) [[unlikely]] {
		// The data was written to the address in the packet, not to the receive buffer.
		capacity = length;
		flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cqe.immediate;
	} else if (Opcodes::is_send_imm(kind)) {
		flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cqe.immediate;
	}
	// The consumer relies on the length, so a faulty card must not make it read beyond its
	// buffer.
	if (length > capacity) [[unlikely]] {
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
		static_assert(IB_WC_GRH == 1);
		flags |= static_cast<int>(source >> 23 & 1);
	}
	wc.wc_flags = flags;
	return true;
}

bool Cq::translate_unusual(const wire::Cqe &cqe, u32 kind, ib_wc &wc)
{
	const u8 opcode = static_cast<u8>(kind);
	// The ring and the saved completions use the same indices.
	if (opcode == wire::Cqe::stale)
		return stale_.take(static_cast<u32>(&cqe - ring_.entries), wc) ||
		       bogus(cqe, "no completion was saved for this entry");
	// For an error, only the opcode distinguishes a send from a receive.
	const bool error = opcode == wire::Cqe::send_error || opcode == wire::Cqe::receive_error;
	Qp *qp = qp_of(cqe, error ? opcode == wire::Cqe::send_error : true);
	if (!qp)
		return bogus(cqe, "completion of no QP of this CQ");
	return error ? translate_error(cqe, opcode, wc, *qp) : bogus(cqe, "completion of no send");
}

bool Cq::translate_error(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp)
{
	if (opcode == wire::Cqe::send_error) {
		if (!retire_send(cqe, qp, wc.wr_id))
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
	wc.status = status_of(cqe.syndrome());
	wc.vendor_err = cqe.immediate >> 16 & 0xff;
	wc.byte_len = 0;
	wc.wc_flags = 0;
	return true;
}

Qp *Cq::qp_of(const wire::Cqe &cqe, bool sends)
{
	const u32 qpn = cqe.qpn;
	const QpEntry &entry = qps_[qpn & qp_mask_];
	if ((sends ? kern::read_once(entry.send_cqn) : kern::read_once(entry.recv_cqn)) != number())
		[[unlikely]]
		return nullptr;
	return entry.qp->number() == qpn ? entry.qp : nullptr;
}

/*
 * The attribute inlines the function into poll(), which the compiler does not do for two callers.
 */
[[gnu::always_inline]] inline bool Cq::translate_of(const wire::Cqe &cqe, u32 kind, u8 opcode,
						    ib_wc &wc, Qp &qp)
{
	wc.qp = &qp.verbs();
	wc.vendor_err = 0;
	return opcode & IB_WC_RECV ? translate_receive(cqe, kind, opcode, wc, qp)
				   : translate_send(cqe, opcode, wc, qp);
}

[[gnu::always_inline]] inline bool Cq::translate(const wire::Cqe &cqe, u32 kind, u8 opcode,
						 ib_wc &wc)
{
	// Completions usually arrive in runs of one QP and one direction. The QP number has 24
	// bits; if more were compared, the card could make the key equal to no_key.
	const u32 key = (cqe.qpn.raw() & ~0xffu) | (kind & Opcodes::sends) >> 8;
	if (key != last_key_) [[unlikely]] {
		Qp *qp = qp_of(cqe, (kind & Opcodes::sends) != 0);
		if (!qp)
			return bogus(cqe, "completion of no QP of this CQ");
		last_qp_ = qp;
		last_key_ = key;
	}
	return translate_of(cqe, kind, opcode, wc, *last_qp_);
}

u32 Cq::save_completions(Qp &qp)
{
	last_key_ = no_key;
	return members_.save(qp, consumer_, end_locked(), stale_, [&](u32 at, ib_wc &wc) {
		wire::Cqe &cqe = ring_.at(at);
		if (!is_entry_of(cqe, qp))
			return false;
		const u32 kind = kind_of(last_word(cqe));
		const u8 opcode = opcodes.verbs[kind];
		const bool translated =
			opcode != unusual
				? translate_of(cqe, kind, opcode, wc, qp)
				: cqe.is_error() && translate_error(cqe, cqe.opcode, wc, qp);
		if (translated)
			kern::write_once(cqe.opcode, wire::Cqe::stale);
		return translated;
	});
}

[[gnu::always_inline]] inline int Cq::poll(int count, ib_wc *wc)
{
	kern::Guard guard(lock_);
	const u32 sequence = __atomic_load_n(&sequence_, __ATOMIC_ACQUIRE);
	u32 at = consumer_;
	int got = 0;
	while (got < count) {
		wire::Cqe &cqe = ring_.at(at);
		const u32 last = last_word(cqe);
		if (last & owner_in_last) {
			if (resizing_ && switch_ring(at)) [[unlikely]]
				continue;
			kern::write_once(sequence_at_empty_, sequence);
			break;
		}
		// Read the entry's contents only after its owner bit.
		kern::dma_rmb();
		at++;
		const u32 kind = kind_of(last);
		const u8 opcode = opcodes.verbs[kind];
		const bool translated = opcode != unusual ? translate(cqe, kind, opcode, *wc)
							  : translate_unusual(cqe, kind, *wc);
		// The entry must be marked as the card's before the consumer index is written.
		kern::write_once(cqe.owner, wire::Cqe::owner_bit);
		if (translated) [[likely]] {
			got++;
			wc++;
		} else if ((at - consumer_) >> ring_.log_entries) {
			// Stop after a whole ring of invalid entries.
			break;
		}
	}
	if (at != consumer_) {
		consumer_ = at;
		report_consumer();
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
	// The command and the sequence number are in the last byte of the record, and in the first
	// byte of the doorbell.
	using Record = wire::DoorbellRecord;
	static_assert(Record::arm_sequence.low == 3 && Record::arm_command.low == 0 &&
		      cq_sequence.low == 28 && cq_command.low == 24);
	const u32 last = (sequence << 3 | command) << 24;
	const u32 first = sequence << 4 | command;
	// Write the record first, because the card may read it, and then the doorbell. If an entry
	// from `consumer` on already exists, the card raises an event for it, unless it has raised
	// one for that entry before. In that case, the driver reports the entry (NOTIFY-06).
	__atomic_store_n(self.arm_record_ + 1, self.arm_word_ | last, __ATOMIC_RELAXED);
	__atomic_store_n(self.arm_record_, consumer, __ATOMIC_RELEASE);
	self.uar_.write64(cq_doorbell, u64{consumer} << 32 | self.arm_doorbell_ | first);
	return (flags & IB_CQ_REPORT_MISSED_EVENTS) && self.missed_event();
}

} // namespace mthca
