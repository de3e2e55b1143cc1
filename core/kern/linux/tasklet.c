// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's tasklets for C++ code (include/kern/abi/tasklet.h).
#include <linux/export.h>
#include <linux/interrupt.h>
#include <kern/abi/tasklet.h>
#include "native.h"

KERN_NATIVE(tasklet, struct tasklet_struct)

static void run_tasklet(struct tasklet_struct *tasklet)
{
	struct kern_tasklet_item *item =
		container_of((void *)tasklet, struct kern_tasklet_item, native);

	item->run(item);
}

void kern_tasklet_init(struct kern_tasklet_item *item)
{
	tasklet_setup(native_tasklet(&item->native), run_tasklet);
}
EXPORT_SYMBOL_GPL(kern_tasklet_init);

void kern_tasklet_schedule(struct kern_tasklet_item *item)
{
	tasklet_schedule(native_tasklet(&item->native));
}
EXPORT_SYMBOL_GPL(kern_tasklet_schedule);

void kern_tasklet_cancel_sync(struct kern_tasklet_item *item)
{
	tasklet_kill(native_tasklet(&item->native));
}
EXPORT_SYMBOL_GPL(kern_tasklet_cancel_sync);
