// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the part of a CQ's control path that mlx4 and mthca share: passing the CQ to the card
// and taking it back, and the list of the QPs that use the CQ.
#pragma once
#include <kern/bits.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include "command.hpp"
#include "cq_members.hpp"
#include "event_queues.hpp"
#include "number_allocator.hpp"

namespace mellanox_icm
{

/*
 * Base class of a card's own CQ. It has no data members, because the order of the members of Own
 * determines the cost of a poll. Own has
 *
 *	ib_cq &verbs_;
 *	Hca &hca_;
 *	Number number_;
 *	kern::BudgetCharge event_capacity_;	// entries reserved for its completion events
 *	EventCapacity error_capacity_;		// entry reserved for its asynchronous event
 *	bool live_;				// the card has the CQ
 *	kern::IrqSpinLock lock_;
 *	kern::Mutex resize_lock_;		// taken before lock_
 *	CqMembers<Hca, Qp> members_;
 *	// With lock_ held: moves the QP's completions into StaleCompletions; returns their number.
 *	u32 save_completions(Qp &qp);
 *	// Drops the QP's entries. lock_ held.
 *	void purge_locked(const Qp &qp);
 */
template<class Own, class Qp>
class CqControl
{
public:
	/* Takes the queue back from the card. No handler runs afterwards. May sleep. */
	void stop();

	ib_cq &verbs() { return own().verbs_; }
	u32 number() const { return static_cast<const Own &>(*this).number_.value(); }

	/* Adds a QP whose sends, or receives, complete in this CQ. */
	void attach(Qp &qp, bool sends);
	/*
	 * Removes a QP that the card has reset. The completions that the consumer has not polled
	 * remain (MGMT-09); returns their number. May sleep.
	 */
	u32 detach(Qp &qp, bool sends);
	/*
	 * Drops the remaining entries of a QP that the card has reset and that continues to exist.
	 * May sleep.
	 */
	void purge(Qp &qp);
	/*
	 * Notifies the consumer after the card has failed, so that it polls the flushed requests.
	 * Context: process.
	 */
	void announce_failure() { verbs().comp_handler(&verbs(), verbs().cq_context); }

protected:
	~CqControl() = default;

	/* Returns log2 of the number of entries of a new ring. Errors: EINVAL. Context: any. */
	kern::Result<u32> plan_ring(const ib_cq_init_attr &attr);
	/*
	 * Reserves entries for the CQ's events, and passes the context in the mailbox to the card.
	 * Errors: ENOMEM, EDQUOT, those of commands. May sleep.
	 */
	kern::Result<> enter_card(Mailbox &context, const ib_cq_init_attr &attr, u32 log_entries,
				  bool for_program);

private:
	Own &own() { return static_cast<Own &>(*this); }
};

template<class Own, class Qp>
kern::Result<u32> CqControl<Own, Qp>::plan_ring(const ib_cq_init_attr &attr)
{
	auto &hca = own().hca_;
	if (attr.flags || attr.cqe == 0 || attr.cqe >= 1u << hca.capabilities().log_max_cq_size ||
	    attr.comp_vector >= hca.completion_vectors())
		return kern::Error{-EINVAL};
	// One more than requested, because a full ring cannot be distinguished from an empty one.
	return kern::log2_ceil(attr.cqe + 1);
}

template<class Own, class Qp>
kern::Result<> CqControl<Own, Qp>::enter_card(Mailbox &context, const ib_cq_init_attr &attr,
					      u32 log_entries, bool for_program)
{
	Own &own = this->own();
	auto &hca = own.hca_;
	own.event_capacity_ = KERN_TRY(
		hca.events().reserve_completion_entries(attr.comp_vector, cq_events, for_program));
	own.error_capacity_ = KERN_TRY(hca.events().reserve_async_entries(cq_errors, for_program));
	hca.set_cq(number(), &own);
	own.live_ = true;
	const auto given = hca.commands().execute_in({.opcode = hw::mellanox_icm::Opcode::sw2hw_cq,
						      .in_modifier = number(),
						      .answer = Answer::at_once},
						     context);
	if (!given) {
		own.live_ = false;
		hca.set_cq(number(), nullptr);
		return given;
	}
	own.verbs_.cqe = static_cast<int>(1u << log_entries) - 1;
	return {};
}

template<class Own, class Qp>
void CqControl<Own, Qp>::stop()
{
	Own &own = this->own();
	auto &hca = own.hca_;
	if (own.live_) {
		own.live_ = false;
		kern::ignore(hca.commands().execute_closing(
			{.opcode = hw::mellanox_icm::Opcode::hw2sw_cq,
			 .in_modifier = number(),
			 .op_modifier = 1}));
		hca.set_cq(number(), nullptr);
		// Wait for a handler that the CQ's own interrupt or the asynchronous one may be
		// about to call.
		hca.synchronize_events();
	}
	own.event_capacity_ = {};
	own.error_capacity_ = {};
}

template<class Own, class Qp>
void CqControl<Own, Qp>::attach(Qp &qp, bool sends)
{
	Own &own = this->own();
	kern::Guard guard(own.lock_);
	own.members_.add(qp, number(), sends);
}

template<class Own, class Qp>
u32 CqControl<Own, Qp>::detach(Qp &qp, bool sends)
{
	Own &own = this->own();
	kern::Guard resizing(own.resize_lock_);
	kern::Guard guard(own.lock_);
	const u32 left = own.save_completions(qp);
	own.members_.remove(qp, sends);
	return left;
}

template<class Own, class Qp>
void CqControl<Own, Qp>::purge(Qp &qp)
{
	Own &own = this->own();
	kern::Guard resizing(own.resize_lock_);
	kern::Guard guard(own.lock_);
	own.purge_locked(qp);
}

} // namespace mellanox_icm
