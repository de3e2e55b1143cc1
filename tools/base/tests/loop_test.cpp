// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/loop.hpp"

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace
{

// Tasks posted from one thread run in the order of posting, on the loop's own thread.
TEST(Loop, RunsTasksInOrderOnItsThread)
{
	weft::Loop loop("test");
	std::vector<int> seen;
	bool inside = true;
	for (int i = 0; i < 100; ++i)
		loop.post([&, i] {
			inside = inside && loop.in_loop();
			seen.push_back(i);
		});
	loop.run([] {});
	EXPECT_TRUE(inside);
	EXPECT_FALSE(loop.in_loop());
	ASSERT_EQ(seen.size(), 100u);
	for (int i = 0; i < 100; ++i)
		EXPECT_EQ(seen[i], i);
}

// run() hands an exception to its caller and leaves the loop running.
TEST(Loop, RunPassesExceptions)
{
	weft::Loop loop("test");
	EXPECT_THROW(loop.run([] { throw std::runtime_error("no"); }), std::runtime_error);
	bool ran = false;
	loop.run([&] { ran = true; });
	EXPECT_TRUE(ran);
}

// What a handler lets escape is told to who contains it, on the loop, which goes on: other handlers,
// timers and the thread that failed itself.
TEST(Loop, ContainsWhatHandlersThrow)
{
	weft::Loop loop("test"), other("other");
	std::vector<std::string> failures;
	loop.run([&] {
		loop.contain([&](const std::string &what) {
			EXPECT_TRUE(loop.in_loop());
			failures.push_back(what);
		});
	});
	loop.post([] { throw std::bad_alloc(); });
	loop.post([] { throw std::runtime_error("a reason"); });
	loop.post([] { throw 1; });
	bool ran = false;
	loop.run([&] { ran = true; });
	EXPECT_TRUE(ran);
	EXPECT_EQ(failures, (std::vector<std::string>{"std::bad_alloc", "a reason",
						      "unknown exception"}));
	other.run([&] { ran = false; });
	EXPECT_FALSE(ran);
}

// Without anybody to contain it, it ends the process.
TEST(LoopDeathTest, EndsTheProcessUncontained)
{
	EXPECT_DEATH(
		{
			weft::Loop loop("test");
			loop.post([] { throw std::runtime_error("a reason"); });
			loop.run([] {});
		},
		"a reason");
}

// A timer that is moved forward fires once, at the last deadline.
TEST(Timer, MovedForwardFiresOnceAtTheLastDeadline)
{
	weft::Loop loop("test", weft::Loop::Mode::Manual);
	int fired = 0;
	weft::Clock::time_point when;
	weft::Timer timer(loop, [&] {
		++fired;
		when = weft::Clock::now();
	});
	const auto deadline = weft::Clock::now() + 30ms;
	timer.arm(5ms);
	timer.arm(15ms);
	timer.arm_at(deadline);
	EXPECT_TRUE(timer.armed());
	ASSERT_TRUE(loop.run_until([&] { return fired > 0; }));
	EXPECT_GE(when, deadline);
	EXPECT_FALSE(timer.armed());
	EXPECT_FALSE(loop.run_until([&] { return fired > 1; }, 20ms));
}

// A timer that is moved back fires at the earlier deadline.
TEST(Timer, MovedBackFiresEarly)
{
	weft::Loop loop("test", weft::Loop::Mode::Manual);
	int fired = 0;
	weft::Timer timer(loop, [&] { ++fired; });
	timer.arm(1h);
	timer.arm(1ms);
	EXPECT_TRUE(loop.run_until([&] { return fired == 1; }));
}

// A cancelled or destroyed timer does not fire, and one armed after a cancel does.
TEST(Timer, CancelAndDestroy)
{
	weft::Loop loop("test", weft::Loop::Mode::Manual);
	int cancelled = 0, destroyed = 0, rearmed = 0;
	weft::Timer timer(loop, [&] { ++cancelled; });
	timer.arm(1ms);
	timer.cancel();
	EXPECT_FALSE(timer.armed());
	{
		weft::Timer gone(loop, [&] { ++destroyed; });
		gone.arm(1ms);
	}
	weft::Timer again(loop, [&] { ++rearmed; });
	again.arm(10ms);
	again.cancel();
	again.arm(2ms);
	EXPECT_TRUE(loop.run_until([&] { return rearmed == 1; }));
	loop.run_until([] { return false; }, 10ms);
	EXPECT_EQ(cancelled, 0);
	EXPECT_EQ(destroyed, 0);
	EXPECT_EQ(rearmed, 1);
}

// Any number of signals before the handler runs cost one run; one during the run gives another.
TEST(Wakeup, CoalescesSignals)
{
	weft::Loop loop("test", weft::Loop::Mode::Manual);
	int runs = 0;
	std::unique_ptr<weft::Wakeup> wakeup;
	wakeup = std::make_unique<weft::Wakeup>(loop, [&] {
		if (++runs == 1)
			wakeup->signal();
	});
	for (int i = 0; i < 10; ++i)
		wakeup->signal();
	loop.poll();
	EXPECT_EQ(runs, 2);
	wakeup->signal();
	wakeup.reset();
	loop.poll();
	EXPECT_EQ(runs, 2);
}

// No signal from another thread is lost: the handler sees the last value written before one.
TEST(Wakeup, LosesNoSignalFromAnotherThread)
{
	weft::Loop loop("test", weft::Loop::Mode::Manual);
	std::atomic<int> written{0};
	int seen = 0;
	weft::Wakeup wakeup(loop, [&] { seen = written.load(std::memory_order_relaxed); });
	std::thread writer([&] {
		for (int i = 1; i <= 10000; ++i) {
			written.store(i, std::memory_order_relaxed);
			wakeup.signal();
		}
	});
	EXPECT_TRUE(loop.run_until([&] { return seen == 10000; }));
	writer.join();
}

} // namespace
