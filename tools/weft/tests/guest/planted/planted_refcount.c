// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Planted defect: one reference more is dropped than has been taken. */
#include <linux/module.h>
#include <linux/refcount.h>

static refcount_t planted = REFCOUNT_INIT(1);

static int __init planted_begin(void)
{
	if (refcount_dec_and_test(&planted))
		pr_debug("no reference is left\n");
	if (refcount_dec_and_test(&planted))
		pr_debug("no reference is left\n");
	return 0;
}
module_init(planted_begin);

MODULE_DESCRIPTION("A planted defect");
MODULE_LICENSE("Dual BSD/GPL");
