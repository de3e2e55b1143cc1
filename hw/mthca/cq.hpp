// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Completion queues of an InfiniHost: creation, resizing, arming and polling.
#pragma once
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/mthca/cqe.hpp>
#include "../mellanox_icm/cq_control.hpp"
#include "hca.hpp"
#include "qp.hpp"
#include "user_context.hpp"

namespace mthca
{

class Srq;

class Cq : public CqControl<Cq, Qp>
{
public:
	using Object = rdma::DriverObject<ib_cq, Cq>;
	static Cq &of(ib_cq *cq) { return Object::state(cq); }

	Cq(Hca &hca, ib_cq &verbs);
	~Cq();
	/*
	 * Gives the queue to the card. udata: of a program, in whose memory it then lies. May
	 * sleep.
	 */
	kern::Result<> start(const ib_cq_init_attr &attr, ib_udata *udata);
	/*
	 * In place of start(), for a test without a card: the ring can be polled and armed. The
	 * records have two words each. Errors: ENOMEM. May sleep.
	 */
	kern::Result<> start_without_card(u32 log_entries, struct device *dma_device,
					  u32 *consumer_record, u32 *arm_record);

	/* The verbs. Any context. */
	static int poll(ib_cq *cq, int count, ib_wc *wc);
	static int request_notify(ib_cq *cq, ib_cq_notify_flags flags);
	int peek(int count);
	/* May sleep. */
	kern::Result<> resize(unsigned int entries, ib_udata *udata);

	/* The card reports a completion. Context: hard interrupt. */
	void event()
	{
		events_++;
		// The card knows a new arming from a repeated one by this. A poll that reads it
		// sees the entries for which the event was raised.
		__atomic_store_n(&sequence_, sequence_ + 1, __ATOMIC_RELEASE);
		verbs_.comp_handler(&verbs_, verbs_.cq_context);
	}

	/* For debugfs. May sleep. */
	void dump(kern::debugfs::Output &out);

	/* For tests. */
	wire::Cqe &entry(u32 index) { return ring_.at(index); }
	u64 bogus_entries() const { return bogus_entries_; }

private:
	friend CqControl;

	/* Matches no entry: only the direction is in the bits outside the number. */
	static constexpr u32 no_key = ~0u;

	/* A program's ring has only a size: the kernel does not read its memory. */
	struct Ring {
		kern::DmaBuffer memory;
		wire::Cqe *entries = nullptr;
		u32 mask = 0;
		u32 log_entries = 0;

		wire::Cqe &at(u32 index) const { return entries[index & mask]; }
		bool owned(u32 index) const { return !(last_word(at(index)) & owner_in_last); }
	};
	/* The kind of an entry: its last word, read once, in CPU byte order. */
	static u32 last_word(const wire::Cqe &cqe)
	{
		u32 word;
		static_assert(__builtin_offsetof(wire::Cqe, owner) == 31);
		__atomic_load(reinterpret_cast<const u32 *>(&cqe.opcode), &word, __ATOMIC_RELAXED);
		return word;
	}
	static constexpr u32 owner_in_last = u32{wire::Cqe::owner_bit} << 24;
	/* The opcode of an entry and, above it, whether it was a send. */
	static u32 kind_of(u32 last)
	{
		return (last & 0xff) | (last & u32{wire::Cqe::send_bit} << 8) >> 7;
	}
	static kern::Result<Ring> make_ring(u32 log_entries, struct device *dma_device);
	kern::Result<> create_ring(u32 log_entries, struct device *dma_device);
	/* Called when the number is known. */
	void use_records(u32 *consumer_record, u32 *arm_record);
	/* Each writes the positions of the queue and its records into the context. */
	kern::Result<> make_own_ring(u32 log_entries, u8 *context);
	kern::Result<> take_user_ring(u32 log_entries, u8 *context, ib_udata &udata);
	kern::Result<> resize_user(u32 log_entries, ib_udata &udata);
	kern::Result<> command_resize(u32 log_entries, u64 start, u32 lkey);

