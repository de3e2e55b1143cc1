// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: a wait that never ends. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/completion.h>

static DECLARE_COMPLETION(never);

static void wait_for_completion_never_returns(struct kunit *test)
{
	wait_for_completion(&never);
}

static struct kunit_case defect_cases[] = {KUNIT_CASE(wait_for_completion_never_returns), {}};

static struct kunit_suite defect_suite = {
	.name = "injected_hang",
	.test_cases = defect_cases,
};
kunit_test_suite(defect_suite);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
