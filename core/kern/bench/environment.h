/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares kernel functions for benchmarks that are compiled twice: against weft's kernel stack,
 * and against Linux's. This header includes no header of either stack except kern/types.h, which
 * both compilations use.
 */
#pragma once
#include <kern/types.h>

struct device;

/* Prints a line "figure NAME VALUE" into the kernel's log. */
void bench_print(const char *name, long value);
/* Returns nanoseconds since boot. */
u64 bench_now(void);
/* Keeps the CPU busy for this time. */
void bench_spin(unsigned int us);
/*
 * Allocates coherent, zeroed memory for a device and stores its DMA address. Returns NULL if there
 * is none. May sleep.
 */
void *bench_dma_alloc(struct device *device, unsigned long size, u64 *address);
void bench_dma_free(struct device *device, unsigned long size, void *memory, u64 address);

/* Returns the flags of an allocation that may sleep. */
unsigned int bench_gfp_kernel(void);

/*
 * Sleeps until bench_wake() is called, unless it has been called already. Only one task may wait.
 */
void bench_wait(void);
/* Context: any. */
void bench_wake(void);

/* Raises a soft interrupt that does no work, to measure the cost of soft interrupts. */
void bench_soft_interrupt(void);
/*
 * Queues a work item that only calls bench_wake(), on an unbound work queue, and waits for it.
 * Returns the value of bench_ticks() when it ran.
 */
u64 bench_work(void);

void bench_interrupts_off(void);
void bench_interrupts_on(void);
/*
 * Returns the number of the first interrupt whose name begins with @prefix, or -ENOENT. It is valid
 * until the driver frees the interrupt.
 */
int bench_find_interrupt(const char *prefix);
/* Calls the interrupt's handler in the same way as the kernel. Interrupts must be disabled. */
void bench_call_interrupt(int irq);
