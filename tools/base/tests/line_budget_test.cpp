// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a source of log lines may write a burst and then one line per interval, and that the
// number of suppressed lines is reported.
#include <gtest/gtest.h>

#include "base/line_budget.hpp"

namespace weft
{
namespace
{

TEST(LineBudget, AllowsABurstOfLogLinesAndThenOneLineEachInterval)
{
	LineBudget budget;
	Clock::time_point now{std::chrono::hours(1)};
	for (unsigned i = 0; i < LineBudget::kBurst; i++)
		EXPECT_TRUE(budget.take(now).allowed) << i;
	for (unsigned i = 0; i < 100; i++)
		EXPECT_FALSE(budget.take(now).allowed) << i;
	now += LineBudget::kInterval;
	const auto next = budget.take(now);
	EXPECT_TRUE(next.allowed);
	EXPECT_EQ(100u, next.withheld);
	EXPECT_FALSE(budget.take(now).allowed);
}

TEST(LineBudget, BudgetRefillsUpToTheBurstSize)
{
	LineBudget budget;
	Clock::time_point now{std::chrono::hours(1)};
	while (budget.take(now).allowed)
		;
	now += LineBudget::kInterval * 1000;
	unsigned allowed = 0;
	while (budget.take(now).allowed)
		allowed++;
	EXPECT_EQ(LineBudget::kBurst, allowed);
}

TEST(LineBudget, ReportsTheNumberOfSuppressedLogLines)
{
	EXPECT_EQ("", withheld_text(0));
	EXPECT_EQ(" (7 lines about it left out)", withheld_text(7));
}

} // namespace
} // namespace weft
