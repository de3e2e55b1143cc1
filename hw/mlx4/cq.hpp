// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements completion queues of a ConnectX: creation, resizing, arming and polling.
#pragma once
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/mlx4/cqe.hpp>
#include "../mellanox_icm/cq_control.hpp"
#include "doorbell.hpp"
#include "hca.hpp"
#include "qp.hpp"
#include "user_queue.hpp"

namespace mlx4
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
	 * Creates the queue on the card. attr: as in the verb; udata: of a program, whose memory
	 * then contains the ring; nullptr for a kernel's queue. May sleep.
	 */
	kern::Result<> start(const ib_cq_init_attr &attr, ib_udata *udata = nullptr);
	/* Replaces start() in a test without a card. The record has two words. */
	void start_without_card(u32 number, u32 consumer, u32 *record);

	/* These implement the verbs. Context: any. */
	static int poll(ib_cq *cq, int count, ib_wc *wc);
	static int request_notify(ib_cq *cq, ib_cq_notify_flags flags);
	int peek(int count);
	/* These implement the verbs. May sleep. */
	kern::Result<> moderate(u16 count, u16 period_us);
	kern::Result<> resize(unsigned int entries, ib_udata *udata);

	/* Called when the card reports a completion. Context: hard interrupt. */
	void event()
	{
		// A poll that reads the new count sees the entries for which the event was raised.
		__atomic_store_n(&events_, events_ + 1, __ATOMIC_RELEASE);
		kern::write_once(arm_word_,
				 (arm_word_ & ~arm_sequence_mask) |
					 ((arm_word_ + arm_sequence_step) & arm_sequence_mask));
		verbs_.comp_handler(&verbs_, verbs_.cq_context);
	}

	/* Does the same as detach() for an XRC target QP whose domain has SRQs that use this CQ. */
	u32 detach_target(Qp &qp);
	using CqControl::attach;
	using CqControl::detach;
	/* Adds an XRC SRQ of this domain, whose receives complete in this CQ. */
	void attach(Srq &srq, u32 domain);
	/* Removes an SRQ that is being destroyed, and drops its remaining entries. May sleep. */
	void detach(Srq &srq);
	/* Prints the queue, for debugfs. May sleep. */
	void dump(kern::debugfs::Output &out);

	/* For tests: set the ring; drop the oldest entry. */
	void use_ring(wire::Cqe *entries, u32 log_entries);
	void drop_entry() { report_consumer(++consumer_); }

