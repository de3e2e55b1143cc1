// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a read of freed memory, which KUnit itself does not detect. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>

static void injected_defect_reads_freed_memory(struct kunit *test)
{
	int *number = kzalloc(sizeof(*number), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, number);
	kfree(number);
	OPTIMIZER_HIDE_VAR(number);
	READ_ONCE(*number);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(injected_defect_reads_freed_memory), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_use_after_free",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
