// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* An access that no page backs. */
#include <kunit/test.h>
#include <linux/module.h>

static void panic_here(void)
{
	WRITE_ONCE(*(int *)8, 1);
}

static void planted_panic(struct kunit *test)
{
	panic_here();
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(planted_panic), {}};

static struct kunit_suite defect_suite = {
	.name = "planted_panic",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("A planted defect");
MODULE_LICENSE("Dual BSD/GPL");
