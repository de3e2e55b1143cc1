// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/thread_number.hpp"

#include <array>
#include <atomic>
#include <bitset>
#include <utility>

#include "base/mutex.hpp"

namespace weft
{

namespace
{

// These objects have trivial destructors, because threads may end after static objects have been
// destroyed.
constinit Mutex numbers_mutex;
constinit std::bitset<ThreadNumber::kMost> used_numbers WEFT_GUARDED_BY(numbers_mutex);
// The last thread that got each number, identified by the address of its ThreadNumber::number_.
constinit std::array<std::atomic<const unsigned *>, ThreadNumber::kMost> number_holders{};

} // namespace

constinit thread_local unsigned ThreadNumber::number_ = kUnknown;

// Returns the number when the thread ends. The mutex makes the next holder of the number see what
// this thread has written.
struct ThreadNumber::Release {
	~Release()
	{
		const unsigned number = std::exchange(number_, kMost);
		if (number >= kMost)
			return;
		const MutexLock lock(numbers_mutex);
		used_numbers.reset(number);
	}
};

void ThreadNumber::assign()
{
	thread_local Release release;
	static_cast<void>(release);
	const MutexLock lock(numbers_mutex);
	unsigned number = 0;
	while (number < kMost && used_numbers.test(number))
		number++;
	if (number < kMost) {
		used_numbers.set(number);
		number_holders[number].store(&number_, std::memory_order_relaxed);
	}
	number_ = number;
}

bool ThreadNumber::is_own(unsigned number)
{
	return number_holders[number].load(std::memory_order_relaxed) == &number_;
}

} // namespace weft
