// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Each check of core/kern/hosted is seen to report its planted defect
// (core/kern/hosted/tests/planted.cpp), and races are found by seeds.
#include "explored.hpp"

using namespace explore;

namespace
{

/* It fails in the plain order already, with such a title. */
void expect_reported(const std::string &name, const std::string &title)
{
	expect_at_once("planted_seam." + name, title);
}

/*
 * It is right in the plain order, and fails by a seed; the same by that seed again, and by a plan
 * without anything that it does not need.
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

TEST(ExplorerSeam, reports_locks_taken_in_a_circle)
{
	expect_reported("locks_in_a_circle", "locks are taken in a circle");
}
TEST(ExplorerSeam, reports_a_lock_taken_twice)
{
	expect_reported("lock_twice", "a lock is taken twice");
}
TEST(ExplorerSeam, reports_a_lock_that_another_has)
{
	expect_reported("lock_of_another", "a lock is released by one who does not hold it");
}
TEST(ExplorerSeam, reports_sleeping_under_a_lock)
{
	expect_reported("sleep_under_a_lock", "sleeping where one must not");
}
TEST(ExplorerSeam, reports_a_reader_that_waits_for_readers)
{
	expect_reported("sleep_as_a_reader", "sleeping where one must not");
}
TEST(ExplorerSeam, reports_an_interrupt_that_allocates)
{
	expect_reported("allocation_in_an_interrupt", "sleeping where one must not");
}
TEST(ExplorerSeam, reports_a_lock_of_interrupts_with_these_on)
{
	expect_reported("lock_of_interrupts", "a lock of hard interrupts is taken with these on");
}
TEST(ExplorerSeam, reports_waiting_for_a_work_under_its_lock)
{
	expect_reported("work_waited_for_under_its_lock", "locks are taken in a circle");
}
TEST(ExplorerSeam, reports_a_leak)
{
	expect_reported("leak", "memory is left");
}
TEST(ExplorerSeam, reports_memory_freed_by_another_function)
{
	expect_reported("freed_by_another_function", "memory is freed by another function");
}
TEST(ExplorerSeam, reports_memory_freed_with_its_lock_held)
{
	expect_reported("freed_with_its_lock_held", "memory is freed while a lock in it is held");
}
TEST(ExplorerSeam, reports_a_task_that_ends_with_a_lock)
{
	expect_reported("task_ends_with_a_lock", "a lock is held at the end of its task");
}
TEST(ExplorerSeam, reports_a_task_that_ends_as_a_reader)
{
	expect_reported("task_ends_as_a_reader", "a section is still open at the end of its task");
}
TEST(ExplorerSeam, reports_memory_freed_with_a_timer_due)
{
	expect_reported("freed_with_a_timer_due", "memory is freed while a call in it is due");
}
TEST(ExplorerSeam, reports_memory_left_mapped)
{
	expect_reported("mapped_and_left", "memory is mapped for a device that goes");
}
TEST(ExplorerSeam, reports_undefined_behaviour)
{
	expect_reported("shifted_too_far", "undefined behaviour");
}

TEST(ExplorerSeam, reports_a_run_without_end)
{
	EXPECT_EQ(failure_of("planted_seam.without_end", 1, {.steps = 10'000}).title,
		  "the run does not come to its end");
}

TEST(ExplorerSeam, finds_a_use_after_a_grace_period)
{
	expect_found("planted_seam.used_after_a_grace_period",
		     "AddressSanitizer: heap-use-after-free");
}
TEST(ExplorerSeam, finds_a_lost_addition)
{
	expect_found("planted_seam.lost_addition", "expected number.load_relaxed() == 2");
}
TEST(ExplorerSeam, finds_a_lost_wakeup)
{
	expect_found("planted_seam.lost_wakeup", "nobody can run");
}
TEST(ExplorerSeam, finds_time_that_passes)
{
	expect_found("planted_seam.time_that_passes", "expected not race.late");
}
TEST(ExplorerSeam, finds_a_forgotten_undo)
{
	expect_found("planted_seam.forgotten_undo", "memory is left");
}
TEST(ExplorerSeam, says_which_allocation_failed)
{
	const Failure found = failure_of("planted_seam.forgotten_undo", 2000);
	const std::string text = report(case_of("planted_seam.forgotten_undo"), found, {});

	EXPECT_NE(text.find("an allocation fails in "), std::string::npos) << text;
}
TEST(ExplorerSeam, finds_a_work_that_does_without_memory)
{
	expect_found("planted_seam.work_without_memory", "expected port.sum == 1");
}
/* NOTIFY-09, and a driver that forgets to look after arming. */
TEST(ExplorerSeam, finds_a_lost_completion)
{
	expect_found("planted_notify.forgets", "nobody can run");
}
