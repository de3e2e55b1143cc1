/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares warnings with a backtrace, and checks of the calling context (interrupt, atomic, may
 * sleep).
 */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* Reports a warning with a backtrace, like WARN. */
void kern_warn_at(const char *file, int line, const char *what);
void kern_bug_at(const char *file, int line, const char *what) __attribute__((noreturn));

/* Reports a caller that must not sleep. */
void kern_might_sleep(const char *file, int line);
/*
 * For tests, only on kernels with KUnit: the first function starts counting the calls of
 * kern_might_sleep() in the running task, and the second one stops it and returns the number.
 */
void kern_watch_sleep_checks(void);
unsigned int kern_watched_sleep_checks(void);
/* Between these two calls in a task, might_sleep() reports the caller. */
void kern_non_block_start(void);
void kern_non_block_end(void);

bool kern_in_hard_irq(void);
/* Returns true while a soft interrupt is served or bottom halves are disabled. */
bool kern_in_soft_irq(void);
/* Returns true in interrupts and in tasks that must not sleep. */
bool kern_in_atomic(void);
bool kern_irqs_disabled(void);
/*
 * Returns false if the kernel would report a caller that sleeps. Always true on a kernel without
 * that check.
 */
bool kern_may_sleep(void);
/*
 * Identifies the calling context: the task and the kind of interrupt. Two callers get the same
 * number if and only if one of them is in the call stack of the other.
 */
unsigned long kern_context(void);
unsigned int kern_cpu(void);
unsigned int kern_cpu_count(void);

KERN_C_END
