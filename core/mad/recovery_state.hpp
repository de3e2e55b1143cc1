/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the states of a special QP: one enumeration, and one function that changes it.
 * recovery.cpp has the actions of each state; the diagram is in Documentation/midlayer.rst ("Errors
 * of the QP").
 */
#pragma once

#include <cstdint>

namespace mad
{

enum class SpecialQpState : std::uint8_t {
	opening, /* being brought up for the first time; nothing is posted */
	up,      /* RTS: sends are posted immediately */
	/*
	 * a send has failed and stopped the send queue (SQE, IBA 10.3.1.6), which is restarted when
	 * all sends have completed
	 */
	stopped,
	/*
	 * more than the send queue has failed: the QP must be moved to ERR unless nothing is posted
	 */
	failing,
	/*
	 * in ERR, or nothing was posted: when all sends and receives have completed, or have not
	 * completed for too long, the QP is reset and brought up
	 */
	flushing,
	broken,  /* bringing the QP up has failed: sends fail immediately until the next retry */
	closing, /* no more requests are posted, and completed requests are freed */
	closed,  /* the QP has been destroyed */
};

enum class SpecialQpEvent : std::uint8_t {
	done,            /* the action of the state has succeeded */
	failed,          /* the action of the state has failed */
	send_failed,     /* a send has completed with an error or was flushed */
	receive_flushed, /* a receive was flushed: the QP is in ERR */
	retry,           /* the time for a retry has come */
	close,           /* the device is being removed */
	stalled,         /* a send has not completed for too long */
};

/* During a recovery, sends are queued until it has succeeded or failed. */
constexpr bool is_recovering(SpecialQpState state)
{
	return state == SpecialQpState::stopped || state == SpecialQpState::failing ||
	       state == SpecialQpState::flushing;
}

constexpr SpecialQpState next_state(SpecialQpState state, SpecialQpEvent event)
{
	using State = SpecialQpState;
	using Event = SpecialQpEvent;

	if (state == State::closed)
		return state;
	switch (event) {
	case Event::done:
		if (state == State::opening || state == State::stopped || state == State::flushing)
			return State::up;
		return state == State::failing   ? State::flushing
		       : state == State::closing ? State::closed
						 : state;
	case Event::failed:
		return state == State::stopped ? State::failing
		       : is_recovering(state)  ? State::broken
					       : state;
	case Event::send_failed:
		return state == State::up ? State::stopped : state;
	case Event::receive_flushed:
		return state == State::up || is_recovering(state) ? State::flushing : state;
	case Event::retry:
		return state == State::broken ? State::failing : state;
	case Event::close:
		return State::closing;
	case Event::stalled:
		return state == State::up || state == State::stopped ? State::failing : state;
	}
	return state;
}

} // namespace mad
