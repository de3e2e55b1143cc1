/* SPDX-License-Identifier: GPL-2.0 */
/* Whether irq_work has an interrupt of its own here: from the moment that arch/um/kernel/irq_work.c has one. */
#ifndef UM_ASM_IRQ_WORK_H
#define UM_ASM_IRQ_WORK_H

#include <linux/types.h>

extern bool um_irq_work_ready;

void arch_irq_work_raise(void);

static inline bool arch_irq_work_has_interrupt(void)
{
	return um_irq_work_ready;
}

#endif
