/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares references to processes, and a function that returns the number (PID) of a process. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* A process, running or exited. Its number is not reused while it is held. */
struct kern_process;

/* Returns the calling process, held. Context: any task. */
struct kern_process *kern_process_get(void);
void kern_process_put(struct kern_process *process);
/*
 * Returns its number in the calling task's PID namespace; 0 if it has exited or is not visible
 * there.
 */
u32 kern_process_number(struct kern_process *process);

KERN_C_END
