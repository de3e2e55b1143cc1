/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Recovers a special QP after an error: holds the QP's state (recovery_state.hpp), and makes the
 * step from each state to the next. This class is independent of packets and agents. SpecialQp
 * calls it when no request is posted.
 */
#pragma once

#include "recovery_state.hpp"

#include <kern/atomic.hpp>
#include <kern/back_off.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace mad
{

class Recovery
{
public:
	/*
	 * retry: a void (T::*)() that is called in a work item when SpecialQpEvent::retry is due.
	 */
	template<auto Retry, class T>
	Recovery(u32 port_num, ib_qp_type type, kern::Method<Retry> retry, T *owner)
	    : port_num_(port_num), type_(type), retry_(retry, owner)
	{
	}

	void open(ib_qp *qp) { qp_ = qp; }
	/* Cancels the retry. Context: process. */
	void stop() { retry_.cancel(); }

	/* Context: any. */
	SpecialQpState state() const { return static_cast<SpecialQpState>(state_.load_relaxed()); }
	/*
	 * Changes the state according to the event and returns the new state. Called with the
	 * special QP's lock held, as for every change of the state.
	 */
	SpecialQpState step(SpecialQpEvent event);

	/*
	 * Returns true if the step of a state is due. @sends_are_back and @receives_are_back: the
	 * hardware has completed all sends, or all receives. The failing state waits for neither,
	 * and the flushing state only until @flush_is_overdue.
	 */
	static bool is_due(SpecialQpState state, bool sends_are_back, bool receives_are_back,
			   bool flush_is_overdue)
	{
		return state == SpecialQpState::failing ||
		       (state == SpecialQpState::flushing && flush_is_overdue) ||
		       (is_recovering(state) && sends_are_back &&
			(state == SpecialQpState::stopped || receives_are_back));
	}
	/*
	 * Performs the step of a state. @nothing_posted: neither sends nor receives are posted.
	 * Errors: those of the verbs. Context: process.
	 */
	kern::Result<> take_step(SpecialQpState state, bool nothing_posted);
	/*
	 * Moves the QP from any state to RESET. After that, the hardware neither accesses the
	 * memory of its requests nor completes them. Errors: those of the verbs. Context: process.
	 */
	kern::Result<> reset();
	/*
	 * Moves the QP from any state to RTS. No request may be posted to it. Errors: those of the
	 * verbs. Context: process.
	 */
	kern::Result<> bring_up();

private:
	kern::Result<> resume();
	kern::Result<> move_to(ib_qp_state state);

	const u32 port_num_;
	const ib_qp_type type_;
	ib_qp *qp_ = nullptr;
	bool is_reset_ = false; /* the QP is in RESET */
	kern::Atomic<u8> state_{static_cast<u8>(SpecialQpState::opening)};
	kern::BackOff back_off_;
	kern::DelayedWork retry_;
};

} // namespace mad
