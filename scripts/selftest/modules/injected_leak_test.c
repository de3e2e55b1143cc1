// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a memory leak. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>

static void memory_is_leaked(struct kunit *test)
{
	int i;

	/* Several: a stale register or stack slot may keep one of them reachable. */
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_NOT_NULL(test, kmalloc(200, GFP_KERNEL));
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(memory_is_leaked), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_leak",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
