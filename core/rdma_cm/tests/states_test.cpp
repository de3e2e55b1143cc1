// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Compares every cell of the state table with a list of permitted transitions, and makes API calls
// in every state that an ID can reach.
#include "fixture.hpp"

using namespace rdma_cm_fixture;
using rdma_cm::Action;
using rdma_cm::Event;
using rdma_cm::State;

namespace
{

/*
 * The states in which an event is permitted, and the resulting state. All others must be refused.
 */
struct Row {
	Event event;
	u32 from; /* a bit for each state */
	State to;
};

template<class... States>
constexpr u32 any_of(States... states)
{
	return ((1u << static_cast<unsigned>(states)) | ...);
}

constexpr u32 everything = (1u << rdma_cm::state_count) - 1;

constexpr Row rows[] = {
	{Event::bind, any_of(State::idle), State::addr_bound},
	{Event::set_afonly, any_of(State::idle), State::idle},
	{Event::set_afonly, any_of(State::addr_bound), State::addr_bound},
	{Event::listen, any_of(State::addr_bound), State::listen},
	{Event::resolve_addr, any_of(State::addr_bound), State::addr_query},
	{Event::addr_found, any_of(State::addr_query), State::addr_resolved},
	{Event::addr_failed, any_of(State::addr_query), State::addr_bound},
	{Event::resolve_route, any_of(State::addr_resolved), State::route_query},
	{Event::route_found, any_of(State::route_query), State::route_resolved},
	{Event::route_failed, any_of(State::route_query), State::addr_resolved},
	{Event::set_path, any_of(State::addr_resolved), State::route_resolved},
	{Event::connect, any_of(State::route_resolved), State::connect},
	{Event::request, any_of(State::idle), State::connect},
	{Event::accept, any_of(State::connect), State::connect},
	{Event::reject, any_of(State::connect), State::connect},
	{Event::responded, any_of(State::connect), State::connect},
	{Event::established, any_of(State::connect), State::connect},
	{Event::failed, any_of(State::connect), State::connect},
	{Event::disconnected, any_of(State::connect), State::disconnect},
	{Event::timewait_exit, any_of(State::disconnect), State::disconnect},
	{Event::join, any_of(State::addr_bound), State::addr_bound},
	{Event::join, any_of(State::addr_resolved), State::addr_resolved},
	{Event::device_gone, everything & ~any_of(State::device_removal, State::destroying),
	 State::device_removal},
	{Event::destroy, everything & ~any_of(State::destroying), State::destroying},
};

/* States in which these events, where they have an effect, change no state. */
constexpr u32 where_it_stays(Event event)
{
	constexpr u32 bound = any_of(State::addr_bound, State::addr_query, State::addr_resolved,
				     State::route_query, State::route_resolved, State::connect);
	switch (event) {
	case Event::joined:
	case Event::join_failed:
		return bound | any_of(State::disconnect);
	case Event::addr_changed:
		return bound | any_of(State::listen);
	default:
		return 0;
	}
}

void rcm_06_id_state_transitions_match_the_expected_table(Test &test)
{
	for (std::size_t s = 0; s < rdma_cm::state_count; s++) {
		for (std::size_t e = 0; e < rdma_cm::event_count; e++) {
			const auto state = static_cast<State>(s);
			const auto event = static_cast<Event>(e);
			bool takes = where_it_stays(event) & (1u << s);
			State next = state;
			for (const Row &row : rows) {
				if (row.event == event && (row.from & (1u << s))) {
					takes = true;
					next = row.to;
				}
			}
			const auto is = rdma_cm::transition(state, event);
			EXPECT_EQ(is.action, takes                     ? Action::take
					     : rdma_cm::is_call(event) ? Action::refuse
								       : Action::ignore);
			EXPECT_EQ(is.next, next);
		}
	}
}

/* Every call that the state of an id forbids is refused, and changes nothing. */
void check_calls(Test &test, End &end)
{
	const State state = end.state();
	const auto forbidden = [&](Event event) {
		return rdma_cm::transition(state, event).action == Action::refuse;
	};
	rdma_cm_id *id = end.id;
	const Address any = rdma_cm::any_of(RDMA_AF_INET), to = ipv4(2, Pair::port);
	const sa_path_rec path{};
	const auto param = End::param(1, "");
	if (forbidden(Event::bind))
		EXPECT_EQ(rdma_bind_addr(id, &any), -EINVAL);
	/* These two bind an idle id first. */
	if (state != State::idle && forbidden(Event::resolve_addr))
		EXPECT_EQ(rdma_resolve_addr(id, nullptr, &to, 1000), -EINVAL);
	if (state != State::idle && forbidden(Event::listen))
		EXPECT_EQ(rdma_listen(id, 1), -EINVAL);
	if (forbidden(Event::resolve_route))
		EXPECT_EQ(rdma_resolve_route(id, 1000), -EINVAL);
	if (forbidden(Event::set_path))
		EXPECT_EQ(rdma_set_ib_path(id, &path), -EINVAL);
	if (forbidden(Event::connect))
		EXPECT_EQ(rdma_connect(id, &param), -EINVAL);
	if (forbidden(Event::accept))
		EXPECT_EQ(end.accept(), -EINVAL);
	if (forbidden(Event::reject))
		EXPECT_EQ(rdma_reject(id, nullptr, 0, 0), -EINVAL);
	if (forbidden(Event::set_afonly))
		EXPECT_EQ(rdma_set_afonly(id, 1), -EINVAL);
	if (forbidden(Event::join))
		EXPECT_EQ(rdma_join_multicast(id, &to, FULLMEMBER_JOIN, nullptr), -EINVAL);
	EXPECT_EQ(end.state(), state);
}

void rcm_06_functions_return_an_error_in_invalid_states(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.there() && pair->ok());
	End &end = pair->active;
	const Address to = ipv4(2, Pair::port);
	check_calls(test, end);
	check_calls(test, pair->listener);
	const Address any = rdma_cm::any_of(RDMA_AF_INET);
	ASSERT_EQ(rdma_bind_addr(end.id, &any), 0);
	check_calls(test, end);
	pair->ground.addresses.answering.store_release(false);
	ASSERT_EQ(rdma_resolve_addr(end.id, nullptr, &to, 60'000), 0);
	check_calls(test, end);
	pair->ground.addresses.answering.store_release(true);
	rdma_cm::retry_resolutions(0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ADDR_RESOLVED));
	check_calls(test, end);
	ASSERT_EQ(rdma_resolve_route(end.id, 1000), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_ROUTE_RESOLVED));
	check_calls(test, end);
	ASSERT_EQ(end.connect(), 0);
	ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_CONNECT_REQUEST));
	check_calls(test, end);
	check_calls(test, pair->passive);
	ASSERT_EQ(pair->passive.accept(), 0);
	ASSERT_TRUE(end.receives(RDMA_CM_EVENT_CONNECT_RESPONSE));
	EXPECT_EQ(end.accept(), 0);
	ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_ESTABLISHED));
	ASSERT_EQ(rdma_disconnect(end.id), 0);
	ASSERT_TRUE(pair->passive.receives(RDMA_CM_EVENT_DISCONNECTED));
	check_calls(test, pair->passive);
	EXPECT_EQ(pair->passive.state(), State::disconnect);
}

} // namespace

SOFT_SUITES(rdma_cm_states, KUNIT_CASE(rcm_06_id_state_transitions_match_the_expected_table),
	    KUNIT_CASE(rcm_06_functions_return_an_error_in_invalid_states));
