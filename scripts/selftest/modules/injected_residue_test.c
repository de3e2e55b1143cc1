// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a debugfs entry that remains when the module is unloaded. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/debugfs.h>

static void injected_defect_leaves_a_debugfs_directory(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, IS_ERR(debugfs_create_dir("weft_injected", NULL)));
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(injected_defect_leaves_a_debugfs_directory),
					   {}};

static struct kunit_suite defect_suite = {
	.name = "injected_residue",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
