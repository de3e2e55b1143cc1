// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains an injected defect: a thread takes two locks in both orders, which causes no deadlock
 * but a report of lockdep.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/mutex.h>

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static void two_locks_are_taken_in_both_orders(struct kunit *test)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(two_locks_are_taken_in_both_orders), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_inversion",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
