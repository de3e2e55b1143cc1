// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs weft-explore on one test case and returns the result, for weft-explore's own tests.
#pragma once
#include <algorithm>
#include <string>
#include <vector>
#include <gtest/gtest.h>
#include "../child.hpp"
#include "../report.hpp"
#include "../run.hpp"

namespace explore
{

inline const sim::Case &case_of(const std::string &name)
{
	const auto found = std::find_if(cases().begin(), cases().end(),
					[&](const sim::Case &one) { return one.name == name; });

	if (found == cases().end())
		throw std::runtime_error("there is no case " + name);
	return *found;
}

/* Returns the failure of a case with an injected defect, which must occur within @seeds seeds. */
inline Failure failure_of(const std::string &name, std::uint64_t seeds = 200,
			  const Limits &limits = {})
{
	const Explored explored = explore_seeds(case_of(name), 1, seeds, limits);

	EXPECT_TRUE(explored.failure.has_value())
		<< name << " did not fail by " << explored.runs << " seeds";
	return explored.failure.value_or(Failure{});
}

/* Checks that the case fails with this title even without a context switch that a seed chooses. */
inline void expect_at_once(const std::string &name, const std::string &title)
{
	const Failure failure = failure_of(name);

	EXPECT_EQ(failure.title.substr(0, title.size()), title);
	EXPECT_EQ(failure.seed, 0u);
}

} // namespace explore
