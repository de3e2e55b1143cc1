/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Compares the cost of an operation in C++ with that of the same operation in C. One macro measures
 * both: the smallest difference of the time-stamp counter around the operation, minus that of an
 * empty operation. Under `qemu -icount shift=0`, a tick is an instruction, so the results are
 * exact.
 */
#pragma once
#include <kern/types.h>

static inline u64 bench_ticks(void)
{
	u64 ticks;

	/*
	 * A single asm statement, so that the compiler cannot move a part of it into the measured
	 * code.
	 */
	__asm__ volatile("rdtsc; shl $32, %%rdx; or %%rdx, %%rax"
			 : "=a"(ticks)
			 :
			 : "rdx", "cc", "memory");
	return ticks;
}

/* Discards a result that is not needed. Costs no instruction. */
static inline void bench_ignore(long result)
{
	(void)result;
}

#define BENCH_SMALLEST(statement)                                                                  \
	({                                                                                         \
		u64 smallest = ~0ull;                                                              \
		for (int round = 0; round < 200; round++) {                                        \
			const u64 begin = bench_ticks();                                           \
			statement;                                                                 \
			const u64 end = bench_ticks();                                             \
			if (end - begin < smallest)                                                \
				smallest = end - begin;                                            \
		}                                                                                  \
		smallest;                                                                          \
	})

#define BENCH(statement) ((long)(BENCH_SMALLEST(statement) - BENCH_SMALLEST((void)0)))

#ifdef __cplusplus
extern "C" {
#endif

/* The operations in C (reference.c). */
long bench_c_spin_lock(void);
long bench_c_irq_spin_lock(void);
long bench_c_mutex(void);
long bench_c_reference(void);
long bench_c_indirect_call(void);
long bench_c_allocation(void);
long bench_c_error_return(void);
long bench_c_register_write(void);
long bench_c_atomic_add(void);

#ifdef __cplusplus
}
#endif
