// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Corrupts replies of subnet administration on purpose, for testing clients.
 */
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <random>

#include <ib/sa.hpp>

namespace weft::sm
{

class ReplyCorrupter
{
public:
	/*
	 * From now on, corrupts one of `one_in` answers, selected by `seed`. 0 stops this.
	 * Thread-safe.
	 */
	void randomise(std::uint64_t seed, std::uint32_t one_in);
	/* Returns the number of corrupted answers. Thread-safe. */
	std::uint64_t corrupted() const { return corrupted_.load(std::memory_order_relaxed); }

	/*
	 * Corrupts the answer if it is selected. The fields that match it to its request stay valid
	 * (class, method and transaction), so that it passes the matching of requests (IBA
	 * 13.4.6.4) and reaches the client. Called on the manager's thread.
	 */
	void pass(ib::SaMad &answer);

private:
	std::uint32_t below(std::uint32_t end);

	std::atomic<std::uint32_t> one_in_{0};
	std::atomic<std::uint64_t> seed_{0};
	std::atomic<std::uint64_t> corrupted_{0};
	/* Seed of the random numbers in use. Used on the manager's thread only. */
	std::optional<std::uint64_t> seed_in_use_;
	std::mt19937_64 random_;
};

} // namespace weft::sm
