// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains an injected defect: a task waits without end, and no signal interrupts the wait. The
 * kernel must report a hung task.
 */
#include <linux/completion.h>
#include <linux/module.h>

static DECLARE_COMPLETION(never);

static int __init injected_begin(void)
{
	wait_for_completion(&never);
	return 0;
}
module_init(injected_begin);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
