// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a failed expectation. */
#include <kunit/test.h>
#include <linux/module.h>

static void expectation_fails(struct kunit *test)
{
	KUNIT_EXPECT_EQ_MSG(test, 1 + 1, 3, "injected failure");
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(expectation_fails), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_fail",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
