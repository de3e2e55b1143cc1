/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares irq_work items, whose functions the kernel calls in hard interrupt context. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(irq_work);

struct kern_irq_work_item {
	struct kern_irq_work native;
	void (*run)(struct kern_irq_work_item *item);
	void *context;
};

void kern_irq_work_init(struct kern_irq_work_item *item);
bool kern_irq_work_queue(struct kern_irq_work_item *item);
void kern_irq_work_sync(struct kern_irq_work_item *item);

KERN_C_END
