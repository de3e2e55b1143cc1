// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each check of core/kern/sim reports the defect that is injected for it
// (core/kern/sim/tests/defects.cpp), and that some seeds find each injected race.
#include "explored.hpp"

using namespace explore;

namespace
{

/* Checks that the case fails with this title even without a context switch that a seed chooses. */
void expect_reported(const std::string &name, const std::string &title)
{
	expect_at_once("simulation_defects." + name, title);
}

/*
 * Checks that the case succeeds without chosen context switches and fails with some seed. It must
 * fail in the same way with that seed again, and with a minimal plan.
 */
void expect_found(const std::string &name, const std::string &title)
{
	const Failure first = failure_of(name, 2000), again = failure_of(name, first.seed);

	EXPECT_EQ(first.title.substr(0, title.size()), title);
	EXPECT_GT(first.seed, 0u);
	EXPECT_EQ(again.seed, first.seed);
	EXPECT_EQ(again.plan.size(), first.plan.size());
	const std::string text = report(case_of(name), first, {});
	EXPECT_NE(text.find("The interleaving"), std::string::npos) << text;
	EXPECT_EQ(text.find("did not lead there"), std::string::npos) << text;
}

} // namespace

TEST(ExplorerSimulation, ReportsLockOrderCycles)
{
	expect_reported("lock_order_cycle_is_reported", "circular lock dependency");
}
TEST(ExplorerSimulation, ReportsRecursiveLocking)
{
	expect_reported("recursive_locking_is_reported", "a lock is taken twice");
}
TEST(ExplorerSimulation, ReportsUnlockByAnotherTask)
{
	expect_reported("release_of_a_lock_that_is_not_held_is_reported",
			"a lock is released by a fiber that does not hold it");
}
TEST(ExplorerSimulation, ReportsSleepingUnderASpinLock)
{
	expect_reported("sleep_under_a_spinlock_is_reported",
			"a function that may sleep is called in atomic context");
}
TEST(ExplorerSimulation, ReportsSleepingInRcuSections)
{
	expect_reported("sleep_in_rcu_section_is_reported",
			"a function that may sleep is called in atomic context");
}
TEST(ExplorerSimulation, ReportsSleepingAllocationInInterrupts)
{
	expect_reported("sleeping_allocation_in_an_interrupt_is_reported",
			"a function that may sleep is called in atomic context");
}
TEST(ExplorerSimulation, ReportsIrqUnsafeLocking)
{
	expect_reported("lock_taken_in_an_irq_and_with_irqs_enabled_is_reported",
			"a lock of hard interrupts is taken with hard interrupts enabled");
}
TEST(ExplorerSimulation, ReportsFlushOfWorkThatTakesAHeldLock)
{
	expect_reported("work_cancelled_under_a_lock_that_the_work_item_takes_is_reported",
			"circular lock dependency");
}
TEST(ExplorerSimulation, ReportsMemoryLeaks)
{
	expect_reported("memory_leak_is_reported", "memory was not freed");
}
TEST(ExplorerSimulation, ReportsMismatchedFree)
{
	expect_reported("memory_freed_by_the_wrong_function_is_reported",
			"memory is freed with the wrong function");
}
TEST(ExplorerSimulation, ReportsFreeOfAHeldLock)
{
	expect_reported("memory_freed_while_it_contains_a_held_lock_is_reported",
			"memory is freed while a lock in it is held");
}
TEST(ExplorerSimulation, ReportsTaskExitWithLockHeld)
{
	expect_reported("task_exit_with_lock_held_is_reported",
			"a lock is held at the end of its task");
}
TEST(ExplorerSimulation, ReportsTaskExitInRcuSection)
{
	expect_reported("task_exit_in_rcu_section_is_reported",
			"a section is still open at the end of its task");
}
TEST(ExplorerSimulation, ReportsFreeOfAPendingTimer)
{
	expect_reported("memory_freed_while_it_contains_a_pending_timer_is_reported",
			"memory is freed while a call in it is pending");
}
TEST(ExplorerSimulation, ReportsLeakedDmaMappings)
{
	expect_reported("leaked_dma_mapping_is_reported",
			"a device is removed while memory is mapped for it");
}
TEST(ExplorerSimulation, ReportsUndefinedBehaviour)
{
	expect_reported("shift_beyond_the_width_of_an_integer_is_reported", "undefined behaviour");
}

TEST(ExplorerSimulation, ReportsLivelocks)
{
	EXPECT_EQ(failure_of("simulation_defects.livelock_is_reported", 1, {.steps = 10'000}).title,
		  "the run does not finish");
}

TEST(ExplorerSimulation, FindsUseAfterTheRcuGracePeriod)
{
	expect_found("simulation_defects.use_of_an_rcu_object_after_its_read_section_is_reported",
		     "AddressSanitizer: heap-use-after-free");
}
TEST(ExplorerSimulation, FindsLostUpdates)
{
	expect_found("simulation_defects.update_lost_between_an_atomic_load_and_store_is_reported",
		     "expected number.load_relaxed() == 2");
}
TEST(ExplorerSimulation, FindsLostWakeups)
{
	expect_found("simulation_defects.lost_wakeup_is_reported", "deadlock: no fiber can run");
}
TEST(ExplorerSimulation, FindsFalseAssumptionThatALoopEndsBeforeATimerFires)
{
	expect_found(
		"simulation_defects.failure_caused_by_a_timer_that_fires_during_a_loop_is_reported",
		"expected not race.late");
}
TEST(ExplorerSimulation, FindsMissingRollbackAfterAFailedAllocation)
{
	expect_found(
		"simulation_defects.leak_of_the_first_allocation_after_the_second_failed_is_reported",
		"memory was not freed");
}
TEST(ExplorerSimulation, ReportsWhichAllocationFailed)
{
	const Failure found = failure_of(
		"simulation_defects.leak_of_the_first_allocation_after_the_second_failed_is_reported",
		2000);
	const std::string text = report(
		case_of("simulation_defects.leak_of_the_first_allocation_after_the_second_failed_is_reported"),
		found, {});

	EXPECT_NE(text.find("an allocation fails in "), std::string::npos) << text;
}
TEST(ExplorerSimulation, FindsUnhandledAllocationFailureInAWorkItem)
{
	expect_found("simulation_defects.unhandled_allocation_failure_in_a_work_item_is_reported",
		     "expected port.sum == 1");
}
/* NOTIFY-09: the driver does not check for completions after arming. */
TEST(ExplorerSimulation, FindsDriversThatDoNotCheckForCompletionsAfterArmingTheCq)
{
	expect_found(
		"notify_defects.explorer_detects_a_lost_completion_if_arming_does_not_report_missed_completions",
		"deadlock: no fiber can run");
}
