// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests when queued, ordered and delayed work items run, and that their allocations do no I/O (rule
// LOCK-13).
#include <kern/atomic.hpp>
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/time.hpp>
#include <kern/work.hpp>

namespace
{

/* Allocated, because debug objects of the kernel warn about work items on the stack. */
struct Job {
	void run()
	{
		kern::sleep_ms(1); // a work item may sleep
		runs.fetch_add(1);
		done.complete();
	}
	kern::Atomic<int> runs;
	kern::Completion done;
	kern::Work work{kern::method<&Job::run>, this};
};

/* Queued work runs once, in a context that may sleep, and flush() waits for it. */
void queued_work_runs_once_before_flush_returns(kern::kunit::Test &test)
{
	auto made = kern::make<Job>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Job &job = *made.value();
	EXPECT_TRUE(job.work.queue());
	job.work.flush();
	EXPECT_EQ(job.runs.load_acquire(), 1);
	EXPECT_FALSE(job.work.cancel());
	auto queue = kern::WorkQueue::create("kern-test", kern::WorkQueue::Kind::ordered);
	ASSERT_OK(queue);
	EXPECT_TRUE(queue.value().queue(job.work));
	queue.value().flush();
	EXPECT_EQ(job.runs.load_acquire(), 2);
}

/* An ordered queue runs its work items one at a time, in the order of queueing. */
void ordered_workqueue_runs_work_items_in_queueing_order(kern::kunit::Test &test)
{
	struct Step {
		void run()
		{
			order = (*next)++;
			kern::sleep_us(50, 100);
		}
		explicit Step(int *counter) : next(counter) {}
		int *next;
		int order = -1;
		kern::Work work{kern::method<&Step::run>, this};
	};
	int next = 0;
	auto a = kern::make<Step>(kern::Gfp::kernel, &next);
	auto b = kern::make<Step>(kern::Gfp::kernel, &next);
	auto c = kern::make<Step>(kern::Gfp::kernel, &next);
	ASSERT_OK(a);
	ASSERT_OK(b);
	ASSERT_OK(c);
	{
		auto queue = kern::WorkQueue::create("kern-test", kern::WorkQueue::Kind::ordered);
		ASSERT_OK(queue);
		for (Step *step : {c.value().get(), a.value().get(), b.value().get()})
			EXPECT_TRUE(queue.value().queue(step->work));
	}
	EXPECT_EQ(c.value()->order, 0);
	EXPECT_EQ(a.value()->order, 1);
	EXPECT_EQ(b.value()->order, 2);
}

/*
 * Delayed work runs after its delay, or at once when it is flushed, or never when it is cancelled.
 */
void delayed_work_runs_after_its_delay(kern::kunit::Test &test)
{
	struct Later {
		void run() { done.complete(); }
		kern::Completion done;
		kern::DelayedWork work{kern::method<&Later::run>, this};
	};
	auto made = kern::make<Later>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Later &later = *made.value();

	/*
	 * Measured in jiffies like the delay: another clock may continue while the kernel catches
	 * up on missed ticks.
	 */
	const u64 before = kern_jiffies();
	EXPECT_TRUE(later.work.queue(20));
	ASSERT_TRUE(later.done.wait_for(10000));
	EXPECT_GE(kern_jiffies() - before, kern_ms_to_jiffies(20));
	EXPECT_TRUE(later.work.queue(100000));
	EXPECT_FALSE(later.work.queue(100000));
	later.work.flush();
	EXPECT_TRUE(later.done.wait_for(10000));
	EXPECT_TRUE(later.work.queue(100000));
	EXPECT_TRUE(later.work.cancel());
	later.work.reschedule(1);
	EXPECT_TRUE(later.done.wait_for(10000));
	EXPECT_FALSE(later.work.cancel());
}

/*
 * A work item allocates without I/O, because I/O that frees memory may itself wait for the work
 * item.
 */
void lock_13_work_items_run_in_memalloc_noio_context(kern::kunit::Test &test)
{
	struct Allocating {
		void run() { without_io = kern_noio(); }
		void run_later() { later_without_io = kern_noio(); }
		bool without_io = false, later_without_io = false;
		kern::Work work{kern::method<&Allocating::run>, this};
		kern::DelayedWork later{kern::method<&Allocating::run_later>, this};
	};
	auto made = kern::make<Allocating>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Allocating &allocating = *made.value();
	allocating.work.queue();
	allocating.work.flush();
	EXPECT_TRUE(allocating.without_io);
	allocating.later.queue(0);
	allocating.later.flush();
	EXPECT_TRUE(allocating.later_without_io);
	EXPECT_FALSE(kern_noio());
}

} // namespace

KUNIT_SUITE(kern_work, KUNIT_CASE(lock_13_work_items_run_in_memalloc_noio_context),
	    KUNIT_CASE(queued_work_runs_once_before_flush_returns),
	    KUNIT_CASE(ordered_workqueue_runs_work_items_in_queueing_order),
	    KUNIT_CASE(delayed_work_runs_after_its_delay));
