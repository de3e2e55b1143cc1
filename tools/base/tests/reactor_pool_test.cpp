// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests how loops are distributed over the threads of a pool.
#include "base/reactor_pool.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/loop.hpp"

namespace
{

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

} // namespace
