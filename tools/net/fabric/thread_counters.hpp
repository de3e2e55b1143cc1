// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Counters that many threads increment for each packet. Each thread has a stripe of its own, which
 * no other thread writes, so that an increment is a plain load and store without contention. The
 * value of a counter is the sum over the stripes, less an offset, which is 0 until the counter is
 * set. Threads without a number (ThreadNumber) share a stripe, which they increment atomically.
 *
 * Memory: the stripes of kBlock threads with consecutive numbers are allocated together, when the
 * first of these threads increments a counter, with 64 bytes for each stripe. Counters that no
 * thread has incremented have only the shared stripe. Stripes are freed with the counters, because
 * they contain what threads have counted that have ended; the next thread with the same number
 * continues its stripe.
 */
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <new>

#include "base/thread_number.hpp"

namespace weft::fabric
{

class ThreadCounters
{
public:
	static constexpr unsigned kCounters = 6;
	/* The number of threads that have their own stripes. */
	static constexpr unsigned kThreads = ThreadNumber::kMost;

	using Values = std::array<std::uint64_t, kCounters>;
	struct Addition {
		unsigned counter;
		std::uint64_t amount;
	};

	ThreadCounters() = default;
	ThreadCounters(const ThreadCounters &) = delete;
	ThreadCounters &operator=(const ThreadCounters &) = delete;
	~ThreadCounters()
	{
		for (const std::atomic<Block *> &block : blocks_)
			delete block.load(std::memory_order_relaxed);
	}

	/* Adds to one or more counters. The thread's stripe is looked up only once. */
	template<class... More>
	void add(Addition first, More... more)
	{
		const unsigned number = ThreadNumber::known();
		Block *const block = blocks_[number / kBlock].load(std::memory_order_acquire);
		if (!block) [[unlikely]]
			return add_slowly(
				std::array<Addition, 1 + sizeof...(more)>{first, more...});
		assert(ThreadNumber::is_own(number));
		Stripe &stripe = (*block)[number % kBlock];
		add_alone(stripe, first);
		(add_alone(stripe, more), ...);
	}

	/* Returns the values of all counters. Each is at least what has been added before. */
	Values values() const
	{
		Values offsets, sums{};
		/* First: see set(). */
		for (unsigned i = 0; i < kCounters; i++)
			offsets[i] = offsets_[i].load(std::memory_order_acquire);
		for_each_stripe([&](const Stripe &stripe) {
			for (unsigned i = 0; i < kCounters; i++)
				sums[i] += stripe.values[i].load(std::memory_order_relaxed);
		});
		for (unsigned i = 0; i < kCounters; i++)
			sums[i] -= offsets[i];
		return sums;
	}
	std::uint64_t value(unsigned counter) const
	{
		/* First: see set(). */
		const std::uint64_t offset = offsets_[counter].load(std::memory_order_acquire);
		return sum(counter) - offset;
	}
	/*
	 * Sets the value of a counter. Only the offset changes, modulo 2^64, because each stripe
	 * belongs to other threads. Therefore nothing that is added at the same time is lost. If
	 * several threads set a counter at the same time, the value of one of them remains.
	 *
	 * Stripes never decrease. The offset is released after they were read here, and readers
	 * acquire it before they read the stripes. Readers therefore see at least the sum from
	 * which the offset was computed, and never a value below zero, even if another thread has
	 * replaced the offset meanwhile.
	 */
	void set(unsigned counter, std::uint64_t value)
	{
		offsets_[counter].store(sum(counter) - value, std::memory_order_release);
	}

private:
	static constexpr unsigned kBlock = 4;
	static constexpr unsigned kBlocks = kThreads / kBlock;
	static_assert(kThreads % kBlock == 0);

	struct alignas(64) Stripe {
		std::array<std::atomic<std::uint64_t>, kCounters> values{};
	};
	using Block = std::array<Stripe, kBlock>;

	/* Adds to the stripe of the calling thread. */
	static void add_alone(Stripe &stripe, Addition addition)
	{
		std::atomic<std::uint64_t> &value = stripe.values[addition.counter];
		value.store(value.load(std::memory_order_relaxed) + addition.amount,
			    std::memory_order_relaxed);
	}
	/* The thread's block does not exist, or the thread has no number or none yet. */
	template<class Additions>
	[[gnu::noinline]] void add_slowly(const Additions &additions)
	{
		const unsigned number = ThreadNumber::get();
		Block *const block = number < kThreads ? block_of(number) : nullptr;
		for (const Addition &addition : additions)
			if (block)
				add_alone((*block)[number % kBlock], addition);
			else
				shared_.values[addition.counter].fetch_add(
					addition.amount, std::memory_order_relaxed);
	}
	/* Creates the block if it does not exist. Returns null if there is no memory. */
	Block *block_of(unsigned number)
	{
		std::atomic<Block *> &place = blocks_[number / kBlock];
		Block *present = place.load(std::memory_order_acquire);
		if (present)
			return present;
		auto *const created = new (std::nothrow) Block;
		if (!created)
			return nullptr;
		if (place.compare_exchange_strong(present, created, std::memory_order_acq_rel,
						  std::memory_order_acquire))
			return created;
		/* Another thread of the block was faster. */
		delete created;
		return present;
	}
	template<class Fn>
	void for_each_stripe(Fn &&fn) const
	{
		fn(shared_);
		for (const std::atomic<Block *> &each : blocks_)
			if (const Block *const block = each.load(std::memory_order_acquire))
				for (const Stripe &stripe : *block)
					fn(stripe);
	}
	std::uint64_t sum(unsigned counter) const
	{
		std::uint64_t sum = 0;
		for_each_stripe([&](const Stripe &stripe) {
			sum += stripe.values[counter].load(std::memory_order_relaxed);
		});
		return sum;
	}

	/*
	 * The last entry stays null. It is that of threads without a number, so that add() needs
	 * only one check.
	 */
	static_assert(ThreadNumber::kUnknown / kBlock == kBlocks);
	std::array<std::atomic<Block *>, kBlocks + 1> blocks_{};
	std::array<std::atomic<std::uint64_t>, kCounters> offsets_{};
	/* In a cache line of its own, so that its writers do not disturb the readers of blocks_. */
	Stripe shared_;
};

} // namespace weft::fabric
