// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Completion queues. The card raises no event for completions that were in the queue before it was
 * armed (NOTIFY-06). If the consumer asks for missed events to be reported, the driver checks the
 * queue after arming it.
 */
#pragma once
#include <hw/amso1100/work.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include "rnic.hpp"

namespace amso1100
{

class Cq final : public EventHandler
{
public:
	using Object = rdma::DriverObject<ib_cq, Cq>;
	static Cq &of(ib_cq *cq) { return Object::state(cq); }

	Cq(Rnic &rnic, ib_cq &verbs);
	~Cq();
	/* Errors: EINVAL, ENOMEM, those of requests. May sleep. */
	kern::Result<> start(const ib_cq_init_attr &attr);

	/* The verbs. Any context. */
	int poll(int count, ib_wc *wc);
	int request_notify(ib_cq_notify_flags flags);
	int peek(int count);

	/* The card reports a completion. Context: hard interrupt. */
	void hint() override;
	void handle_event(const Message &event) override;
	ib_cq &verbs() { return verbs_; }
	u32 handle() const { return handle_; }

	/* A QP's completions come here from now on, as `entry` says. */
	void attach(QpEntry &entry, const Cq *QpEntry::*place);
	/*
	 * Detaches a QP that the card has stopped using. Its remaining completions outlive it;
	 * returns their number (MGMT-09).
	 */
	u32 detach(QpEntry &entry, const Cq *QpEntry::*place);
	/*
	 * The card has failed: all outstanding requests of a queue of the QP are flushed here, in
	 * order, after those that the card has completed (MGMT-09), unless the QP has been
	 * detached. Called when nothing posts any more; may be repeated.
	 */
	void flush(Qp &qp, const QpEntry &entry, const Cq *QpEntry::*place);
	/* Drops the completions of a QP that stays in use. */
	void purge(const Qp &qp);
	/*
	 * The number of times that the CQ was checked for completions after it was armed
	 * (NOTIFY-05).
	 */
	unsigned long missed_event_checks() const { return missed_event_checks_; }

	/*
	 * The memory that the card accesses, for a test that simulates the card. Valid after
	 * start().
	 */
	struct CardMemory {
		u8 *entries;
		u16 *producer_word;
		const kern::Mmio &shared;
		u32 depth;
		u32 queue_index;
	};
	CardMemory card_memory() const
	{
		return {ring_.as<u8>(), static_cast<u16 *>(word_.memory), shared_, depth_, index_};
	}

private:
	enum class Armed : u8 { no, solicited, next };
	enum class Place : u8 { card, kept, forgotten };
	/* State of a slot's entry that no longer belongs to the card. */
	struct SavedCompletions {
		Place place;
		bool left; /* counted, of a destroyed QP */
		ib_wc wc;
	};

	bool translate(const u8 *entry, ib_wc &wc) KERN_REQUIRES(lock_);
	Qp *qp_of(const u8 *entry) KERN_REQUIRES(lock_);
	const u8 *slot(u32 index) const
	{
		return ring_.as<u8>() + size_t{index} * wire::completion_slot_size;
	}
	/*
	 * Returns the index after the last entry. If the card has violated the interface, it
	 * returns the first.
	 */
	u32 produced() KERN_REQUIRES(lock_);
	u32 following(u32 index) const { return index + 1 == depth_ ? 0 : index + 1; }
	template<class Body>
	void for_each(const Qp &qp, Body body) KERN_REQUIRES(lock_);
	/* Saves the completions of a QP that the card has written. */
	void keep(Qp &qp) KERN_REQUIRES(lock_);
	void stop();

	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("weft_amso1100_cq")};
	u32 consumer_ KERN_GUARDED_BY(lock_) = 0;
	/* Used in place of the card's index after the card has failed. */
	u32 end_ KERN_GUARDED_BY(lock_) = 0;
	bool given_up_ KERN_GUARDED_BY(lock_) = false;
	/* There was no space for all flushed completions. */
	bool flush_pending_ KERN_GUARDED_BY(lock_) = false;
	Armed armed_ KERN_GUARDED_BY(lock_) = Armed::no;
	u32 depth_ = 0;
	kern::Mmio shared_;
	kern::DmaPool::Piece word_{};
	kern::DmaBuffer ring_;
	/* Indexed by slot; the card cannot access it. */
	kern::OwnedArray<SavedCompletions> saved_ KERN_GUARDED_BY(lock_);
	unsigned long missed_event_checks_ = 0;
	unsigned long nonsense_ = 0;

	Rnic &rnic_;
	ib_cq &verbs_;
	u32 number_ = 0;
	u32 index_ = 0;
	u32 handle_ = 0;
	bool live_ = false;
};

} // namespace amso1100
