// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* A module that measures the first device while it loads; its log has the figures. */
#include <linux/module.h>
#include "loop.h"

static bool times;
module_param(times, bool, 0);
MODULE_PARM_DESC(times, "measure by the clock; else instructions are counted");

static struct ib_device *found;

static int add(struct ib_device *device)
{
	found = device;
	return 0;
}

static void forget(struct ib_device *device, void *data)
{
	found = NULL;
}

static struct ib_client client = {.name = KBUILD_MODNAME, .add = add, .remove = forget};

static int __init figures_init(void)
{
	int error = ib_register_client(&client);

	if (error)
		return error;
	error = !found ? -ENODEV : times ? card_times(found) : card_counts(found);
	ib_unregister_client(&client);
	return error;
}
module_init(figures_init);

static void __exit figures_exit(void) {}
module_exit(figures_exit);

MODULE_DESCRIPTION("What a card's driver costs, through the verbs");
MODULE_AUTHOR("weft developers");
MODULE_LICENSE("Dual BSD/GPL");
