/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares functions that read clocks, wait, and return random numbers. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* Returns nanoseconds since boot, which never decrease. */
u64 kern_now_ns(void);
u64 kern_jiffies(void);
u64 kern_ms_to_jiffies(unsigned int ms);
/* Sleep at least this long. */
void kern_sleep_ms(unsigned int ms);
void kern_sleep_us(unsigned int min, unsigned int max);
/* Waits without sleeping. */
void kern_delay_us(unsigned int us);
void kern_cond_resched(void);

u32 kern_random_u32(void);
u64 kern_random_u64(void);
void kern_random_bytes(void *to, size_t size);

KERN_C_END
