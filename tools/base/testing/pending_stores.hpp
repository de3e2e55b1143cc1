// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Helps tests to detect a missing memory barrier between two threads: delays the stores of one
// thread, and repeats a test while both threads run at the same time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace weft::testing
{

// An x86 CPU commits the stores of a thread in their order, and each of them waits until the CPU's
// cache has the line. After begin(), stores to lines that are in no cache are pending. A store that
// follows becomes visible to other threads only after them, about a microsecond later. Loads that
// follow do not wait, so that they pass this store if there is no barrier.
class PendingStores
{
public:
	// Must be called by one thread only.
	void begin()
	{
		for (unsigned i = 0; i < kPending; i++) {
			at_ = (at_ + kStep) % kLines;
			*static_cast<volatile std::uint64_t *>(&memory_[at_ * kWordsOfLine]) = at_;
		}
	}

private:
	// More lines than the second-level cache of a CPU has.
	static constexpr std::size_t kLines = std::size_t{1} << 20;
	static constexpr std::size_t kWordsOfLine = 8;
	// All lines are used before one is used again, and consecutive ones are in different pages.
	static constexpr std::size_t kStep = 40503;
	// Fewer than the entries of a CPU's store buffer.
	static constexpr unsigned kPending = 32;

	std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(kLines * kWordsOfLine);
	std::size_t at_ = 0;
};

// Counts the passes of a thread's loop, so that another thread can wait for them. Both threads run
// at the same time only now and then if the host is busy.
class Passes
{
public:
	// Number of rounds of the waiting thread in which the other one has run. Without
	// a barrier, tests were seen to fail in one of the first ten.
	static constexpr unsigned kRounds = 100;

	void count() { count_.store(count_ + 1, std::memory_order_release); }
	// Waits for the end of the present pass and of another one. Returns false if the other
	// thread does not seem to run.
	bool wait() const
	{
		const unsigned before = count_.load(std::memory_order_acquire);
		for (unsigned spins = 0; spins < kSpins; spins++)
			if (count_.load(std::memory_order_acquire) - before >= 2)
				return true;
		std::this_thread::yield();
		return false;
	}
	// Calls @round until it returns false, or for 10 seconds.
	template<class Round>
	void repeat(Round &&round) const
	{
		const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
		while (round() && std::chrono::steady_clock::now() < end) {
		}
	}

private:
	static constexpr unsigned kSpins = 20000;

	alignas(128) std::atomic<unsigned> count_{0};
};

} // namespace weft::testing
