// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a failing schedule is reduced to the context switches that it needs.
#include "../minimise.hpp"
#include <algorithm>
#include <gtest/gtest.h>

using namespace explore;
using sim::Decision;
using sim::Plan;

namespace
{

Plan plan_of(std::uint32_t count)
{
	Plan plan;

	for (std::uint32_t i = 0; i < count; i++)
		plan.push_back({Decision::What::give_way, i, i, 0});
	return plan;
}

bool has(const Plan &plan, std::uint32_t fiber)
{
	return std::any_of(plan.begin(), plan.end(),
			   [&](const Decision &decision) { return decision.fiber == fiber; });
}

} // namespace

/* Only the required context switches are kept, in their order. */
TEST(ExplorerMinimise, MinimalScheduleContainsTheRequiredContextSwitches)
{
	const Plan left = minimise(plan_of(1000), 1000, [](const Plan &plan) {
		return has(plan, 3) && has(plan, 700) && has(plan, 999);
	});

	ASSERT_EQ(left.size(), 3u);
	EXPECT_EQ(left[0].fiber, 3u);
	EXPECT_EQ(left[1].fiber, 700u);
	EXPECT_EQ(left[2].fiber, 999u);
}

TEST(ExplorerMinimise, MinimalScheduleIsEmptyIfNoContextSwitchIsNeeded)
{
	EXPECT_TRUE(minimise(plan_of(50), 1000, [](const Plan &) { return true; }).empty());
}

/* The number of attempts is limited, and the result still fails. */
TEST(ExplorerMinimise, MinimisationStopsAfterTheMaximumNumberOfAttempts)
{
	unsigned int tried = 0;
	const Plan left = minimise(plan_of(1000), 20, [&](const Plan &plan) {
		tried++;
		return has(plan, 500);
	});

	EXPECT_LE(tried, 20u);
	EXPECT_TRUE(has(left, 500));
}
