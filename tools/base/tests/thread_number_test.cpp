// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that running threads have different numbers, and that numbers of ended threads are reused.
#include "base/thread_number.hpp"

#include <algorithm>
#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft
{
namespace
{

// Returns the numbers of @count threads that run at the same time.
std::vector<unsigned> numbers_of(unsigned count)
{
	const unsigned own = ThreadNumber::get();
	std::vector<unsigned> numbers(count);
	std::barrier all(count);
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < count; i++)
		threads.emplace_back([&, i] {
			numbers[i] = ThreadNumber::get();
			all.arrive_and_wait();
			EXPECT_EQ(numbers[i], ThreadNumber::get());
			if (numbers[i] < ThreadNumber::kMost) {
				EXPECT_TRUE(ThreadNumber::is_own(numbers[i]));
			}
			EXPECT_FALSE(ThreadNumber::is_own(own));
			all.arrive_and_wait();
		});
	for (std::thread &thread : threads)
		thread.join();
	return numbers;
}

TEST(ThreadNumber, RunningThreadsHaveDifferentNumbers)
{
	const unsigned own = ThreadNumber::get();
	for (unsigned round = 0; round < 20; round++) {
		const auto numbers = numbers_of(8);
		const std::set<unsigned> different(numbers.begin(), numbers.end());
		EXPECT_EQ(8u, different.size());
		EXPECT_FALSE(different.contains(own));
		EXPECT_LT(*different.rbegin(), 20u) << "numbers of ended threads are not reused";
	}
}

TEST(ThreadNumber, ThreadsBeyondTheLimitHaveNoNumber)
{
	ASSERT_LT(ThreadNumber::get(), ThreadNumber::kMost);
	const auto numbers = numbers_of(ThreadNumber::kMost);
	// One number is that of this thread.
	EXPECT_EQ(1, std::ranges::count(numbers, ThreadNumber::kMost));
	EXPECT_EQ(ThreadNumber::kMost, std::set<unsigned>(numbers.begin(), numbers.end()).size());
	EXPECT_LT(numbers_of(1)[0], ThreadNumber::kMost);
}

TEST(ThreadNumber, KnownNumberIsThatOfTheLastCallOfGet)
{
	std::thread([] {
		EXPECT_EQ(ThreadNumber::kUnknown, ThreadNumber::known());
		const unsigned number = ThreadNumber::get();
		EXPECT_EQ(number, ThreadNumber::known());
	}).join();
}

// Destructors of thread-local objects may still count packets. Their order is the reverse of that
// in which the objects were created.
TEST(ThreadNumber, ThreadHasNoNumberAfterItsNumberWasFreed)
{
	static unsigned at_end;
	struct AtEnd {
		~AtEnd() { at_end = ThreadNumber::get(); }
	};
	unsigned before = ThreadNumber::kMost;
	std::thread([&] {
		thread_local AtEnd created_first;
		static_cast<void>(created_first);
		before = ThreadNumber::get();
	}).join();
	EXPECT_LT(before, ThreadNumber::kMost);
	EXPECT_EQ(ThreadNumber::kMost, at_end);
}

} // namespace
} // namespace weft
