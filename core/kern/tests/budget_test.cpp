// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the sum of the charges to a budget never exceeds its limit.
#include <kern/budget.hpp>
#include <kern/kunit.hpp>

namespace
{

/*
 * The amount taken never exceeds the limit, however it is requested; returned amounts can be taken
 * again.
 */
void amount_taken_from_a_budget_never_exceeds_its_limit(kern::kunit::Test &test)
{
	kern::Budget budget(10, -EDQUOT);

	EXPECT_EQ(budget.limit(), 10u);
	{
		const auto seven = budget.take(7);
		ASSERT_OK(seven);
		EXPECT_ERROR(budget.take(4), -EDQUOT);
		EXPECT_ERROR(budget.take(~0u), -EDQUOT);
		const auto three = budget.take(3);
		ASSERT_OK(three);
		EXPECT_ERROR(budget.take(), -EDQUOT);
		EXPECT_EQ(budget.taken(), 10u);
	}
	EXPECT_EQ(budget.taken(), 0u);
	EXPECT_OK(budget.take(10));
	EXPECT_ERROR(budget.take(8, 3), -EDQUOT);
	EXPECT_ERROR(budget.take(1, ~0u), -EDQUOT);
	EXPECT_OK(budget.take(7, 3));
}

/* A charge is returned once, by its last owner. A lost charge is not returned. */
void moved_budget_charge_is_released_exactly_once(kern::kunit::Test &test)
{
	kern::Budget budget(2, -ENOMEM);
	kern::BudgetCharge kept;
	{
		kern::BudgetCharge first = budget.take().take();
		kept = std::move(first);
	}
	EXPECT_EQ(budget.taken(), 1u);
	{
		kern::BudgetCharge lost = budget.take().take();
		lost.lose();
	}
	EXPECT_EQ(budget.taken(), 2u);
	kept = {};
	EXPECT_EQ(budget.taken(), 1u);
}

} // namespace

KUNIT_SUITE(kern_budget, KUNIT_CASE(amount_taken_from_a_budget_never_exceeds_its_limit),
	    KUNIT_CASE(moved_budget_charge_is_released_exactly_once));
