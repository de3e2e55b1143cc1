/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The states of a send after it was posted, as one enumeration and one function. A peer can answer
 * only what it has received. So the response timeout starts when the last packet has been sent (IBA
 * 13.4.6.2), and a transmission counts as unanswered only after it has been sent.
 */
#pragma once

#include <cstdint>

namespace mad
{

enum class SendState : std::uint8_t {
	decided, /* its fate is known, and nothing keeps it but what holds it; or it never was posted */
	going,   /* packets wait in the send queue, or the hardware has them: no time runs */
	waiting, /* all are out, and an answer or ACK is due: the time runs, and nothing holds it */
};

enum class SendEvent : std::uint8_t {
	posted,   /* by its agent */
	queued,   /* packets are put into the send queue */
	released, /* the last of them is out */
	decided,  /* answered, failed, cancelled, or out of time */
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
