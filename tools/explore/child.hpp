// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs a test case in a child process, because a failed case leaves its process in a state in which
// no other case can run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <kern/sim/kunit.hpp>
#include <kern/sim/strategy.hpp>

namespace explore
{

struct Failure {
	std::uint64_t seed;
	std::string title, detail;
	// Output of the sanitizers.
	std::string report;
	// The kernel's log of the run.
	std::string messages;
	// The decisions that led to the failure (context switches other than the default ones,
	// advances of time and failed allocations), and the list of tasks in the order in which
	// they ran.
	sim::Plan plan;
	std::string interleaving;
};

struct Explored {
	// Number of runs without a failure, and number of steps of the longest run.
	std::uint64_t runs = 0, steps = 0;
	std::string skipped;
	std::optional<Failure> failure;
};

struct Limits {
	std::uint64_t steps = 2'000'000;
	// Limit for all runs together. The last run is completed.
	double seconds = 1e9;
};

/* Runs a case with the strategies of the seeds first … last, until one fails. */
Explored explore_seeds(const sim::Case &one, std::uint64_t first, std::uint64_t last,
		       const Limits &limits);
/*
 * Runs a plan, and records the interleaving if it fails. @seed is the seed of the run in which the
 * plan was recorded.
 */
Explored follow_plan(const sim::Case &one, std::uint64_t seed, const sim::Plan &plan,
		     const Limits &limits);

} // namespace explore
