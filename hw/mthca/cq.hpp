// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements completion queues of an InfiniHost: creation, resizing, arming and polling.
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
	 * Creates the queue and passes it to the card. udata: of a program, whose memory then
	 * contains the ring; nullptr for a kernel's queue. May sleep.
	 */
	kern::Result<> start(const ib_cq_init_attr &attr, ib_udata *udata);
	/*
	 * Replaces start() in a test without a card: the ring can be polled and armed. Each record
	 * has two words. Errors: ENOMEM. May sleep.
	 */
	kern::Result<> start_without_card(u32 log_entries, struct device *dma_device,
					  u32 *consumer_record, u32 *arm_record);

	/* These implement the verbs. Context: any. */
	static int poll(ib_cq *cq, int count, ib_wc *wc);
	static int request_notify(ib_cq *cq, ib_cq_notify_flags flags);
	int peek(int count);
	/* May sleep. */
	kern::Result<> resize(unsigned int entries, ib_udata *udata);

	/* Called when the card reports a completion. Context: hard interrupt. */
	void event()
	{
		events_++;
		// By this number, the card distinguishes a new arming from a repeated one. A poll
		// that reads the new number sees the entries for which the event was raised.
		__atomic_store_n(&sequence_, sequence_ + 1, __ATOMIC_RELEASE);
		verbs_.comp_handler(&verbs_, verbs_.cq_context);
	}

	/* Prints the queue, for debugfs. May sleep. */
	void dump(kern::debugfs::Output &out);

	/* For tests. */
	wire::Cqe &entry(u32 index) { return ring_.at(index); }
	u64 bogus_entries() const { return bogus_entries_; }

