// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Rooms of the kernel half under many interleavings: a few seeds of each case in every run, as many
// as ten seconds allow with WEFT_FULL.
#include <cstdlib>
#include "explored.hpp"

using namespace explore;

namespace
{

/* Each case of a suite, or the one of that name, holds by the first `seeds` seeds. */
void expect_holds(const std::string &suite, std::uint64_t seeds)
{
	const bool full = std::getenv("WEFT_FULL") != nullptr;
	unsigned int explored_cases = 0;

	for (const hosted::Case &one : cases()) {
		if (one.name != suite && !one.name.starts_with(suite + "."))
			continue;
		explored_cases++;
		const Limits limits{.seconds = full ? 10.0 : 1e9};
		const Explored explored = explore_seeds(one, 1, full ? 100'000 : seeds, limits);
		if (explored.failure)
			ADD_FAILURE() << report(one, *explored.failure, limits);
	}
	EXPECT_GT(explored_cases, 0u) << "there is no suite " << suite;
}

} // namespace

TEST(Explorer, notify_09_is_held_by_the_midlayers_poller)
{
	expect_holds("explore_notify", 500);
}
TEST(Explorer, lock_11_is_held_by_the_registry)
{
	expect_holds("core_registry", 50);
}
TEST(Explorer, events_reach_all_handlers)
{
	expect_holds("core_events.event_02_unaffiliated_events_reach_all_handlers", 50);
}
/* Some hundred thousand steps each: two special QPs with their receive queues. */
TEST(Explorer, requests_are_answered)
{
	expect_holds("mad_agent.mgmt_03_request_is_answered", 4);
}
/* The time of one that waited to be sent ran out by the 7th seed. */
TEST(Explorer, requests_are_sent_as_often_as_they_say)
{
	expect_holds("mad_agent.mgmt_03_times_out_with_back_off", 20);
	expect_holds("mad_agent.mgmt_03_retransmission_is_answered", 10);
	expect_holds("mad_agent.mgmt_03_busy_is_asked_again", 10);
	expect_holds("mad_recovery.mgmt_03_time_runs_from_when_it_is_out", 10);
	expect_holds("mad_recovery.mgmt_03_what_is_held_up_ends", 10);
}
/* A million steps, the latter. */
TEST(Explorer, special_queue_pairs_recover)
{
	expect_holds("mad_life_card.mgmt_03_qp_that_stays_broken", 4);
	expect_holds("mad_recovery.mgmt_03_recovery_with_each_step_failing", 2);
}
TEST(Explorer, sends_end_once_when_a_device_goes)
{
	expect_holds("mad_life_card.mgmt_03_device_removal", 6);
}
/* A walk that began before it had the lock is found by the 375th seed. */
TEST(Explorer, destinations_go_while_they_are_walked)
{
	expect_holds("explore_destinations", 1000);
}
TEST(Explorer, objects_are_numbered_and_looked_at)
{
	expect_holds("explore_resources", 100);
}
/*
 * Of an interface that goes down while it recovers, that recovers while it sends, that gets other
 * rings while it is looked at, and whose child is deleted as its device goes.
 */
TEST(Explorer, an_interface_goes_down_while_it_recovers)
{
	expect_holds("explore_ipoib.goes_down_while_it_recovers", 100);
}
TEST(Explorer, queues_stay_stopped_while_an_interface_recovers)
{
	expect_holds("explore_ipoib.queues_stay_stopped_while_it_recovers", 100);
}
TEST(Explorer, statistics_are_read_beside_new_rings)
{
	expect_holds("explore_ipoib.statistics_are_read_beside_new_rings", 500);
}
TEST(Explorer, a_child_is_deleted_beside_the_device)
{
	expect_holds("explore_ipoib.a_child_is_deleted_beside_the_device", 500);
}
TEST(Explorer, an_interface_is_closed_while_it_looks_for_groups)
{
	expect_holds("explore_ipoib.closed_while_it_looks_for_groups", 500);
}
/* An allocation fails somewhere in what makes a device's agents and interface, rings, a child. */
TEST(Explorer, what_an_interface_had_goes_where_memory_ends)
{
	expect_holds("explore_ipoib.a_device_comes_without_memory", 300);
	expect_holds("explore_ipoib.rings_fail_twice", 200);
	expect_holds("explore_ipoib.a_child_fails_and_is_made_again", 200);
}
/* The driver of the ConnectX, the card, its link and a subnet manager in one time. */
TEST(Explorer, a_card_and_its_driver_agree)
{
	expect_holds("explore_connectx", 60);
}
/* And the management agents and IP over InfiniBand above them. */
TEST(Explorer, what_an_interface_stands_on_goes_while_it_joins)
{
	expect_holds("explore_on_a_card", 20);
}
