// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that counters which each thread increments on its own lose nothing and never decrease.
#include "net/fabric/thread_counters.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/counters.hpp"

namespace weft::fabric
{
namespace
{

constexpr unsigned kEach = 20000;

// Holds all numbers of threads that are free, so that threads which begin later have none.
class AllNumbers
{
public:
	AllNumbers()
	{
		for (unsigned i = 0; i < ThreadNumber::kMost; i++)
			threads_.emplace_back([this] {
				ThreadNumber::get();
				all_.arrive_and_wait();
				end_.wait(false);
			});
		all_.arrive_and_wait();
	}
	~AllNumbers()
	{
		end_ = true;
		end_.notify_all();
		for (std::thread &thread : threads_)
			thread.join();
	}
	AllNumbers(const AllNumbers &) = delete;
	AllNumbers &operator=(const AllNumbers &) = delete;

private:
	std::barrier<> all_{ThreadNumber::kMost + 1};
	std::atomic<bool> end_{false};
	std::vector<std::thread> threads_;
};

// Some threads share a stripe, because there are more threads than stripes. They begin together.
TEST(ThreadCounters, IncrementsOfMoreThreadsThanStripesAreAllCounted)
{
	constexpr unsigned count = ThreadCounters::kThreads + 10;
	ThreadCounters counters;
	std::barrier begin(count);
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < count; i++)
		threads.emplace_back([&] {
			ThreadNumber::get();
			begin.arrive_and_wait();
			for (unsigned j = 0; j < kEach; j++)
				counters.add({0, 1}, ThreadCounters::Addition{5, 3});
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(std::uint64_t{count} * kEach, counters.value(0));
	EXPECT_EQ(0u, counters.value(1));
	const auto values = counters.values();
	EXPECT_EQ(counters.value(0), values[0]);
	EXPECT_EQ(std::uint64_t{count} * kEach * 3, values[5]);
}

// The first increment of two threads creates the block of both. They increment each counter at the
// same time, as long as both threads run.
TEST(ThreadCounters, FirstIncrementsOfConcurrentThreadsAreAllCounted)
{
	struct Shared {
		ThreadCounters counters;
		std::atomic<unsigned> arrived = 0;
	};
	ThreadNumber::get();
	std::vector<Shared> all(20000);
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < 2; i++)
		threads.emplace_back([&] {
			for (Shared &each : all) {
				each.arrived++;
				for (unsigned spins = 0; each.arrived != 2 && spins < 2000;
				     spins++) {
				}
				each.counters.add({1, 1});
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	for (const Shared &each : all)
		ASSERT_EQ(2u, each.counters.value(1));
}

// A thread continues the stripe of a thread that has ended.
TEST(ThreadCounters, IncrementsOfEndedThreadsAreKept)
{
	ThreadCounters counters;
	for (unsigned i = 0; i < 200; i++)
		std::thread([&] { counters.add({2, 5}); }).join();
	EXPECT_EQ(1000u, counters.value(2));
}

TEST(ThreadCounters, ValuesNeverDecreaseWhileThreadsIncrementThem)
{
	ThreadCounters counters;
	std::atomic<bool> stop = false;
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < 3; i++)
		threads.emplace_back([&] {
			while (!stop)
				counters.add({0, 1});
		});
	while (counters.value(0) < kEach)
		std::this_thread::yield();
	std::uint64_t before = 0;
	unsigned decreases = 0;
	const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
	while (std::chrono::steady_clock::now() < end) {
		const std::uint64_t now = counters.value(0);
		decreases += now < before;
		before = now;
	}
	stop = true;
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(0u, decreases);
}

// Set(PortCounters) sets counters on another thread than those that add to them.
TEST(ThreadCounters, SetReplacesWhatThreadsWithAndWithoutNumbersHaveAdded)
{
	ThreadCounters counters;
	counters.add({0, 100});
	std::thread([&] {
		counters.add({0, 50});
		counters.set(0, 7);
	}).join();
	EXPECT_EQ(7u, counters.value(0));
	const AllNumbers all;
	std::thread([&] {
		EXPECT_EQ(ThreadNumber::kMost, ThreadNumber::get());
		counters.add({0, 30});
		EXPECT_EQ(37u, counters.value(0));
		counters.set(0, 9);
		EXPECT_EQ(9u, counters.value(0));
		counters.add({0, 1});
	}).join();
	EXPECT_EQ(10u, counters.value(0));
	counters.add({0, 1});
	EXPECT_EQ(11u, counters.value(0));
	EXPECT_EQ(11u, counters.values()[0]);
}

// After a counter was set, its value is at least what was added since then, and at most what was
// added since the moment before.
TEST(ThreadCounters, SettingAValueNeitherLosesNorRestoresIncrements)
{
	constexpr unsigned with_number = 2, count = 4;
	constexpr std::uint64_t high = std::uint64_t{1} << 40;
	struct alignas(64) Adder {
		std::atomic<std::uint64_t> begun = 0, done = 0;
		std::thread thread;
	};
	ThreadCounters counters;
	std::array<Adder, count> adders;
	std::barrier all_have_numbers(with_number + 1);
	std::atomic<bool> stop = false;
	const auto add = [&](Adder &adder) {
		for (std::uint64_t i = 1; !stop; i++) {
			adder.begun = i;
			counters.add({0, 1}, ThreadCounters::Addition{1, 1});
			adder.done = i;
		}
	};
	const auto sum = [&](std::atomic<std::uint64_t> Adder::*member) {
		std::uint64_t total = 0;
		for (const Adder &adder : adders)
			total += adder.*member;
		return total;
	};
	for (unsigned i = 0; i < with_number; i++)
		adders[i].thread = std::thread([&, i] {
			EXPECT_LT(ThreadNumber::get(), ThreadNumber::kMost);
			all_have_numbers.arrive_and_wait();
			add(adders[i]);
		});
	all_have_numbers.arrive_and_wait();
	const AllNumbers all;
	for (unsigned i = with_number; i < count; i++)
		adders[i].thread = std::thread([&, i] {
			EXPECT_EQ(ThreadNumber::kMost, ThreadNumber::get());
			add(adders[i]);
		});
	unsigned too_low = 0, too_high = 0;
	const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
	while (std::chrono::steady_clock::now() < end) {
		const std::uint64_t done_before = sum(&Adder::done);
		counters.set(0, high);
		const std::uint64_t begun_after = sum(&Adder::begun);
		const std::uint64_t done_then = sum(&Adder::done);
		const std::uint64_t value = counters.value(0);
		const std::uint64_t begun_then = sum(&Adder::begun);
		too_low += value < high;
		if (done_then > begun_after)
			too_low += value < high + (done_then - begun_after);
		too_high += value > high + (begun_then - done_before);
	}
	stop = true;
	for (Adder &adder : adders)
		adder.thread.join();
	EXPECT_EQ(0u, too_low);
	EXPECT_EQ(0u, too_high);
	// Setting one counter does not change another one, and no increment is lost.
	EXPECT_EQ(sum(&Adder::done), counters.value(1));
}

// Calls @body repeatedly for half a second on two threads, of which the caller is one.
template<class Body>
void repeat_on_two_threads(const Body &body)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
	const auto repeat = [&] {
		while (std::chrono::steady_clock::now() < end)
			for (unsigned i = 0; i < 100; i++)
				body();
	};
	std::thread other(repeat);
	repeat();
	other.join();
}

// If both threads subtracted the old value, the counter would have a value near 2^64.
TEST(ThreadCounters, ConcurrentResetsSubtractTheOldValueOnlyOnce)
{
	ThreadCounters counters;
	std::atomic<unsigned> below = 0;
	repeat_on_two_threads([&] {
		counters.add({0, 1000});
		counters.set(0, 0);
		if (counters.value(0) > UINT64_MAX / 2)
			below++;
	});
	EXPECT_EQ(0u, below);
	counters.set(0, 5);
	EXPECT_EQ(5u, counters.value(0));
}

// A reader that sees a reset must see all increments that were subtracted.
TEST(ThreadCounters, ReaderSeesNoValueBelowZeroDuringResets)
{
	ThreadCounters counters;
	std::atomic<bool> stop = false;
	const auto add = [&] {
		while (!stop)
			counters.add({0, 1});
	};
	ThreadNumber::get();
	std::atomic<bool> has_number = false;
	std::thread with_number([&] {
		ThreadNumber::get();
		has_number = true;
		add();
	});
	while (!has_number)
		std::this_thread::yield();
	const AllNumbers all;
	std::thread without_number(add);
	std::atomic<unsigned> below = 0;
	repeat_on_two_threads([&] {
		counters.set(0, 0);
		if (counters.value(0) > UINT64_MAX / 2)
			below++;
		if (counters.values()[0] > UINT64_MAX / 2)
			below++;
	});
	stop = true;
	with_number.join();
	without_number.join();
	EXPECT_EQ(0u, below);
}

TEST(PortCounters, PacketCountersAreReadAndSetLikeOtherCounters)
{
	Counters counters;
	counters.count_sent(3, 100, false);
	counters.count_sent(1, 10, true);
	counters.count_received(2, 20, true);
	EXPECT_EQ(4u, counters.xmit_packets);
	EXPECT_EQ(110u, counters.xmit_data.load());
	EXPECT_EQ(1u, counters.multicast_xmit_packets);
	EXPECT_EQ(2u, counters.rcv_packets);
	EXPECT_EQ(20u, counters.rcv_data);
	EXPECT_EQ(1u, counters.multicast_rcv_packets);
	counters.rcv_packets = 9;
	Counters::add(counters.rcv_packets);
	Counters::add(counters.xmit_wait, 2);
	EXPECT_EQ(10u, counters.rcv_packets);
	EXPECT_EQ(2u, counters.xmit_wait);
}

} // namespace
} // namespace weft::fabric
