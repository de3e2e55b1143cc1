// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs test suites of weft's kernel modules under many interleavings. Every run uses a few seeds
// per test case: at least twice as many as were needed to find each fixed defect when it was put
// back. If the environment variable WEFT_FULL is set, as many seeds are used for each case as fit
// into ten seconds.
#include <cstdlib>
#include "explored.hpp"

using namespace explore;

namespace
{

/* Checks that each case of a suite, or the given case, succeeds with the first @seeds seeds. */
void expect_holds(const std::string &suite, std::uint64_t seeds)
{
	const bool full = std::getenv("WEFT_FULL") != nullptr;
	unsigned int explored_cases = 0;

	for (const sim::Case &one : cases()) {
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

TEST(Explorer, Notify09CqPollersProcessEveryCompletionUnderRandomSchedules)
{
	expect_holds("explore_notify", 200);
}
TEST(Explorer, Lock11DeviceRegistryTestsPassUnderRandomSchedules)
{
	expect_holds("core_registry", 50);
}
TEST(Explorer, UnaffiliatedEventsReachEveryEventHandlerOfTheDevice)
{
	expect_holds(
		"core_events.event_02_unaffiliated_event_reaches_all_handlers_registered_for_its_device",
		50);
}
/*
 * Each case has several hundred thousand steps, because it has two special QPs with their receive
 * queues.
 */
TEST(Explorer, EachMadRequestCompletesOnceWithItsResponse)
{
	expect_holds("mad_agent.mgmt_03_each_request_completes_once_and_gets_its_response", 4);
}
/* With the 7th seed, the timeout of a request that was still queued has expired. */
TEST(Explorer, UnansweredMadRequestsAreRetriedAndTimeOut)
{
	expect_holds("mad_agent.mgmt_03_unanswered_send_times_out_with_back_off", 14);
	expect_holds("mad_agent.mgmt_03_request_succeeds_after_two_lost_transmissions", 3);
	expect_holds("mad_agent.mgmt_03_request_is_retried_after_a_busy_reply", 3);
	expect_holds("mad_recovery.mgmt_03_timeout_of_a_mad_starts_at_its_send_completion", 3);
	expect_holds(
		"mad_recovery.mgmt_03_sends_stalled_by_the_sqd_state_complete_when_the_qp_enters_the_error_state",
		3);
}
/* The second case has a million steps. */
TEST(Explorer, MadQueuePairsRecoverFromErrors)
{
	expect_holds("mad_life_card.mgmt_03_sends_fail_while_the_special_qp_cannot_recover", 2);
	expect_holds("mad_recovery.mgmt_03_special_qp_recovers_even_if_a_recovery_step_fails_once",
		     1);
}
TEST(Explorer, MadSendsCompleteOnceOnDeviceRemoval)
{
	expect_holds("mad_life_card.mgmt_03_device_removal_flushes_all_outstanding_sends", 6);
}
TEST(Explorer, MadAgentUnregistrationCompletesSendsWhoseCompletionsAreLost)
{
	expect_holds(
		"mad_lost_completion_card.mgmt_14_unregistration_completes_a_send_whose_completion_is_lost",
		3);
}
/* The 375th seed finds an iteration that begins before it holds the lock. */
TEST(Explorer, IpoibDestinationTableCanBeReadDuringRemovalOfADestination)
{
	expect_holds("explore_destinations", 1000);
}
TEST(Explorer, Lock04ConcurrentlyModifiedAddressHandleIsNotReadTorn)
{
	expect_holds("explore_addresses", 200);
}
TEST(Explorer, ResourceTrackingTestsPassUnderRandomSchedules)
{
	expect_holds("explore_resources", 100);
}
/*
 * Tests four scenarios: an interface goes down while it recovers, recovers while it sends, or gets
 * other rings while its statistics are read; and its child is deleted while its device is removed.
 */
TEST(Explorer, IpoibInterfaceCanBeClosedDuringTransmitTimeoutRecovery)
{
	expect_holds(
		"explore_ipoib.interface_can_be_closed_during_recovery_from_a_transmit_timeout",
		100);
}
TEST(Explorer, IpoibTransmitQueuesStayStoppedDuringTransmitTimeoutRecovery)
{
	expect_holds(
		"explore_ipoib.transmit_queues_stay_stopped_during_recovery_from_a_transmit_timeout",
		100);
}
TEST(Explorer, IpoibStatisticsCanBeReadDuringRingResize)
{
	expect_holds("explore_ipoib.statistics_are_readable_during_ring_resize", 200);
}
TEST(Explorer, IpoibChildCanBeDeletedDuringDeviceRemoval)
{
	expect_holds("explore_ipoib.child_can_be_deleted_during_device_removal", 100);
}
TEST(Explorer, IpoibInterfaceCanBeClosedDuringMulticastJoin)
{
	expect_holds("explore_ipoib.interface_closed_during_a_join_leaves_all_multicast_groups",
		     100);
}
/*
 * An allocation fails while the agents and the interface of a device, new rings, or a child are
 * created.
 */
TEST(Explorer, IpoibFreesAllResourcesAndCanRetryAfterFailedAllocations)
{
	expect_holds("explore_ipoib.failed_device_registration_frees_all_resources", 300);
	expect_holds(
		"explore_ipoib.interface_can_be_reopened_and_can_send_after_two_failed_ring_allocations",
		200);
	expect_holds("explore_ipoib.child_can_be_created_after_a_failed_attempt", 200);
}
/*
 * Tests the driver of a ConnectX or InfiniHost, the card, its link and a subnet manager in the same
 * virtual time.
 */
TEST(Explorer, TestsOfDriverAndEmulatedCardPassUnderRandomSchedules)
{
	expect_holds("explore_mlx4", 60);
	expect_holds("explore_mthca", 60);
}
/* Adds the management agents and IP over InfiniBand. */
TEST(Explorer, IpoibDeviceCanBeRemovedDuringMulticastJoin)
{
	expect_holds("explore_on_a_card", 10);
}
