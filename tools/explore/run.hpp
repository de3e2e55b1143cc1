// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs one case once in this process: loads the modules, runs the case, unloads the modules, and
// checks that nothing is left.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include <kern/sim/kunit.hpp>
#include <kern/sim/strategy.hpp>

namespace explore
{

/* All cases that are linked in, sorted by name. */
const std::vector<sim::Case> &cases();

struct Run {
	std::uint64_t steps;
	// The reason why the case checked nothing; it is empty if the case checked something.
	std::string skipped;
};

/* limit: maximum number of steps. Does not return after a failure: sim::on_failure(). */
Run run(const sim::Case &one, sim::Strategy &strategy, std::uint64_t limit);

} // namespace explore
