// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Starts and stops kernel threads for C++ code (include/kern/abi/thread.h).
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include <kern/abi/thread.h>

struct task_struct *kern_thread_start(int (*run)(void *context), void *context, const char *name,
				      int *error)
{
	struct task_struct *task = kthread_create(run, context, "%s", name);

	if (IS_ERR(task)) {
		*error = PTR_ERR(task);
		return NULL;
	}
	/*
	 * A thread may exit before it is stopped. The reference keeps the task_struct that
	 * kthread_stop() accesses.
	 */
	get_task_struct(task);
	wake_up_process(task);
	*error = 0;
	return task;
}
EXPORT_SYMBOL_GPL(kern_thread_start);

int kern_thread_stop(struct task_struct *task)
{
	int result = kthread_stop(task);

	put_task_struct(task);
	return result;
}
EXPORT_SYMBOL_GPL(kern_thread_stop);

bool kern_thread_should_stop(void)
{
	return kthread_should_stop();
}
EXPORT_SYMBOL_GPL(kern_thread_should_stop);
