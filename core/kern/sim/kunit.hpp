// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The KUnit cases that have been compiled in (include/kern/kunit.hpp), and the result of running
// one.
#pragma once
#include <string>
#include <vector>

struct kunit;

namespace sim
{

struct Case {
	// SUITE.CASE
	std::string name;
	int (*before)(kunit *);
	void (*run)(kunit *);
};

/*
 * Returns the suites in the order of the shared object. begin and end are the section's borders,
 * which the linker defines.
 */
std::vector<Case> cases_of(const void *const *begin, const void *const *end);
/*
 * Runs one, inside of a run; returns why it was skipped, or empty. A failed check is a failure of
 * the run.
 */
std::string run_case(const Case &one);

} // namespace sim