private:
	friend CqControl;

	/* The card never writes this opcode. */
	static constexpr u8 stale_opcode = wire::Cqe::opcode_mask;

	/*
	 * Matches no entry, because only the direction is stored in the bits outside the QP number.
	 */
	static constexpr u32 no_key = ~0u;
	/*
	 * The first byte of an arming doorbell, in memory order, contains the sequence number of
	 * events.
	 */
	static constexpr u32 arm_sequence_step = 1u << (wire::uar::cq_doorbell_sequence.low - 24);
	static constexpr u32 arm_sequence_mask = 3 * arm_sequence_step;

	const wire::Cqe *entry(u32 index) const
	{
		return reinterpret_cast<const wire::Cqe *>(entries_ +
							   (index & mask_) * sizeof(wire::Cqe));
	}
	bool owned(const wire::Cqe *cqe, u32 index) const
	{
		return (kind_of(cqe, index) & wire::Cqe::owner_bit) == 0;
	}
	/*
	 * Returns the last byte of an entry, with a clear owner bit if software owns the entry at
	 * this index.
	 */
	u8 kind_of(const wire::Cqe *cqe, u32 index) const
	{
		return static_cast<u8>(kern::read_once(cqe->owner_opcode) ^ index >> log_entries_
											     << 7);
	}
	int poll(int count, ib_wc *wc);
	/*
	 * Returns true if an entry may wait to be polled for which no other event will be raised.
	 * Context: any.
	 */
	bool missed_event()
	{
		return kern::read_once(events_) != kern::read_once(events_at_empty_) && peek(1) > 0;
	}
	/*
	 * Converts an entry to a work completion. Returns false if the entry is invalid. opcode:
	 * the work completion's opcode.
	 */
	bool translate(const wire::Cqe &cqe, u8 kind, u8 opcode, ib_wc &wc) KERN_REQUIRES(lock_);
	bool translate_of(const wire::Cqe &cqe, u8 kind, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_send(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_receive(const wire::Cqe &cqe, u8 opcode, ib_wc &wc, Qp &qp);
	bool translate_unusual(const wire::Cqe &cqe, ib_wc &wc) KERN_REQUIRES(lock_);
	bool translate_error(const wire::Cqe &cqe, ib_wc &wc, Qp &qp);
	/* Saves the QP's completions that have not been polled. Returns their number. */
	u32 save_completions(Qp &qp) KERN_REQUIRES(lock_);
	static bool is_entry_of(const wire::Cqe &cqe, const Qp &qp)
	{
		return cqe.qpn() == qp.number() && cqe.opcode() != stale_opcode &&
		       cqe.opcode() != wire::cqe_opcode_resize;
	}
	/* Returns the index behind the last entry that software owns. */
	u32 end_locked() const KERN_REQUIRES(lock_);
	/*
	 * Retires the receive request of a QP without its own receive ring. Returns its length, or
	 * not_posted.
	 */
	s64 retire_shared(const wire::Cqe &cqe, Qp &qp, u64 &id);
	bool switch_ring() KERN_REQUIRES(lock_);
	/*
	 * Removes the entries for which `unwanted` returns true. It must have returned their
	 * receive requests to the SRQ.
	 */
	template<class Predicate>
	void purge_locked(Predicate unwanted) KERN_REQUIRES(lock_);
	void purge_locked(const Qp &qp) KERN_REQUIRES(lock_);
	static void release_wqe(const wire::Cqe &cqe, Srq *srq);
	/* Returns the SRQ through which the QP has received, or nullptr. */
	Srq *shared_queue(const wire::Cqe &cqe, const Qp &qp);
	/* Returns the QP of an entry, or nullptr. */
	Qp *qp_of(const wire::Cqe &cqe) KERN_REQUIRES(lock_);
	bool bogus(const wire::Cqe &cqe, const char *what);
	void report_consumer(u32 index)
	{
		__atomic_store_n(record_, __builtin_bswap32(index & 0xffffff), __ATOMIC_RELAXED);
	}
	kern::Result<QueueBuffer> make_ring(u32 log_entries);
	/* Sets the CQ number in the arming doorbell. The number must have been allocated. */
	void prepare_arming(u32 number)
	{
		arm_word_ = __builtin_bswap32(number) | arm_sequence_step;
	}
	kern::Result<> create_kernel_ring(u32 log_entries);
	kern::Result<> use_user_ring(u32 log_entries, ib_udata &udata);
	/*
	 * The program's library copies the entries of the old ring. May wait for the program's
	 * memory.
	 */
	kern::Result<> resize_user(u32 log_entries, ib_udata &udata) KERN_EXCLUDES(resize_lock_);
	/* Executes the resize command with the new ring. */
	kern::Result<> command_resize(u32 log_entries, u32 log_page_size, u64 mtt_offset);
	QueuePlace place() const
	{
		return {hca_.uar_page(), buffer_.log_page_size(), buffer_.mtt_offset(),
			doorbell_.bus_address()};
	}

	// Fields that polling and arming access are adjacent.
	kern::IrqSpinLock lock_;
	u32 consumer_ = 0;
	u32 log_entries_ = 0;
	u32 mask_ = 0;
	// Cache for the last entry: the QP number with the direction, and the QP.
	u32 last_key_ = no_key;
	Qp *last_qp_ = nullptr;
	u8 *entries_ = nullptr;
	u32 *record_ = nullptr;
	QpEntry *qps_;
	u32 qp_mask_;
	// The first word of an arming doorbell, without the command.
	u32 arm_word_ = 0;
	// events_ is the number of events so far. events_at_empty_ is that number when a poll last
	// found the ring empty. If both are equal, no event has been raised for an entry that has
	// not been polled.
	u32 events_ = 0;
	u32 events_at_empty_ = 0;
	kern::Mmio uar_;
	bool checksums_;
	bool reported_ = false;

	ib_cq &verbs_;
	Hca &hca_;
	// Entries reserved for completion events and for the asynchronous event.
	kern::BudgetCharge event_capacity_;
	mellanox_icm::EventCapacity error_capacity_;
	Number number_;
	DoorbellRecord doorbell_;
	QueueBuffer buffer_;
	StaleCompletions stale_;
	// Used for a program's CQ, which has no entries_, instead of buffer_ and doorbell_.
	UserQueue user_;
	IcmHold context_, protection_;
	bool live_ = false;

	// During a resize: the ring in which the card continues after the marker entry.
	kern::Mutex resize_lock_;
	QueueBuffer next_buffer_;
	StaleCompletions next_stale_;
	u32 next_log_entries_ = 0;
	bool resizing_ = false;

	CqMembers<Hca, Qp> members_ KERN_GUARDED_BY(lock_);
	u64 bogus_entries_ = 0;
};

} // namespace mlx4
