// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a timer fires no earlier than its delay, and that a cancelled timer fires only if it
// is started again.
#include <kern/completion.hpp>
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/time.hpp>
#include <kern/timer.hpp>

namespace
{

/* Allocated, because debug objects of the kernel warn about timers on the stack. */
struct Alarm {
	void ring()
	{
		in_soft_irq = kern_in_soft_irq();
		rung.complete();
	}
	bool in_soft_irq = false;
	kern::Completion rung;
	kern::Timer timer{kern::method<&Alarm::ring>, this};
};

/* A timer fires once, not before its time, in a soft interrupt. */
void timer_fires_no_earlier_than_its_delay(kern::kunit::Test &test)
{
	auto made = kern::make<Alarm>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Alarm &alarm = *made.value();
	/*
	 * Measured in jiffies like the timer itself: other clocks of a guest may deviate if the
	 * host was busy while they were calibrated.
	 */
	const u64 before = kern_jiffies();
	alarm.timer.start(20);
	ASSERT_TRUE(alarm.rung.wait_for(10000));
	EXPECT_GE(kern_jiffies() - before, kern_ms_to_jiffies(20));
	EXPECT_TRUE(alarm.in_soft_irq);
	EXPECT_FALSE(alarm.timer.pending());
}

/* A cancelled timer does not fire, and a restarted one fires at its new time. */
void cancelled_timer_fires_only_after_a_restart(kern::kunit::Test &test)
{
	auto made = kern::make<Alarm>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Alarm &alarm = *made.value();
	alarm.timer.start(100000);
	EXPECT_TRUE(alarm.timer.pending());
	EXPECT_TRUE(alarm.timer.cancel());
	EXPECT_FALSE(alarm.timer.cancel());
	EXPECT_FALSE(alarm.rung.done());
	alarm.timer.start(100000);
	alarm.timer.start(1);
	EXPECT_TRUE(alarm.rung.wait_for(10000));
}

} // namespace

KUNIT_SUITE(kern_timer, KUNIT_CASE(timer_fires_no_earlier_than_its_delay),
	    KUNIT_CASE(cancelled_timer_fires_only_after_a_restart));
