// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/atomic.hpp>
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/time.hpp>
#include <kern/work.hpp>

namespace {

struct Job {
	void run()
	{
		kern::sleep_ms(1); // it may
		runs.fetch_add(1);
		done.complete();
	}
	kern::Atomic<int> runs;
	kern::Completion done;
	kern::Work work{kern::method<&Job::run>, this};
};

/* Queued work runs once, in a context that may sleep, and flush() waits for it. */
void work_runs_once(kern::kunit::Test &test)
{
	Job job;
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

/* An ordered queue runs its works one at a time and in the order of queueing. */
void ordered_queue_keeps_order(kern::kunit::Test &test)
{
	struct Step {
		void run()
		{
			order = (*next)++;
			kern::sleep_us(50, 100);
		}
		int *next;
		int order = -1;
		kern::Work work{kern::method<&Step::run>, this};
	};
	int next = 0;
	Step a{&next}, b{&next}, c{&next};
	{
		auto queue = kern::WorkQueue::create("kern-test", kern::WorkQueue::Kind::ordered);
		ASSERT_OK(queue);
		for (Step *step : {&c, &a, &b})
			EXPECT_TRUE(queue.value().queue(step->work));
	}
	EXPECT_EQ(c.order, 0);
	EXPECT_EQ(a.order, 1);
	EXPECT_EQ(b.order, 2);
}

/* Delayed work runs after its delay, or at once when it is flushed, or never when it is cancelled. */
void delayed_work_waits(kern::kunit::Test &test)
{
	struct Later {
		void run() { done.complete(); }
		kern::Completion done;
		kern::DelayedWork work{kern::method<&Later::run>, this};
	} later;

	const u64 before = kern::now_ns();
	EXPECT_TRUE(later.work.queue(20));
	ASSERT_TRUE(later.done.wait_for(10000));
	EXPECT_GE(kern::now_ns() - before, 15000000u);
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

} // namespace

KUNIT_SUITE(kern_work, KUNIT_CASE(work_runs_once), KUNIT_CASE(ordered_queue_keeps_order),
	    KUNIT_CASE(delayed_work_waits));
