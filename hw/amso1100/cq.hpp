// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements completion queues of the RNIC. The card raises no event for completions that were in
 * the queue before it was armed (NOTIFY-06). If the consumer requests a report of missed events,
 * the driver checks the queue after arming it.
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
	/* Creates the queue on the card. Errors: EINVAL, ENOMEM, those of requests. May sleep. */
	kern::Result<> start(const ib_cq_init_attr &attr);

	/* These implement the verbs. Context: any. */
	int poll(int count, ib_wc *wc);
	int request_notify(ib_cq_notify_flags flags);
	int peek(int count);

	/* Called when the card reports a completion. Context: hard interrupt. */
	void hint() override;
	void handle_event(const Message &event) override;
	ib_cq &verbs() { return verbs_; }
	u32 handle() const { return handle_; }

	/*
	 * Sets this CQ as that for the sends or the receives of a QP, in the member `place` of its
	 * entry.
	 */
	void attach(QpEntry &entry, const Cq *QpEntry::*place);
	/*
	 * Removes a QP that the card does not use any more. The completions that the consumer has
	 * not polled remain; returns their number (MGMT-09).
	 */
	u32 detach(QpEntry &entry, const Cq *QpEntry::*place);
	/*
	 * Called when the card has failed: flushes all outstanding requests of one queue of the QP,
	 * in order, after those that the card has completed (MGMT-09). Does nothing if the QP has
	 * been detached. Must be called when no request can be posted any more; may be called
	 * again.
	 */
	void flush(Qp &qp, const QpEntry &entry, const Cq *QpEntry::*place);
	/* Drops the completions of a QP that continues to exist. */
	void purge(const Qp &qp);
	/* For tests: the number of checks for completions after arming (NOTIFY-05). */
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
	enum class SlotState : u8 { card, saved, dropped };
	/* A completion that was removed from the card's slot with the same index. */
	struct SavedCompletion {
		SlotState state;
		bool left; /* the QP was destroyed, and this completion was counted */
		ib_wc wc;
	};

	bool translate(const u8 *entry, ib_wc &wc) KERN_REQUIRES(lock_);
	Qp *qp_of(const u8 *entry) KERN_REQUIRES(lock_);
	const u8 *slot(u32 index) const
	{
		return ring_.as<u8>() + size_t{index} * wire::completion_slot_size;
	}
	/*
	 * Returns the index behind the last entry. If the card has written an invalid index, the
	 * queue counts as empty.
	 */
	u32 produced() KERN_REQUIRES(lock_);
	u32 next_index(u32 index) const { return index + 1 == depth_ ? 0 : index + 1; }
	template<class Body>
	void for_each(const Qp &qp, Body body) KERN_REQUIRES(lock_);
	/* Saves the completions of a QP that the card has written. */
	void save(Qp &qp) KERN_REQUIRES(lock_);
	void stop();

	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("weft_amso1100_cq")};
	u32 consumer_ KERN_GUARDED_BY(lock_) = 0;
	/* The index behind the last entry, used instead of the card's after it has failed. */
	u32 end_ KERN_GUARDED_BY(lock_) = 0;
	bool given_up_ KERN_GUARDED_BY(lock_) = false;
	/* The ring had no space for all flushed completions. */
	bool flush_pending_ KERN_GUARDED_BY(lock_) = false;
	Armed armed_ KERN_GUARDED_BY(lock_) = Armed::no;
	u32 depth_ = 0;
	kern::Mmio shared_;
	kern::DmaPool::Piece word_{};
	kern::DmaBuffer ring_;
	/* Indexed by slot. The card cannot access it. */
	kern::OwnedArray<SavedCompletion> saved_ KERN_GUARDED_BY(lock_);
	unsigned long missed_event_checks_ = 0;
	unsigned long invalid_entries_ = 0;

	Rnic &rnic_;
	ib_cq &verbs_;
	u32 number_ = 0;
	u32 index_ = 0;
	u32 handle_ = 0;
	bool live_ = false;
};

} // namespace amso1100
