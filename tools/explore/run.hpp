// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs one test case once in this process: loads the modules, runs the case, unloads the modules,
// and checks that the modules have released all resources.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include <kern/sim/kunit.hpp>
#include <kern/sim/strategy.hpp>

namespace explore
{

/* Returns all cases that are linked into the program, sorted by name. */
const std::vector<sim::Case> &cases();

struct Run {
	std::uint64_t steps;
	// The reason why the case was skipped, or empty if it was not.
	std::string skipped;
};

/*
 * Runs a case. @limit is the maximum number of steps. Does not return after a failure; see
 * sim::on_failure().
 */
Run run(const sim::Case &one, sim::Strategy &strategy, std::uint64_t limit);

} // namespace explore
