// SPDX-License-Identifier: GPL-2.0
/*
 * An interrupt for irq_work on User-Mode Linux, which otherwise lets it wait for the next tick of the timer: a byte written into a
 * socket pair whose other end interrupts this very kernel, as any descriptor does, by SIGIO.
 */
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <asm/irq_work.h>
#include <irq_kern.h>
#include <os.h>

bool um_irq_work_ready;

/* Written to, and read from. */
static int ends[2];

/* Context: any. A full pair needs no further byte: what is in it interrupts. */
void arch_irq_work_raise(void)
{
	const char byte = 0;

	if (um_irq_work_ready)
		os_write_file(ends[0], &byte, sizeof(byte));
}

static irqreturn_t irq_work_interrupt(int irq, void *unused)
{
	char bytes[16];

	/* An edge: all is read, or no later byte would interrupt. */
	while (os_read_file(ends[1], bytes, sizeof(bytes)) > 0)
		;
	irq_work_run();
	return IRQ_HANDLED;
}

static int __init irq_work_init(void)
{
	int err = os_pipe(ends, 1, 1);

	if (!err)
		err = os_set_fd_block(ends[0], 0);
	if (!err)
		err = os_set_fd_block(ends[1], 0);
	if (!err)
		err = um_request_irq(UM_IRQ_ALLOC, ends[1], IRQ_READ, irq_work_interrupt, 0, "irq_work", ends);
	if (err < 0)
		return err;
	um_irq_work_ready = true;
	/* For what was queued before. */
	arch_irq_work_raise();
	return 0;
}
arch_initcall(irq_work_init);
