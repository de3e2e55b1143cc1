/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The states of a special QP, as one enumeration and one function. recovery.cpp has the actions of
 * each state; the diagram is in Documentation/midlayer.rst ("Errors of the QP").
 */
#pragma once

#include <cstdint>

namespace mad
{

enum class SpecialQpState : std::uint8_t {
	opening, /* being brought up for the first time; nothing is posted */
	up,      /* RTS: what is sent is posted */
	stopped, /* a send failed, which stops the queue (SQE, IBA 10.3.1.6): when all sends are back, it is set going again */
	failing, /* it is not the send queue alone: the QP is to be moved to ERR, unless nothing is posted */
	flushing, /* ERR, or empty: when all sends and receives are back, the QP is reset and brought up */
	broken,  /* that failed: sends end at once, until a retry is due */
	closing, /* takes nothing any more; what comes back is freed */
	closed,  /* the QP is no more */
};

enum class SpecialQpEvent : std::uint8_t {
	done,            /* what the state is there for has succeeded */
	failed,          /* has not */
	send_failed,     /* a send has come back in error, or flushed */
	receive_flushed, /* a receive has: the whole QP is in ERR */
	retry,           /* the time has come */
	close,           /* the device goes */
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
	}
	return state;
}

} // namespace mad
