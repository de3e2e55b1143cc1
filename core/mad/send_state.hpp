/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the states of a send after posting: one enumeration, and one function that changes it. A
 * peer can answer only what it has received. So the response timeout starts when the last packet
 * has been sent (IBA 13.4.6.2), and a transmission counts as unanswered only after it has been
 * sent.
 */
#pragma once

#include <cstdint>

namespace mad
{

enum class SendState : std::uint8_t {
	/* the outcome is known, and only holds delay the completion; or it was never posted */
	decided,
	going, /* packets are queued or posted; no timer runs */
	/*
	 * all packets are sent, and a response or an ACK is due: the timer runs, and there are no
	 * holds
	 */
	waiting,
};

enum class SendEvent : std::uint8_t {
	posted,   /* the agent has posted it */
	queued,   /* packets were added to the send queue */
	released, /* the last of its packets has been sent */
	decided,  /* a response has arrived, or the send has failed, was cancelled or timed out */
};

constexpr SendState next_state(SendState state, SendEvent event)
{
	using State = SendState;
	using Event = SendEvent;

	switch (event) {
	case Event::posted:
		return State::going;
	case Event::queued:
		return state == State::waiting ? State::going : state;
	case Event::released:
		return state == State::going ? State::waiting : state;
	case Event::decided:
		return State::decided;
	}
	return state;
}

} // namespace mad
