/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* References to processes. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* A process, running or exited: its number is not reused while it is held. */
struct kern_process;

/* The calling one, held. Any context of a task. */
struct kern_process *kern_process_get(void);
void kern_process_put(struct kern_process *process);
/* Its number as the calling task knows it; 0 if it is no more, or out of its sight. */
u32 kern_process_number(struct kern_process *process);

KERN_C_END
