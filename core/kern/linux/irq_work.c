// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's irq_work, whose functions run in hard interrupt context, for C++ code
// (include/kern/abi/irq_work.h).
#include <linux/export.h>
#include <linux/irq_work.h>
#include <kern/abi/irq_work.h>
#include "native.h"

KERN_NATIVE(irq_work, struct irq_work)

static void run_irq_work(struct irq_work *work)
{
	struct kern_irq_work_item *item =
		container_of((void *)work, struct kern_irq_work_item, native);

	item->run(item);
}

void kern_irq_work_init(struct kern_irq_work_item *item)
{
	*native_irq_work(&item->native) = IRQ_WORK_INIT_HARD(run_irq_work);
}
EXPORT_SYMBOL_GPL(kern_irq_work_init);

bool kern_irq_work_queue(struct kern_irq_work_item *item)
{
	return irq_work_queue(native_irq_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_irq_work_queue);

void kern_irq_work_sync(struct kern_irq_work_item *item)
{
	irq_work_sync(native_irq_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_irq_work_sync);
