// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: the module drops one reference more than it has taken. */
#include <linux/module.h>
#include <linux/refcount.h>

static refcount_t injected = REFCOUNT_INIT(1);

static int __init injected_begin(void)
{
	if (refcount_dec_and_test(&injected))
		pr_debug("no reference is left\n");
	if (refcount_dec_and_test(&injected))
		pr_debug("no reference is left\n");
	return 0;
}
module_init(injected_begin);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
