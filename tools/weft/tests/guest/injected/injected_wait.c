// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains an injected defect: the wakeup of a waiting task is missing. The kernel does not report
 * it, because a signal would interrupt the wait.
 */
#include <linux/completion.h>
#include <linux/module.h>

static DECLARE_COMPLETION(never);

static int __init injected_begin(void)
{
	return wait_for_completion_interruptible(&never);
}
module_init(injected_begin);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
