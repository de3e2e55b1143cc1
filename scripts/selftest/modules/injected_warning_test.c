// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a WARN_ON, which every kernel reports. */
#include <kunit/test.h>
#include <linux/module.h>

static void kernel_warns(struct kunit *test)
{
	WARN_ON(test);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(kernel_warns), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_warning",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
