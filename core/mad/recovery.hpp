/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * State of a special QP (recovery_state.hpp), and the steps that lead from each. It is independent
 * of packets and agents; its owner calls it when nothing is posted.
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
	/* retry: void (T::*)(), in a task, when it is time for the event of that name. */
	template<auto Retry, class T>
	Recovery(u32 port_num, ib_qp_type type, kern::Method<Retry> retry, T *owner)
	    : port_num_(port_num), type_(type), retry_(retry, owner)
	{
	}

	void open(ib_qp *qp) { qp_ = qp; }
	/* Retries nothing any more. Context: process. */
	void stop() { retry_.cancel(); }

	/* Any context. */
	SpecialQpState state() const { return static_cast<SpecialQpState>(state_.load_relaxed()); }
	/* The state after an event. Under the special QP's lock, as all changes of it are. */
	SpecialQpState step(SpecialQpEvent event);

	/*
	 * True if the step of a state is due, given whether the hardware has returned all sends,
	 * and all receives. The failing state does not wait for them.
	 */
	static bool is_due(SpecialQpState state, bool sends_are_back, bool receives_are_back)
	{
		return state == SpecialQpState::failing ||
		       (is_recovering(state) && sends_are_back &&
			(state == SpecialQpState::stopped || receives_are_back));
	}
	/*
	 * Takes the step of a state. nothing_posted: neither sends nor receives. Errors: the
	 * verbs'. Context: process.
	 */
	kern::Result<> take_step(SpecialQpState state, bool nothing_posted);
	/*
	 * Moves the QP, to which nothing is posted, from any state to RTS. Errors: those of the
	 * verbs. Context: process.
	 */
	kern::Result<> bring_up();

private:
	kern::Result<> resume();
	kern::Result<> move_to(ib_qp_state state);

	const u32 port_num_;
	const ib_qp_type type_;
	ib_qp *qp_ = nullptr;
	kern::Atomic<u8> state_{static_cast<u8>(SpecialQpState::opening)};
	kern::BackOff back_off_;
	kern::DelayedWork retry_;
};

} // namespace mad
