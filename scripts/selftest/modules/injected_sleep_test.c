// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a sleep in atomic context. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/delay.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(lock);

static void task_sleeps_in_atomic_context(struct kunit *test)
{
	spin_lock(&lock);
	msleep(1);
	spin_unlock(&lock);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(task_sleeps_in_atomic_context), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_sleep",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
