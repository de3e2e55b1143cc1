/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Kernel functions for benchmarks that are compiled against both stacks. This header includes no
 * header of either stack; a file for weft's stack includes kern/types.h, or a replacement, before
 * it.
 */
#pragma once
#include <kern/types.h>

struct device;

/* A line "figure NAME VALUE" in the kernel's log. */
void bench_print(const char *name, long value);
/* Nanoseconds since boot. */
u64 bench_now(void);
/* Keeps the CPU busy. */
void bench_spin(unsigned int us);
/* Coherent memory of a device, zeroed; `address` is the device's. NULL if there is none. May sleep.
 */
void *bench_dma_alloc(struct device *device, unsigned long size, u64 *address);
void bench_dma_free(struct device *device, unsigned long size, void *memory, u64 address);

/* The flags of an allocation that may sleep. */
unsigned int bench_gfp_kernel(void);

/* Sleeps until bench_wake(), which may have been called already. One waiter. */
void bench_wait(void);
/* Any context. */
void bench_wake(void);

/* Raises a soft interrupt without work, to measure its own cost. */
void bench_soft_interrupt(void);
/*
 * Queues work that does bench_wake() alone, on a work queue of no CPU's own; returns bench_ticks()
 * of its run, having waited.
 */
u64 bench_work(void);

void bench_interrupts_off(void);
void bench_interrupts_on(void);
/* The first interrupt whose name begins so; its number, or -ENOENT. It stays while its driver does.
 */
int bench_find_interrupt(const char *prefix);
/* Calls its handler, as the kernel does. Interrupts are off. */
void bench_call_interrupt(int irq);
