// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Sleeping where it is forbidden. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/delay.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(lock);

static void sleep(struct kunit *test)
{
	spin_lock(&lock);
	msleep(1);
	spin_unlock(&lock);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(sleep), {}};

static struct kunit_suite defect_suite = {
	.name = "planted_sleep",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("A planted defect");
MODULE_LICENSE("Dual BSD/GPL");
