// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests event loops, their timers, watches and wakeups, and the reactors that run them.
#include "base/loop.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

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

// run() passes an exception to its caller, and the loop continues to run.
TEST(Loop, RunRethrowsExceptionsToTheCaller)
{
	weft::Loop loop("test");
	EXPECT_THROW(loop.run([] { throw std::runtime_error("no"); }), std::runtime_error);
	bool ran = false;
	loop.run([&] { ran = true; });
	EXPECT_TRUE(ran);
}

// An exception that escapes from a handler is passed on the loop's thread to the function set by
// contain(). The loop continues to run: other handlers, timers, and the one that threw.
TEST(Loop, HandlerExceptionsArePassedToTheErrorCallback)
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
	EXPECT_EQ(failures,
		  (std::vector<std::string>{"std::bad_alloc", "a reason", "unknown exception"}));
	other.run([&] { ran = false; });
	EXPECT_FALSE(ran);
}

// Without a function set by contain(), the exception terminates the process.
TEST(LoopDeathTest, UnhandledExceptionTerminatesTheProcess)
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
TEST(Timer, TimerRearmedWithALongerDelayFiresOnce)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
	int fired = 0;
	weft::Clock::time_point when;
	weft::Timer timer(loop, [&] {
		++fired;
		when = loop.now();
	});
	const auto deadline = loop.now() + 30ms;
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
TEST(Timer, TimerRearmedWithAShorterDelayFiresEarlier)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
	int fired = 0;
	weft::Timer timer(loop, [&] { ++fired; });
	timer.arm(1h);
	timer.arm(1ms);
	EXPECT_TRUE(loop.run_until([&] { return fired == 1; }));
}

// A cancelled or destroyed timer does not fire, and one armed after a cancel does.
TEST(Timer, CancelledAndDestroyedTimersDoNotFire)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
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

// In virtual time a day passes at once, but only when nothing is left to do.
TEST(Timer, VirtualTimeJumpsToTheDeadlineOfTheNextTimer)
{
	weft::VirtualEnvironment environment;
	weft::Loop loop("test", weft::Loop::Mode::manual, environment);
	const auto begin = loop.now();
	std::vector<int> order;
	weft::Timer late(loop, [&] { order.push_back(2); }), soon(loop, [&] {
		order.push_back(1);
		EXPECT_EQ(loop.now() - begin, 12h);
		loop.post([&] {
			EXPECT_EQ(loop.now() - begin, 12h);
			order.push_back(3);
		});
	});
	late.arm(24h);
	soon.arm(12h);
	while (order.size() < 3)
		loop.reactor().turn(weft::Clock::time_point::max());
	EXPECT_EQ(order, (std::vector<int>{1, 3, 2}));
	EXPECT_EQ(loop.now() - begin, 24h);
}

// Random numbers depend only on the seed. Timers that are due at the same time fire in the order in
// which they were armed, not in the order of their addresses.
TEST(Timer, TimersWithEqualDeadlinesFireInArmingOrder)
{
	weft::VirtualEnvironment environment;
	weft::Loop loop("test", weft::Loop::Mode::manual, environment);
	std::vector<std::unique_ptr<weft::Timer>> timers;
	std::vector<unsigned> fired;
	for (unsigned i = 0; i < 64; ++i)
		timers.push_back(
			std::make_unique<weft::Timer>(loop, [&fired, i] { fired.push_back(i); }));
	std::vector<unsigned> order;
	for (unsigned i = 0; i < 64; ++i)
		order.push_back(i * 37 % 64);
	const auto deadline = loop.now() + std::chrono::seconds(1);
	for (const unsigned each : order)
		timers[each]->arm_at(deadline);
	ASSERT_TRUE(loop.run_until([&] { return fired.size() == timers.size(); },
				   std::chrono::seconds(5)));
	EXPECT_EQ(fired, order);
}

TEST(Environment, SameSeedGivesTheSameRandomNumbers)
{
	weft::VirtualEnvironment one(7), same(7), other(8);
	const auto first = one.random();
	EXPECT_EQ(first, same.random());
	EXPECT_NE(first, other.random());
	EXPECT_NE(first, one.random());
}

// Several loops can share a thread. An exception in one does not affect the others, and when a loop
// is destroyed, its posted tasks are destroyed with it.
TEST(Reactor, SeveralLoopsRunOnOneThread)
{
	weft::Reactor reactor("shared", weft::Reactor::Drive::manual);
	weft::Loop first("first", reactor);
	auto second = std::make_unique<weft::Loop>("second", reactor);
	std::string failed;
	first.contain([&](const std::string &what) { failed = "first " + what; });
	second->contain([&](const std::string &what) { failed = "second " + what; });
	bool ran = false, lost = false;
	second->post([] { throw std::runtime_error("fails"); });
	first.post([&] { ran = true; });
	reactor.turn(weft::Clock::time_point::min());
	EXPECT_EQ(failed, "second fails");
	EXPECT_TRUE(ran);
	second->post([&] { lost = true; });
	ran = false;
	first.post([&] { ran = true; });
	second.reset();
	first.poll();
	EXPECT_TRUE(ran);
	EXPECT_FALSE(lost);
}

