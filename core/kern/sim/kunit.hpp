// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lists the KUnit cases that are compiled in (include/kern/kunit.hpp), and runs them one at a time.
#pragma once
#include <string>
#include <vector>

struct kunit;

namespace sim
{

struct Case {
	// The name in the form SUITE.CASE.
	std::string name;
	int (*before)(kunit *);
	void (*run)(kunit *);
};

/*
 * Returns the cases in the order of the shared object. @begin and @end: the bounds of the section,
 * which the linker defines.
 */
std::vector<Case> cases_of(const void *const *begin, const void *const *end);
/*
 * Runs a case inside of a run. Returns the reason if it was skipped, otherwise an empty string. A
 * failed check is a failure of the run.
 */
std::string run_case(const Case &one);

} // namespace sim
