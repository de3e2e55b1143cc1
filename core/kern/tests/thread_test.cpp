// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests kernel threads, deadlines and random numbers.
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

namespace
{

/*
 * A thread runs until it is asked to stop, and returns its result, even if it has already ended.
 */
void thread_stop_returns_the_result_of_the_thread_function(kern::kunit::Test &test)
{
	struct Worker {
		int run()
		{
			started.complete();
			while (!at_once && !kern::Thread::should_stop())
				kern::sleep_ms(1);
			return 42;
		}
		bool at_once;
		kern::Completion started;
	};
	for (bool at_once : {false, true}) {
		Worker worker{at_once, {}};
		auto thread =
			kern::Thread::create("kern-thread", kern::method<&Worker::run>, &worker);
		ASSERT_OK(thread);
		EXPECT_TRUE(worker.started.wait_for(10000));
		EXPECT_EQ(thread.value().stop(), 42);
		EXPECT_FALSE(static_cast<bool>(thread.value()));
	}
}

/* Time is monotonic, and a deadline does not pass before its time. */
void deadline_expires_no_earlier_than_its_delay(kern::kunit::Test &test)
{
	const u64 before = kern::now_ns();
	const auto deadline = kern::Deadline::in_ms(20);
	const auto far = kern::Deadline::in_ms(100000);
	while (!deadline.passed())
		kern::sleep_us(100, 200);
	EXPECT_GE(kern::now_ns(), before + 20000000);
	EXPECT_FALSE(far.passed());
}

/* The same seed gives the same numbers, inside their limits. */
void same_seed_gives_the_same_random_numbers(kern::kunit::Test &test)
{
	kern::SeededRandom a(test.seed()), b(test.seed());
	for (int i = 0; i < 1000; i++) {
		const u32 number = a.below(17);
		EXPECT_EQ(number, b.below(17));
		EXPECT_LT(number, 17u);
	}
}

} // namespace

KUNIT_SUITE(kern_thread, KUNIT_CASE(thread_stop_returns_the_result_of_the_thread_function),
	    KUNIT_CASE(deadline_expires_no_earlier_than_its_delay),
	    KUNIT_CASE(same_seed_gives_the_same_random_numbers));
