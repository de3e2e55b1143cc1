// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests atomic variables, also with concurrent updates.
#include <kern/atomic.hpp>
#include <kern/kunit.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

namespace
{

constexpr int rounds = 20000;

struct Adder {
	int run()
	{
		for (int i = 0; i < rounds; i++)
			counter->fetch_add(1);
		return 0;
	}
	kern::Atomic<u64> *counter;
};

/* Additions from several threads are all counted. */
void concurrent_atomic_additions_are_all_counted(kern::kunit::Test &test)
{
	kern::Atomic<u64> counter{0};
	Adder adders[4] = {{&counter}, {&counter}, {&counter}, {&counter}};
	kern::Thread threads[4];
	for (int i = 0; i < 4; i++) {
		auto thread =
			kern::Thread::create("kern-atomic", kern::method<&Adder::run>, &adders[i]);
		ASSERT_OK(thread);
		threads[i] = thread.take();
	}
	// A thread that is stopped before it has started returns -EINTR, so wait until all have
	// finished.
	while (counter.load_acquire() < u64{4} * rounds && !test.failed())
		kern::sleep_ms(1);
	for (auto &thread : threads)
		EXPECT_EQ(thread.stop(), 0);
	EXPECT_EQ(counter.load_relaxed(), u64{4} * rounds);
}

/*
 * compare_exchange() changes the variable only from the expected value, and returns the value that
 * it found.
 */
void compare_exchange_succeeds_only_on_the_expected_value(kern::kunit::Test &test)
{
	kern::Atomic<int> variable{3};
	int expected = 4;
	EXPECT_FALSE(variable.compare_exchange(expected, 5));
	EXPECT_EQ(expected, 3);
	EXPECT_TRUE(variable.compare_exchange(expected, 5));
	EXPECT_EQ(variable.exchange(6), 5);
	EXPECT_EQ(variable.fetch_or(9), 6);
	EXPECT_EQ(variable.fetch_and(7), 15);
	EXPECT_EQ(variable.fetch_sub(2), 7);
	EXPECT_EQ(variable.load_acquire(), 5);
	kern::smp_mb();
	kern::mb();
	kern::wmb();
	kern::rmb();
}

} // namespace

KUNIT_SUITE(kern_atomic, KUNIT_CASE(concurrent_atomic_additions_are_all_counted),
	    KUNIT_CASE(compare_exchange_succeeds_only_on_the_expected_value));
