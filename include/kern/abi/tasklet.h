/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares tasklets, whose functions the kernel calls in soft interrupt context. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(tasklet);

struct kern_tasklet_item {
	struct kern_tasklet native;
	void (*run)(struct kern_tasklet_item *item);
	void *context;
};

void kern_tasklet_init(struct kern_tasklet_item *item);
void kern_tasklet_schedule(struct kern_tasklet_item *item);
void kern_tasklet_cancel_sync(struct kern_tasklet_item *item);

KERN_C_END