private:
	friend CqControl;

	/*
	 * Matches no entry, because only the direction is stored in the bits outside the QP number.
	 */
	static constexpr u32 no_key = ~0u;

	/* For a program's ring, only the size is set: the kernel does not read its memory. */
	struct Ring {
		kern::DmaBuffer memory;
		wire::Cqe *entries = nullptr;
		u32 mask = 0;
		u32 log_entries = 0;

		wire::Cqe &at(u32 index) const { return entries[index & mask]; }
		bool owned(u32 index) const { return !(last_word(at(index)) & owner_in_last); }
	};
	/*
	 * Returns the last word of an entry, read once, in CPU byte order. It contains the owner
	 * bit, the direction and the opcode.
	 */
	static u32 last_word(const wire::Cqe &cqe)
	{
		u32 word;
		static_assert(__builtin_offsetof(wire::Cqe, owner) == 31);
		__atomic_load(reinterpret_cast<const u32 *>(&cqe.opcode), &word, __ATOMIC_RELAXED);
		return word;
	}
	static constexpr u32 owner_in_last = u32{wire::Cqe::owner_bit} << 24;
	/* Returns the opcode of an entry and, in the bit above it, whether it completes a send. */
	static u32 kind_of(u32 last)
	{
		return (last & 0xff) | (last & u32{wire::Cqe::send_bit} << 8) >> 7;
	}
	static kern::Result<Ring> make_ring(u32 log_entries, struct device *dma_device);
	kern::Result<> create_ring(u32 log_entries, struct device *dma_device);
	/* Sets the addresses of the records. The number must have been allocated. */
	void use_records(u32 *consumer_record, u32 *arm_record);
	/* These write the locations of the ring and its records into the context. */
	kern::Result<> create_kernel_ring(u32 log_entries, u8 *context);
	kern::Result<> use_user_ring(u32 log_entries, u8 *context, ib_udata &udata);
	kern::Result<> resize_user(u32 log_entries, ib_udata &udata);
	kern::Result<> command_resize(u32 log_entries, u64 start, u32 lkey);

	int poll(int count, ib_wc *wc);
	/*
	 * Returns true if an entry may wait to be polled for which no other event will be raised.
	 * Context: any.
	 */
	bool missed_event()
	{
		return kern::read_once(sequence_) != kern::read_once(sequence_at_empty_) &&
		       peek(1) > 0;
	}
	/*
	 * Converts an entry to a work completion. Returns false if the entry is invalid. kind: from
	 * kind_of(); opcode: the work completion's opcode.
	 */
	bool translate(const wire::Cqe &cqe, u32 kind, u8 opcode, ib_wc &wc) KERN_REQUIRES(lock_);
	bool translate_of(const wire::Cqe &cqe, u32 kind, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_send(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_receive(const wire::Cqe &cqe, u32 kind, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_unusual(const wire::Cqe &cqe, u32 kind, ib_wc &wc) KERN_REQUIRES(lock_);
	/* opcode: the opcode of the entry. */
	bool translate_error(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp);
	/* Retires the request of an entry. Returns false if no such request is outstanding. */
	bool retire_send(const wire::Cqe &cqe, Qp &qp, u64 &id);
	/*
	 * Retires a receive request of a QP without its own receive ring. Returns its length, or
	 * not_posted.
	 */
	s64 retire_shared(const wire::Cqe &cqe, Qp &qp, u64 &id);
	/* Saves the QP's completions that have not been polled. Returns their number. */
	u32 save_completions(Qp &qp) KERN_REQUIRES(lock_);
	static bool is_entry_of(const wire::Cqe &cqe, const Qp &qp);
	/* Returns the index behind the last entry that software owns. */
	u32 end_locked() const KERN_REQUIRES(lock_);
	/*
	 * If the entry at this index is in the new ring, switches to that ring. Returns true if it
	 * has.
	 */
	bool switch_ring(u32 index) KERN_REQUIRES(lock_);
	/* Removes the entries of a QP. Their receive requests are returned to its SRQ. */
	void purge_locked(const Qp &qp) KERN_REQUIRES(lock_);
	/* Returns the QP of an entry, or nullptr. */
	Qp *qp_of(const wire::Cqe &cqe, bool sends) KERN_REQUIRES(lock_);
	bool bogus(const wire::Cqe &cqe, const char *what);
	/* Returns the entries before `consumer_` to the card. */
	void report_consumer() KERN_REQUIRES(lock_)
	{
		__atomic_store_n(consumer_record_, __builtin_bswap32(consumer_), __ATOMIC_RELEASE);
	}

	// Fields that polling and arming access are adjacent.
	kern::IrqSpinLock lock_;
	u32 consumer_ = 0;
	// sequence_ is incremented with each event. sequence_at_empty_ is its value when a poll
	// last found the ring empty. If both are equal, no event has been raised for an entry that
	// has not been polled.
	u32 sequence_ = 1;
	u32 sequence_at_empty_ = 1;
	Ring ring_;
	u32 *consumer_record_ = nullptr;
	u32 *arm_record_ = nullptr;
	// The CQ number in the format of the record's second word, which includes its type, and in
	// the format of the doorbell's first word.
	u32 arm_word_ = 0, arm_doorbell_ = 0;
	// Cache for the last entry: the QP number with the direction, and the QP.
	u32 last_key_ = no_key;
	Qp *last_qp_ = nullptr;
	QpEntry *qps_;
	u32 qp_mask_;
	kern::Mmio uar_;
	bool reported_ = false;

	ib_cq &verbs_;
	Hca &hca_;
	// Entries reserved for completion events and for the asynchronous event.
	kern::BudgetCharge event_capacity_;
	mellanox_icm::EventCapacity error_capacity_;
	Number number_;
	Record consumer_held_, arm_held_;
	StaleCompletions stale_;
	// Used for a program's queue instead of kernel memory and records.
	UserRegion user_region_;
	UserRecord user_consumer_, user_arm_;
	u32 user_pdn_ = 0;
	IcmHold context_;
	bool live_ = false;

	// During a resize: the ring to which the card switches at one of the next indices.
	kern::Mutex resize_lock_;
	Ring next_ring_;
	StaleCompletions next_stale_;
	bool resizing_ = false;

	CqMembers<Hca, Qp> members_ KERN_GUARDED_BY(lock_);
	u64 bogus_entries_ = 0;
	u64 events_ = 0;
};

} // namespace mthca
