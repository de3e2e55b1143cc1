// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that completions wake the right number of waiters, that wait queues lose no wake-up, and
// that no wait times out early.
#include <kern/atomic.hpp>
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>
#include <kern/wait_queue.hpp>

namespace
{

/* Each complete() wakes one waiter; complete_all() wakes all. */
void each_call_of_complete_wakes_one_waiter_and_complete_all_wakes_all_waiters(
	kern::kunit::Test &test)
{
	kern::Completion completion;
	EXPECT_FALSE(completion.done());
	EXPECT_FALSE(completion.wait_for(1));
	completion.complete();
	completion.complete();
	EXPECT_TRUE(completion.wait_for(10000));
	EXPECT_TRUE(completion.wait_for(10000));
	EXPECT_FALSE(completion.wait_for(1));
	completion.complete_all();
	for (int i = 0; i < 3; i++)
		EXPECT_TRUE(completion.wait_for(10000));
	completion.reinit();
	EXPECT_FALSE(completion.wait_for(1));
}

/* Two threads wake each other alternately, and no wake-up is lost. */
void wait_queue_loses_no_wake_up(kern::kunit::Test &test)
{
	constexpr int rounds = 500;
	struct Player {
		int run()
		{
			for (int i = 0; i < rounds; i++) {
				if (!queue->wait_for(
					    30000, [&] { return ball->load_acquire() == mine; })) {
					lost = true;
					break;
				}
				ball->store_release(1 - mine);
				queue->wake_all();
			}
			done.complete();
			return 0;
		}
		kern::WaitQueue *queue;
		kern::Atomic<int> *ball;
		int mine;
		bool lost = false;
		kern::Completion done;
	};
	kern::WaitQueue queue(KERN_LOCK_CLASS("test.queue"));
	kern::Atomic<int> ball{0};
	Player one{&queue, &ball, 0, false, {}}, two{&queue, &ball, 1, false, {}};
	auto first = kern::Thread::create("kern-ping", kern::method<&Player::run>, &one);
	ASSERT_OK(first);
	auto second = kern::Thread::create("kern-pong", kern::method<&Player::run>, &two);
	EXPECT_OK(second);
	one.done.wait();
	if (second.ok())
		two.done.wait();
	EXPECT_FALSE(one.lost);
	EXPECT_FALSE(two.lost);
	EXPECT_EQ(ball.load_relaxed(), 0);
}

/* A wait does not time out before its time. */
void timed_wait_does_not_return_false_before_the_timeout_has_elapsed(kern::kunit::Test &test)
{
	kern::WaitQueue queue(KERN_LOCK_CLASS("test.timeout"));
	/*
	 * Measured in jiffies like the limit: another clock may continue while the kernel catches
	 * up on missed ticks.
	 */
	const u64 before = kern_jiffies();
	EXPECT_FALSE(queue.wait_for(20, [] { return false; }));
	EXPECT_GE(kern_jiffies() - before, kern_ms_to_jiffies(20));
	EXPECT_TRUE(queue.wait_for(0, [] { return true; }));
	EXPECT_OK(queue.wait_interruptible([] { return true; }));
}

} // namespace

KUNIT_SUITE(kern_wait,
	    KUNIT_CASE(each_call_of_complete_wakes_one_waiter_and_complete_all_wakes_all_waiters),
	    KUNIT_CASE(wait_queue_loses_no_wake_up),
	    KUNIT_CASE(timed_wait_does_not_return_false_before_the_timeout_has_elapsed));
