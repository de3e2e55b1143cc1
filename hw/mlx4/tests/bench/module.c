// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the benchmark module. Its init function measures the first RDMA device that is not a
 * software device, and logs the results.
 */
#include <linux/module.h>
#include "loop.h"

static char *measure = "counts";
module_param(measure, charp, 0);
MODULE_PARM_DESC(
	measure,
	"counts (instructions), times (by the clock), doorbell (one of them), stream (for the card's own counters)");

static struct ib_device *found;

static int add(struct ib_device *device)
{
	/* Skip software devices. */
	if (!found && device->dma_device)
		found = device;
	return 0;
}

static void forget(struct ib_device *device, void *data)
{
	if (found == device)
		found = NULL;
}

static struct ib_client client = {.name = KBUILD_MODNAME, .add = add, .remove = forget};

static int __init figures_init(void)
{
	int error = ib_register_client(&client);

	if (error)
		return error;
	if (!found)
		error = -ENODEV;
	else if (!strcmp(measure, "times"))
		error = card_times(found);
	else if (!strcmp(measure, "doorbell"))
		error = card_doorbell(found);
	else if (!strcmp(measure, "stream"))
		error = card_stream(found);
	else
		error = card_counts(found);
	ib_unregister_client(&client);
	return error;
}
module_init(figures_init);

static void __exit figures_exit(void) {}
module_exit(figures_exit);

MODULE_DESCRIPTION("What a card's driver costs, through the verbs");
MODULE_AUTHOR("weft developers");
MODULE_LICENSE("Dual BSD/GPL");
