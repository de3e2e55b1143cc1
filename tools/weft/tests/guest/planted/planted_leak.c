// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Planted defect: memory that the module does not free when it is unloaded. */
#include <linux/module.h>
#include <linux/slab.h>

static void *planted[8];

static noinline int planted_allocate(void)
{
	int i;

	/* Several: a stale register or stack slot may keep one of them reachable. */
	for (i = 0; i < ARRAY_SIZE(planted); i++) {
		planted[i] = kmalloc(200, GFP_KERNEL);
		if (!planted[i])
			return -ENOMEM;
	}
	return 0;
}

static int __init planted_begin(void)
{
	return planted_allocate();
}
module_init(planted_begin);

static void __exit planted_end(void) {}
module_exit(planted_end);

MODULE_DESCRIPTION("A planted defect");
MODULE_LICENSE("Dual BSD/GPL");
