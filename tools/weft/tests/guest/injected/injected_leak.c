// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Contains an injected defect: memory that the module does not free when it is unloaded. */
#include <linux/module.h>
#include <linux/slab.h>

static void *injected[8];

static noinline int injected_allocate(void)
{
	int i;

	/*
	 * Allocate several objects, because a stale register or stack slot may keep one of them
	 * reachable.
	 */
	for (i = 0; i < ARRAY_SIZE(injected); i++) {
		injected[i] = kmalloc(200, GFP_KERNEL);
		if (!injected[i])
			return -ENOMEM;
	}
	return 0;
}

static int __init injected_begin(void)
{
	return injected_allocate();
}
module_init(injected_begin);

static void __exit injected_end(void) {}
module_exit(injected_end);

MODULE_DESCRIPTION("An injected defect");
MODULE_LICENSE("Dual BSD/GPL");
