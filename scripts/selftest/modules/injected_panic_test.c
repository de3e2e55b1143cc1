// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: an access to an unmapped page. */
#include <kunit/test.h>
#include <linux/module.h>

static void panic_here(void)
{
	WRITE_ONCE(*(int *)8, 1);
}

static void write_to_an_unmapped_address_panics_the_kernel(struct kunit *test)
{
	panic_here();
}

static struct kunit_case defect_cases[] = {
	KUNIT_CASE(write_to_an_unmapped_address_panics_the_kernel), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_panic",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