// A loop that shares a running thread can be destroyed from another thread, while tasks are posted
// to it.
TEST(Reactor, LoopsCanBeAddedAndRemovedWhileTheReactorRuns)
{
	weft::Reactor reactor("shared", weft::Reactor::Drive::thread);
	weft::Loop stays("stays", reactor);
	std::atomic<int> ran{0};
	for (int i = 0; i < 200; ++i) {
		auto owned = std::make_shared<int>(i);
		{
			weft::Loop comes("comes", reactor);
			for (int task = 0; task < 10; ++task)
				comes.post([&ran, owned] { ++ran; });
		}
		EXPECT_EQ(owned.use_count(), 1) << "what was posted has run, or is gone";
	}
	stays.run([&] { EXPECT_LE(ran, 2000); });
}

struct Pipe {
	Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
	~Pipe()
	{
		::close(ends[0]);
		if (ends[1] >= 0)
			::close(ends[1]);
	}
	int ends[2];
};

// A descriptor is reported while it is ready and watched, also at end of file. It is not reported
// any more once its watch is removed, even by its own handler or by another handler of the same
// iteration.
TEST(Watch, ReportsReadyDescriptors)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
	Pipe pipe;
	unsigned reported = 0, times = 0;
	auto watch = std::make_unique<weft::Watch>(loop, pipe.ends[0], weft::Watch::kReadable,
						   [&](unsigned ready) {
							   reported = ready;
							   ++times;
						   });
	const auto turn = [&] { loop.reactor().turn(weft::Clock::time_point::min()); };
	turn();
	EXPECT_EQ(times, 0u);
	ASSERT_EQ(::write(pipe.ends[1], "x", 1), 1);
	turn();
	turn();
	EXPECT_EQ(times, 2u) << "it is still ready";
	EXPECT_EQ(reported, unsigned{weft::Watch::kReadable});
	watch->want(weft::Watch::kNothing);
	turn();
	EXPECT_EQ(times, 2u);
	char byte;
	ASSERT_EQ(::read(pipe.ends[0], &byte, 1), 1);
	watch->want(weft::Watch::kReadable);
	turn();
	EXPECT_EQ(times, 2u);
	::close(std::exchange(pipe.ends[1], -1));
	turn();
	EXPECT_EQ(times, 3u) << "the end of a file is told";
	watch->want(weft::Watch::kNothing);
	EXPECT_EQ(loop.poll(), 0u) << "and keeps no loop busy that does not want it";
}

TEST(Watch, WatchForPeerCloseReportsTheCloseButNotArrivingData)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
	Pipe pipe;
	unsigned reported = 0;
	weft::Watch watch(loop, pipe.ends[0], weft::Watch::kClosed,
			  [&](unsigned ready) { reported = ready; });
	const auto turn = [&] { return loop.reactor().turn(weft::Clock::time_point::min()); };
	ASSERT_EQ(::write(pipe.ends[1], "x", 1), 1);
	EXPECT_EQ(turn(), 0u);
	::close(std::exchange(pipe.ends[1], -1));
	turn();
	EXPECT_EQ(reported, unsigned{weft::Watch::kClosed});
}

TEST(Watch, WatchCanBeRemovedInItsHandler)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
	Pipe one, two;
	ASSERT_EQ(::write(one.ends[1], "x", 1), 1);
	ASSERT_EQ(::write(two.ends[1], "x", 1), 1);
	int ran = 0;
	std::unique_ptr<weft::Watch> first, second;
	const auto both = [&](unsigned) {
		first.reset();
		second.reset();
		++ran;
	};
	first = std::make_unique<weft::Watch>(loop, one.ends[0], weft::Watch::kReadable, both);
	second = std::make_unique<weft::Watch>(loop, two.ends[0], weft::Watch::kReadable, both);
	loop.reactor().turn(weft::Clock::time_point::min());
	EXPECT_EQ(ran, 1);
}

// Signals before the handler runs cause one run. A signal during the run causes another one.
TEST(Wakeup, SeveralSignalCallsBeforeTheHandlerRunsCauseOneHandlerCall)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
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

// No signal from another thread is lost: the handler sees the last value that was written before a
// signal.
TEST(Wakeup, HandlerSeesTheLastValueThatAThreadWroteBeforeItCalledSignal)
{
	weft::Loop loop("test", weft::Loop::Mode::manual);
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
