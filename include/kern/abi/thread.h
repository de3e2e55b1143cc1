/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares functions that start and stop kernel threads. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct task_struct;

/*
 * Starts a thread and returns it. If this fails, stores the negative errno in *error and returns
 * NULL.
 */
struct task_struct *kern_thread_start(int (*run)(void *context), void *context, const char *name,
				      int *error);
int kern_thread_stop(struct task_struct *task);
bool kern_thread_should_stop(void);

KERN_C_END
