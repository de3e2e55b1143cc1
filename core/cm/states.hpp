// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the state table of the communication manager: the effect of each message, call and
 * timeout in each state (IBA 12.9). No other code changes an ID's state.
 * Documentation/connections.rst has a diagram.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace cm
{

/*
 * The first states are those of enum ib_cm_state. The others are states of an established
 * connection during an exchange of LAP and APR (IBA 12.8).
 */
enum class State : std::uint8_t {
	idle,
	listen,
	req_sent,
	req_rcvd,
	mra_req_sent,
	mra_req_rcvd,
	rep_sent,
	rep_rcvd,
	mra_rep_sent,
	mra_rep_rcvd,
	established,
	dreq_sent,
	dreq_rcvd,
	timewait,
	sidr_req_sent,
	sidr_req_rcvd,
	lap_sent,
	mra_lap_rcvd,
	lap_rcvd,
	mra_lap_sent,
};
inline constexpr std::size_t state_count = 20;

enum class Event : std::uint8_t {
	/* Messages. */
	got_req, /* a repetition of the first message of the connection */
	got_mra_req,
	got_mra_rep,
	got_mra_lap,
	got_rej,
	got_rej_stale, /* REJ with reason 10 */
	got_rep,
	got_rtu,
	got_dreq,
	got_drep,
	got_lap,
	got_lap_again, /* a repetition of the LAP that was answered last */
	got_apr,
	got_sidr_req, /* a repetition of the first message of the ID */
	got_sidr_rep,
	/* The first message of a new ID. */
	new_req,
	new_sidr_req,
	/* Calls of the consumer. */
	listen,
	send_req,
	send_rep,
	send_rtu,
	send_rej,
	send_mra,
	send_dreq,
	send_drep,
	send_lap,
	send_apr,
	send_sidr_req,
	send_sidr_rep,
	communicates, /* ib_cm_notify(): data arrived before the RTU */
	migrated,     /* ib_cm_notify(): the alternate path has become the primary path */
	/* Timeouts. */
	gave_up,       /* no response to the last message and all its repetitions */
	timewait_exit, /* timewait has ended */
	/* Destruction, and removal of the device. */
	destroy,
	device_gone,
};
inline constexpr std::size_t event_count = 35;

enum class Action : std::uint8_t {
	ignore, /* a message that has no meaning in this state */
	/* a message that was processed; its response has not been sent yet, or none is due */
	duplicate,
	answer_again, /* a message that was processed, but whose response was lost */
	/* a REQ that arrives after its connection has ended: send a REJ with reason 10 */
	reject_again,
	refuse,           /* a call in the wrong state: return EINVAL */
	refuse_connected, /* a call in the wrong state: return EISCONN */
	take,             /* process the event */
	/* Actions of a destruction: the last message to the peer. */
	end,
	end_timeout, /* send a REJ with reason 4 */
	end_reject,  /* send a REJ with reason 28 */
	end_disconnect,
	end_drep,
	end_sidr,
};

struct Transition {
	Action action;
	State next;
};

constexpr bool is_call(Event event)
{
	return event >= Event::listen && event <= Event::migrated;
}

namespace detail
{

struct Table {
	Transition cells[state_count][event_count] = {};

	constexpr void set(State state, Event event, Action action, State next)
	{
		cells[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)] = {action,
											   next};
	}
	/* Sets the same transition for several states. */
	template<std::size_t count>
	constexpr void set(const State (&states)[count], Event event, Action action, State next)
	{
		for (State state : states)
			set(state, event, action, next);
	}
	/* Sets the action of an event that does not change these states. */
	template<std::size_t count>
	constexpr void stay(const State (&states)[count], Event event, Action action)
	{
		for (State state : states)
			set(state, event, action, state);
	}
};

constexpr Table make_table()
{
	using enum State;
	using A = Action;
	using E = Event;
	Table table;

	for (std::size_t s = 0; s < state_count; s++)
		for (std::size_t e = 0; e < event_count; e++)
			table.set(static_cast<State>(s), static_cast<E>(e),
				  is_call(static_cast<E>(e)) ? A::refuse : A::ignore,
				  static_cast<State>(s));

	/* Establishing a connection (IBA 12.9.5 to 12.9.7). */
	table.set(idle, E::new_req, A::take, req_rcvd);
	table.stay({req_rcvd, rep_sent, rep_rcvd, mra_rep_sent, mra_rep_rcvd, established,
		    dreq_sent, dreq_rcvd, lap_sent, mra_lap_rcvd, lap_rcvd, mra_lap_sent},
		   E::got_req, A::duplicate);
	table.stay({mra_req_sent}, E::got_req, A::answer_again);
	table.stay({timewait}, E::got_req, A::reject_again);

	table.set({req_sent}, E::got_mra_req, A::take, mra_req_rcvd);
	table.stay({mra_req_rcvd}, E::got_mra_req, A::duplicate);
	table.set({rep_sent}, E::got_mra_rep, A::take, mra_rep_rcvd);
	table.stay({mra_rep_rcvd}, E::got_mra_rep, A::duplicate);

	table.set({req_sent, mra_req_rcvd}, E::got_rep, A::take, rep_rcvd);
	table.stay({mra_rep_sent, established, lap_sent, mra_lap_rcvd}, E::got_rep,
		   A::answer_again);
	table.stay({rep_rcvd, dreq_sent, dreq_rcvd, timewait}, E::got_rep, A::duplicate);

	table.set({rep_sent, mra_rep_rcvd}, E::got_rtu, A::take, established);
	table.stay({established, dreq_sent, dreq_rcvd, timewait, lap_rcvd, mra_lap_sent},
		   E::got_rtu, A::duplicate);

	for (E rej : {E::got_rej, E::got_rej_stale}) {
		table.set({req_sent, req_rcvd, mra_req_sent, mra_req_rcvd, rep_sent, mra_rep_rcvd},
			  rej, A::take, rej == E::got_rej_stale ? timewait : idle);
		table.set({rep_rcvd, mra_rep_sent, dreq_sent, established, lap_sent, mra_lap_rcvd,
			   lap_rcvd, mra_lap_sent},
			  rej, A::take, timewait);
		table.stay({timewait}, rej, A::duplicate);
	}

	/* Closing a connection (IBA 12.9.8). */
	table.set({rep_sent, mra_rep_rcvd, established, dreq_sent, lap_sent, mra_lap_rcvd, lap_rcvd,
		   mra_lap_sent},
		  E::got_dreq, A::take, dreq_rcvd);
	table.stay({dreq_rcvd}, E::got_dreq, A::duplicate);
	table.stay({timewait}, E::got_dreq, A::answer_again);
	table.set({dreq_sent, dreq_rcvd}, E::got_drep, A::take, timewait);
	table.stay({timewait}, E::got_drep, A::duplicate);

	/* Alternate paths (IBA 12.8). */
	table.set({established}, E::got_lap, A::take, lap_rcvd);
	table.stay({lap_rcvd}, E::got_lap, A::duplicate);
	table.stay({mra_lap_sent}, E::got_lap, A::answer_again);
	table.stay({established}, E::got_lap_again, A::answer_again);
	table.set({lap_sent}, E::got_mra_lap, A::take, mra_lap_rcvd);
	table.stay({mra_lap_rcvd}, E::got_mra_lap, A::duplicate);
	table.set({lap_sent, mra_lap_rcvd}, E::got_apr, A::take, established);
	table.stay({established}, E::got_apr, A::duplicate);

	/* Service ID resolution (IBA 12.11). */
	table.set(idle, E::new_sidr_req, A::take, sidr_req_rcvd);
	table.stay({sidr_req_rcvd}, E::got_sidr_req, A::duplicate);
	table.set({sidr_req_sent}, E::got_sidr_rep, A::take, idle);

	/* Calls of the consumer. */
	table.set({idle}, E::listen, A::take, listen);
	table.set({idle}, E::send_req, A::take, req_sent);
	table.set({req_rcvd, mra_req_sent}, E::send_rep, A::take, rep_sent);
	table.set({rep_rcvd, mra_rep_sent}, E::send_rtu, A::take, established);
	table.set({req_rcvd}, E::send_mra, A::take, mra_req_sent);
	table.set({rep_rcvd}, E::send_mra, A::take, mra_rep_sent);
	table.set({lap_rcvd}, E::send_mra, A::take, mra_lap_sent);
	table.set({req_sent, mra_req_rcvd, req_rcvd, mra_req_sent, rep_rcvd, mra_rep_sent},
		  E::send_rej, A::take, idle);
	table.set({rep_sent, mra_rep_rcvd}, E::send_rej, A::take, timewait);
	table.set({established, lap_sent, mra_lap_rcvd, lap_rcvd, mra_lap_sent}, E::send_dreq,
		  A::take, dreq_sent);
	table.set({dreq_rcvd}, E::send_drep, A::take, timewait);
	table.set({established}, E::send_lap, A::take, lap_sent);
	table.set({lap_rcvd, mra_lap_sent}, E::send_apr, A::take, established);
	table.set({idle}, E::send_sidr_req, A::take, sidr_req_sent);
	table.set({sidr_req_rcvd}, E::send_sidr_rep, A::take, idle);
	table.set({rep_sent, mra_rep_rcvd}, E::communicates, A::take, established);
	table.stay({established, lap_sent, mra_lap_rcvd, lap_rcvd, mra_lap_sent}, E::communicates,
		   A::refuse_connected);
	table.set({established}, E::migrated, A::take, established);

	/* Timeouts. */
	table.set({req_sent, mra_req_rcvd, rep_sent, mra_rep_rcvd, sidr_req_sent}, E::gave_up,
		  A::take, idle);
	table.set({dreq_sent}, E::gave_up, A::take, timewait);
	table.set({lap_sent, mra_lap_rcvd}, E::gave_up, A::take, established);
	table.set({timewait}, E::timewait_exit, A::take, idle);

	/* Destruction. */
	table.set({idle, listen, dreq_sent, timewait, sidr_req_sent}, E::destroy, A::end, idle);
	table.set({req_sent, mra_req_rcvd}, E::destroy, A::end_timeout, idle);
	table.set({req_rcvd, mra_req_sent, rep_sent, rep_rcvd, mra_rep_sent, mra_rep_rcvd},
		  E::destroy, A::end_reject, idle);
	table.set({established, lap_sent, mra_lap_rcvd, lap_rcvd, mra_lap_sent}, E::destroy,
		  A::end_disconnect, idle);
	table.set({dreq_rcvd}, E::destroy, A::end_drep, idle);
	table.set({sidr_req_rcvd}, E::destroy, A::end_sidr, idle);
	for (std::size_t s = 0; s < state_count; s++)
		table.set(static_cast<State>(s), E::device_gone, A::take, idle);
	return table;
}

inline constexpr Table table = make_table();

} // namespace detail

constexpr Transition transition(State state, Event event)
{
	return detail::table
		.cells[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

/* Returns true if a response is awaited, for which the message is repeated until Event::gave_up. */
constexpr bool awaits_answer(State state)
{
	return transition(state, Event::gave_up).action == Action::take;
}

/*
 * Returns true if there is a connection to which a REQ of the peer may already belong (IBA
 * 12.9.8.3.1).
 */
constexpr bool is_connection(State state)
{
	return state != State::idle && state != State::listen && state != State::sidr_req_sent &&
	       state != State::sidr_req_rcvd;
}

constexpr bool is_established(State state)
{
	return transition(state, Event::communicates).action == Action::refuse_connected;
}

static_assert(static_cast<std::size_t>(State::mra_lap_sent) + 1 == state_count);
static_assert(static_cast<std::size_t>(Event::device_gone) + 1 == event_count);

} // namespace cm
