// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the state table of an ID of the iWARP connection manager: the effect of each call of the
 * consumer and each event from the driver.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace iw_cm
{

enum class State : std::uint8_t {
	idle,
	listening,
	connecting,
	requested,
	accepting,
	established,
	closing, /* a graceful close is in progress */
	closed,
	destroying,
};
inline constexpr std::size_t state_count = 9;

enum class Event : std::uint8_t {
	/* Calls of the consumer. */
	listen,
	stop,
	connect,
	accept,
	reject,
	disconnect,
	destroy,
	/* The driver's function failed, so the driver reports no event. */
	not_done,
	/* Events from the driver. */
	request, /* reported to a listener, whose state does not change */
	connected,
	refused,
	accepted,
	close,
};
inline constexpr std::size_t event_count = 13;

struct Step {
	bool taken; /* false: a call is refused, and an event is ignored */
	State next;
};

constexpr Step step(State state, Event event)
{
	using enum State;
	using E = Event;
	const Step no{false, state};
	const auto to = [](State next) { return Step{true, next}; };

	if (state == destroying)
		return no;
	if (event == E::destroy)
		return to(destroying);
	switch (state) {
	case idle:
		return event == E::listen    ? to(listening)
		       : event == E::connect ? to(connecting)
					     : no;
	case listening:
		return event == E::request    ? to(listening)
		       : event == E::stop     ? to(closed)
		       : event == E::not_done ? to(idle)
					      : no;
	case connecting:
		return event == E::connected    ? to(established)
		       : event == E::refused    ? to(closed)
		       : event == E::disconnect ? to(connecting)
		       : event == E::not_done   ? to(idle)
						: no;
	case requested:
		return event == E::accept ? to(accepting) : event == E::reject ? to(closed) : no;
	case accepting:
		return event == E::accepted   ? to(established)
		       : event == E::not_done ? to(closed)
					      : no;
	case established:
	case closing:
		return event == E::disconnect ? to(closing) : event == E::close ? to(closed) : no;
	default:
		return no;
	}
}

/* Returns true for states in which the driver will report another event. */
constexpr bool is_promised(State state)
{
	return state == State::connecting || state == State::accepting ||
	       state == State::established || state == State::closing;
}

} // namespace iw_cm
