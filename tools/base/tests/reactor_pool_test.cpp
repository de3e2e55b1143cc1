// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests how loops are distributed over the threads of a pool.
#include "base/reactor_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/busy_time.hpp"
#include "base/loop.hpp"

namespace
{

using namespace std::chrono_literals;

// Each loop gets its own thread while threads are left; after that, each thread gets the same
// number of loops.
TEST(ReactorPool, EventLoopsAreSpreadEvenlyOverTheThreads)
{
	weft::ReactorPool pool("pool", 3);
	std::vector<std::shared_ptr<weft::Reactor>> taken;
	for (unsigned i = 0; i < 9; ++i)
		taken.push_back(pool.take());
	const std::set<weft::Reactor *> first{taken[0].get(), taken[1].get(), taken[2].get()};
	EXPECT_EQ(first.size(), 3u);
	for (const auto &reactor : taken)
		EXPECT_EQ(std::ranges::count(taken, reactor), 3);
}

TEST(ReactorPool, ThreadLimitIsTheNumberOfCpusButAtLeast32)
{
	EXPECT_EQ(weft::most_threads(0), 32u);
	EXPECT_EQ(weft::most_threads(2), 32u);
	EXPECT_EQ(weft::most_threads(64), 64u);
}

// A released thread is reused before a new thread is created and before another thread is shared.
TEST(ReactorPool, ReleasedThreadsAreReused)
{
	weft::ReactorPool pool("pool", 3);
	auto first = pool.take(), second = pool.take();
	weft::Reactor *const freed = first.get();
	first.reset();
	EXPECT_EQ(pool.take().get(), freed);
	first = pool.take();
	const auto third = pool.take(), fourth = pool.take();
	EXPECT_EQ(first.get(), freed);
	EXPECT_NE(third.get(), second.get());
	first.reset();
	second.reset();
	EXPECT_NE(pool.take().get(), third.get());
}

// Loops of one reactor run on its thread, and destroying one does not affect the others.
TEST(ReactorPool, EventLoopsOfAReactorShareItsThreadAndCanBeRemovedSeparately)
{
	weft::ReactorPool pool("pool", 1);
	const auto reactor = pool.take();
	weft::Loop stays("stays", *reactor);
	std::thread::id own, others;
	{
		weft::Loop goes("goes", *reactor);
		goes.run([&] { others = std::this_thread::get_id(); });
	}
	stays.run([&] { own = std::this_thread::get_id(); });
	EXPECT_EQ(own, others);
	EXPECT_NE(own, std::this_thread::get_id());
}

// The clock of a pool's threads. Only the test advances it; the threads wait in real time.
class TestEnvironment final : public weft::Environment
{
public:
	weft::Clock::time_point now() const override
	{
		return weft::Clock::time_point(std::chrono::seconds(seconds_.load()));
	}
	std::chrono::system_clock::time_point date() const override { return {}; }
	std::uint64_t random() override { return 1; }
	int wait(int poll, epoll_event *events, int most, weft::Clock::time_point until) override
	{
		return host().wait(poll, events, most, until);
	}
	void advance(std::chrono::seconds by) { seconds_ += by.count(); }

private:
	std::atomic<std::int64_t> seconds_{1};
};

// Keeps a thread busy from its construction until stop().
class BusyLoop
{
public:
	explicit BusyLoop(weft::Reactor &reactor) : loop_("busy", reactor)
	{
		loop_.post([this] {
			begun_.count_down();
			ended_.wait();
		});
		begun_.wait();
	}
	void stop() { ended_.count_down(); }
	~BusyLoop()
	{
		loop_.run([] {});
	}

private:
	std::latch begun_{1}, ended_{1};
	weft::Loop loop_;
};

// Advances the clock in steps until the thread's load has fallen to @limit. Returns false if it
// does not fall within some seconds of real time.
bool advance_until_idle(TestEnvironment &environment, const weft::Reactor &reactor, double limit,
			std::chrono::seconds step)
{
	const auto end = std::chrono::steady_clock::now() + 20s;
	while (reactor.load() > limit && std::chrono::steady_clock::now() < end) {
		environment.advance(step);
		std::this_thread::yield();
	}
	return reactor.load() <= limit;
}

// The busy thread has fewer loops than the idle ones.
TEST(ReactorPool, NewLoopGetsTheThreadThatWasLeastBusyRecently)
{
	TestEnvironment environment;
	weft::ReactorPool pool("pool", 2, environment);
	const auto busy = pool.take(), idle = pool.take();
	BusyLoop work(*busy);
	environment.advance(1s);
	EXPECT_DOUBLE_EQ(busy->load(), 0.5);
	EXPECT_EQ(idle->load(), 0);
	const auto second = pool.take(), third = pool.take();
	EXPECT_EQ(second, idle);
	EXPECT_EQ(third, idle);

	// The busy time of the past counts less and less.
	work.stop();
	EXPECT_TRUE(advance_until_idle(environment, *busy, 0.01, 10s));
	EXPECT_EQ(pool.take(), busy);
}

// A new loop has no load until its guest has booted, so the load alone does not spread many of
// them.
TEST(ReactorPool, ManyNewLoopsAreNotAllGivenToTheOnlyIdleThread)
{
	TestEnvironment environment;
	weft::ReactorPool pool("pool", 2, environment);
	const auto busy = pool.take(), idle = pool.take();
	BusyLoop work(*busy);
	environment.advance(1s);
	EXPECT_DOUBLE_EQ(busy->load(), 0.5);
	std::vector<std::shared_ptr<weft::Reactor>> taken;
	for (unsigned i = 0; i < 25; ++i)
		taken.push_back(pool.take());
	EXPECT_EQ(std::ranges::count(taken, busy), 10);
	EXPECT_EQ(std::ranges::count(taken, idle), 15);
	work.stop();
}

// A thread that has been busy for 3 % of the recent time gets as many loops as an idle one.
TEST(ReactorPool, SmallDifferencesOfLoadAreIgnored)
{
	TestEnvironment environment;
	weft::ReactorPool pool("pool", 2, environment);
	const auto busy = pool.take(), idle = pool.take();
	BusyLoop work(*busy);
	environment.advance(1s);
	work.stop();
	EXPECT_TRUE(advance_until_idle(environment, *busy, 0.04, 1s));
	std::vector<std::shared_ptr<weft::Reactor>> taken;
	for (unsigned i = 0; i < 4; ++i)
		taken.push_back(pool.take());
	EXPECT_EQ(std::ranges::count(taken, busy), 2);
	EXPECT_EQ(std::ranges::count(taken, idle), 2);
}

TEST(BusyTime, ShareOfBusyTimeHalvesWithEachHalfLifeOfIdleTime)
{
	const weft::Clock::time_point start(1h);
	weft::BusyTime time(start);
	EXPECT_EQ(time.share(start + 1h), 0);
	time.set_busy(true, start + 1h);
	EXPECT_EQ(time.share(start + 1h), 0);
	EXPECT_DOUBLE_EQ(time.share(start + 1h + weft::BusyTime::kHalfLife), 0.5);
	EXPECT_DOUBLE_EQ(time.share(start + 2h), 1);
	time.set_busy(false, start + 2h);
	EXPECT_DOUBLE_EQ(time.share(start + 2h), 1);
	EXPECT_DOUBLE_EQ(time.share(start + 2h + 2 * weft::BusyTime::kHalfLife), 0.25);
	EXPECT_NEAR(time.share(start + 3h), 0, 1e-9);
}

// A thread that is busy during half of each millisecond has a load of one half.
TEST(BusyTime, ShortBusyPeriodsAreAveraged)
{
	weft::Clock::time_point now(1h);
	weft::BusyTime time(now);
	for (unsigned i = 0; i < 10'000; ++i) {
		time.set_busy(true, now += 500us);
		time.set_busy(false, now += 500us);
	}
	EXPECT_NEAR(time.share(now), 0.5, 0.01);
}

} // namespace
