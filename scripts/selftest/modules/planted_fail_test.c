// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* An expectation that does not hold. */
#include <kunit/test.h>
#include <linux/module.h>

static void fail(struct kunit *test)
{
	KUNIT_EXPECT_EQ_MSG(test, 1 + 1, 3, "planted failure");
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(fail), {}};

static struct kunit_suite defect_suite = {
	.name = "planted_fail",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("A planted defect");
MODULE_LICENSE("Dual BSD/GPL");
