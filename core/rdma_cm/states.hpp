// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the state table of the RDMA CM: the effect of each call, result and transport event in
 * each state. No other code changes an ID's state. Documentation/connections.rst has a diagram.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdma_cm
{

/* The values are those of Linux, which programs get by netlink. */
enum class State : std::uint8_t {
	idle,
	addr_query,
	addr_resolved,
	route_query,
	route_resolved,
	connect,
	disconnect,
	addr_bound,
	listen,
	device_removal,
	destroying,
};
inline constexpr std::size_t state_count = 11;

enum class Event : std::uint8_t {
	/* Calls. */
	bind,
	resolve_addr,
	resolve_route,
	set_path,
	listen,
	join,
	connect,
	accept,
	reject,
	set_afonly,
	/* Results. */
	addr_found,
	addr_failed,
	route_found,
	route_failed,
	addr_changed,
	joined,
	join_failed,
	/* Events of the transport. */
	request, /* the first event of a new ID */
	responded,
	established,
	failed, /* connecting has failed: refused, unanswered, or not possible locally */
	disconnected,
	timewait_exit, /* timewait has ended */
	/* Removal of the device, and destruction. */
	device_gone,
	destroy,
};
inline constexpr std::size_t event_count = 25;

enum class Action : std::uint8_t {
	ignore, /* a result or a report that arrives too late */
	refuse, /* a call in the wrong state: returns -EINVAL */
	take,
};

struct Transition {
	Action action;
	State next;
};

constexpr bool is_call(Event event)
{
	return event <= Event::set_afonly;
}

namespace detail
{

struct Table {
	Transition cells[state_count][event_count] = {};

	constexpr void set(State state, Event event, State next)
	{
		cells[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)] = {
			Action::take, next};
	}
	/* Permits an event in these states, without changing the state. */
	template<std::size_t count>
	constexpr void stay(const State (&states)[count], Event event)
	{
		for (State state : states)
			set(state, event, state);
	}
};

constexpr Table make_table()
{
	using enum State;
	using E = Event;
	Table table;

	for (std::size_t s = 0; s < state_count; s++)
		for (std::size_t e = 0; e < event_count; e++)
			table.cells[s][e] = {is_call(static_cast<E>(e)) ? Action::refuse
									: Action::ignore,
					     static_cast<State>(s)};

	table.set(idle, E::bind, addr_bound);
	table.stay({idle, addr_bound}, E::set_afonly);
	table.set(addr_bound, E::listen, listen);

	table.set(addr_bound, E::resolve_addr, addr_query);
	table.set(addr_query, E::addr_found, addr_resolved);
	table.set(addr_query, E::addr_failed, addr_bound);
	table.set(addr_resolved, E::resolve_route, route_query);
	table.set(route_query, E::route_found, route_resolved);
	table.set(route_query, E::route_failed, addr_resolved);
	table.set(addr_resolved, E::set_path, route_resolved);

	table.set(route_resolved, E::connect, connect);
	table.set(idle, E::request, connect);
	table.stay({connect}, E::accept);
	table.stay({connect}, E::reject);
	table.stay({connect}, E::responded);
	table.stay({connect}, E::established);
	table.stay({connect}, E::failed);
	table.set(connect, E::disconnected, disconnect);
	table.stay({disconnect}, E::timewait_exit);

	table.stay({addr_bound, addr_resolved}, E::join);
	/* An ID can be in multicast groups in all states. */
	for (E result : {E::joined, E::join_failed})
		table.stay({addr_bound, addr_query, addr_resolved, route_query, route_resolved,
			    connect, disconnect},
			   result);

	/* The handler decides what a changed address means for the ID. */
	table.stay({addr_bound, addr_query, addr_resolved, route_query, route_resolved, connect,
		    listen},
		   E::addr_changed);

	for (std::size_t s = 0; s < state_count; s++) {
		if (const auto state = static_cast<State>(s); state != destroying) {
			table.set(state, E::destroy, destroying);
			if (state != device_removal)
				table.set(state, E::device_gone, device_removal);
		}
	}
	return table;
}

inline constexpr Table table = make_table();

} // namespace detail

constexpr Transition transition(State state, Event event)
{
	return detail::table
		.cells[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

static_assert(static_cast<std::size_t>(State::destroying) + 1 == state_count);
static_assert(static_cast<std::size_t>(Event::destroy) + 1 == event_count);

} // namespace rdma_cm
