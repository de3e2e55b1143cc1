// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the order of the timeline's tasks, and their distribution among threads.
#include <array>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include "base/reactor.hpp"
#include "net/fabric/timeline.hpp"

namespace weft::fabric
{
namespace
{

using namespace std::chrono_literals;

// The addresses of these objects are on every queue of a timeline with a few threads.
using Owners = std::array<int, 64>;

// While a task of one owner waits, tasks of other owners run on other threads.
TEST(Timeline, TasksOfOtherOwnersRunWhileATaskWaits)
{
	Timeline timeline(nullptr, 4);
	Owners owners;
	std::atomic<bool> other_ran{false};
	std::latch done(1);
	timeline.after(
		{},
		[&] {
			const auto limit = std::chrono::steady_clock::now() + 60s;
			while (!other_ran && std::chrono::steady_clock::now() < limit)
				std::this_thread::yield();
			EXPECT_TRUE(other_ran);
			done.count_down();
		},
		&owners[0]);
	for (std::size_t i = 1; i < owners.size(); i++)
		timeline.after({}, [&] { other_ran = true; }, &owners[i]);
	done.wait();
	timeline.stop();
}

// The tasks of each owner run in the order of their times, and those with the same time in the
// order in which they were scheduled, although the timeline has several threads.
TEST(Timeline, TasksOfOneOwnerRunInOrder)
{
	constexpr int tasks = 1000;
	Timeline timeline(nullptr, 4);
	Owners owners;
	std::array<std::vector<int>, owners.size()> ran;
	std::latch done(owners.size() * tasks);
	const auto when = timeline.now() + 1ms;
	for (int i = 0; i < tasks; i++)
		for (std::size_t owner = 0; owner < owners.size(); owner++)
			timeline.at(
				when,
				[&, i, owner] {
					ran[owner].push_back(i);
					done.count_down();
				},
				&owners[owner]);
	done.wait();
	timeline.stop();
	for (const std::vector<int> &order : ran) {
		EXPECT_EQ(std::size_t{tasks}, order.size());
		EXPECT_TRUE(std::ranges::is_sorted(order));
	}
}

// With a reactor, the tasks of different owners run in the order in which they were scheduled, so
// that a run in virtual time can be repeated.
TEST(Timeline, TasksOfAllOwnersRunInOrderOnAReactor)
{
	Reactor reactor("test", Reactor::Drive::manual);
	Timeline timeline(&reactor, 4);
	Owners owners;
	std::vector<std::size_t> ran;
	const auto when = timeline.now();
	for (std::size_t i = 0; i < owners.size(); i++)
		timeline.at(when, [&ran, i] { ran.push_back(i); }, &owners[i]);
	while (ran.size() < owners.size())
		reactor.turn(Clock::time_point::max());
	EXPECT_TRUE(std::ranges::is_sorted(ran));
	timeline.stop();
}

// If a thread cannot be started, its first task is refused, and a later one runs.
TEST(Timeline, TaskRunsAfterTheThreadCouldNotBeStartedForAnEarlierOne)
{
	Timeline timeline(nullptr, 1);
	int owner = 0;
	rlimit former{};
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &former));
	const rlimit none{.rlim_cur = 0, .rlim_max = former.rlim_max};
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_ANY_THROW(timeline.after({}, [] {}, &owner));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &former));
	EXPECT_EQ(0u, timeline.planned());
	std::latch done(1);
	timeline.after(1ms, [&] { done.count_down(); }, &owner);
	done.wait();
	timeline.stop();
}

// planned() counts the tasks on all threads, of which forget() drops those of one owner, and
// stop() all.
TEST(Timeline, ForgetDropsOnlyTheTasksOfOneOwner)
{
	Timeline timeline(nullptr, 4);
	Owners owners;
	for (int &owner : owners)
		timeline.after(1h, [] {}, &owner);
	EXPECT_EQ(owners.size(), timeline.planned());
	timeline.forget(&owners[3]);
	EXPECT_EQ(owners.size() - 1, timeline.planned());
	timeline.stop();
	EXPECT_EQ(0u, timeline.planned());
}

} // namespace
} // namespace weft::fabric
