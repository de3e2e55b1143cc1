// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/workqueue.h>
#include "bench.h"
#include "environment.h"

void bench_print(const char *name, long value)
{
	pr_info("bench: figure %s %ld\n", name, value);
}

u64 bench_now(void)
{
	return ktime_get_ns();
}

void bench_spin(unsigned int us)
{
	for (; us > 1000; us -= 1000)
		udelay(1000);
	udelay(us);
}

void *bench_dma_alloc(struct device *device, unsigned long size, u64 *address)
{
	return dma_alloc_coherent(device, size, address, GFP_KERNEL);
}

void bench_dma_free(struct device *device, unsigned long size, void *memory, u64 address)
{
	dma_free_coherent(device, size, memory, address);
}

unsigned int bench_gfp_kernel(void)
{
	return (__force unsigned int)GFP_KERNEL;
}

static DECLARE_COMPLETION(woken);

void bench_wait(void)
{
	wait_for_completion(&woken);
}

void bench_wake(void)
{
	complete(&woken);
}

static void nothing(struct tasklet_struct *tasklet) {}

static DECLARE_TASKLET(empty, nothing);

void bench_soft_interrupt(void)
{
	tasklet_schedule(&empty);
}

static u64 worked_at;

static void note(struct work_struct *work)
{
	worked_at = bench_ticks();
	complete(&woken);
}

static DECLARE_WORK(noting, note);

u64 bench_work(void)
{
	queue_work(system_unbound_wq, &noting);
	wait_for_completion(&woken);
	return worked_at;
}

void bench_interrupts_off(void)
{
	local_irq_disable();
}

void bench_interrupts_on(void)
{
	local_irq_enable();
}

static struct irqaction *action_of(int irq)
{
	struct irq_data *data = irq_get_irq_data(irq);

	return data ? irq_data_to_desc(data)->action : NULL;
}

int bench_find_interrupt(const char *prefix)
{
	for (int irq = 1; irq < 1024; irq++) {
		const struct irqaction *action = action_of(irq);

		if (action && action->name && !strncmp(action->name, prefix, strlen(prefix)))
			return irq;
	}
	return -ENOENT;
}

void bench_call_interrupt(int irq)
{
	struct irqaction *action = action_of(irq);

	action->handler(irq, action->dev_id);
}
