// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains a suite without a defect, which must pass. */
#include <kunit/test.h>
#include <linux/module.h>

static void expectation_passes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1 + 1, 2);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(expectation_passes), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_pass",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
