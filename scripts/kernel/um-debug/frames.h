/* SPDX-License-Identifier: GPL-2.0 */
/* For arch/um/kernel/stacktrace.c: who has called, by the frame pointers alone. */
#ifndef UM_FRAMES_H
#define UM_FRAMES_H

#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <asm/stacktrace.h>

/*
 * Ends where a frame does not lie above the one before it on the same stack: at the first of a
 * task, and where a signal has come into what has none (the C library's, which are the host's).
 */
static inline void follow_frames(struct task_struct *task, struct stack_trace *trace)
{
	struct pt_regs *const regs = task->thread.segv_regs;
	unsigned long above = (unsigned long)get_stack_pointer(task, regs);
	unsigned long at = get_frame_pointer(task, regs);
	const unsigned long end = (above | (THREAD_SIZE - 1)) - sizeof(struct stack_frame);
	unsigned int skip = trace->skip;

	while (at >= above && at <= end && at % sizeof(long) == 0 &&
	       trace->nr_entries < trace->max_entries) {
		const struct stack_frame *const frame = (const struct stack_frame *)at;
		const unsigned long caller = READ_ONCE_NOCHECK(frame->return_address);

		if (skip)
			skip--;
		else if (caller)
			trace->entries[trace->nr_entries++] = caller;
		above = at + sizeof(*frame);
		at = (unsigned long)READ_ONCE_NOCHECK(frame->next_frame);
	}
}

#endif