	int poll(int count, ib_wc *wc);
	/* An entry may wait for which no other event will be raised. Any context. */
	bool missed_event()
	{
		return kern::read_once(sequence_) != kern::read_once(sequence_at_empty_) &&
		       peek(1) > 0;
	}
	/*
	 * Writes the completion of one entry to wc; returns false for an entry that is none. kind:
	 * from kind_of(); opcode: the completion's, as in ib_wc.
	 */
	bool translate(const wire::Cqe &cqe, u32 kind, u8 opcode, ib_wc &wc) KERN_REQUIRES(lock_);
	bool translate_of(const wire::Cqe &cqe, u32 kind, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_send(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_receive(const wire::Cqe &cqe, u32 kind, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_unusual(const wire::Cqe &cqe, u32 kind, ib_wc &wc) KERN_REQUIRES(lock_);
	/* opcode: the entry's. */
	bool translate_error(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp);
	/* The request of an entry: false, or not_posted, if none is outstanding there. */
	bool retire_send(const wire::Cqe &cqe, Qp &qp, u64 &id);
	/* Retires a receive of a QP without its own receive ring. */
	s64 retire_shared(const wire::Cqe &cqe, Qp &qp, u64 &id);
	/* Saves the QP's completions that have not been polled: returns their number. */
	u32 save_completions(Qp &qp) KERN_REQUIRES(lock_);
	static bool is_of(const wire::Cqe &cqe, const Qp &qp);
	/* The index after the last entry that software owns. */
	u32 end_locked() const KERN_REQUIRES(lock_);
	/* If the entry at this index is in the new ring, switches to that ring. */
	bool switch_ring(u32 index) KERN_REQUIRES(lock_);
	/* Takes the entries of a QP out; their receives go back to its SRQ. */
	void purge_locked(const Qp &qp) KERN_REQUIRES(lock_);
	/* The QP of an entry, or nullptr. */
	Qp *qp_of(const wire::Cqe &cqe, bool sends) KERN_REQUIRES(lock_);
	bool bogus(const wire::Cqe &cqe, const char *what);
	/* Entries before `consumer_` are the card's again. */
	void report_consumer() KERN_REQUIRES(lock_)
	{
		__atomic_store_n(consumer_record_, __builtin_bswap32(consumer_), __ATOMIC_RELEASE);
	}

	// Fields that polling and arming access, together.
	kern::IrqSpinLock lock_;
	u32 consumer_ = 0;
	// Incremented with each event; and its value when a poll last found the ring empty. As long
	// as they are equal, no event has been raised for an entry that still waits to be polled.
	u32 sequence_ = 1;
	u32 sequence_at_empty_ = 1;
	Ring ring_;
	u32 *consumer_record_ = nullptr;
	u32 *arm_record_ = nullptr;
	// The number in the formats of the record's second word, which includes its type, and of
	// the doorbell's first word.
	u32 arm_word_ = 0, arm_doorbell_ = 0;
	// Cache of the last entry: its QP's number and direction, and the QP found.
	u32 last_key_ = no_key;
	Qp *last_qp_ = nullptr;
	QpEntry *qps_;
	u32 qp_mask_;
	kern::Mmio uar_;
	bool reported_ = false;

	ib_cq &verbs_;
	Hca &hca_;
	// Space for its completion events, and for its one asynchronous event.
	kern::BudgetCharge event_capacity_;
	mellanox_icm::EventCapacity error_capacity_;
	Number number_;
	Record consumer_held_, arm_held_;
	StaleCompletions stale_;
	// A program's queue uses this instead of kernel memory and records.
	UserRegion user_region_;
	UserRecord user_consumer_, user_arm_;
	u32 user_pdn_ = 0;
	IcmHold context_;
	bool live_ = false;

	// A resize in progress: the ring in which the card continues at the next index.
	kern::Mutex resize_lock_;
	Ring next_ring_;
	StaleCompletions next_stale_;
	bool resizing_ = false;

	CqMembers<Hca, Qp> members_ KERN_GUARDED_BY(lock_);
	u64 bogus_entries_ = 0;
	u64 events_ = 0;
};

} // namespace mthca
