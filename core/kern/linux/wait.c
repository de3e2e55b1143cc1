// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's completions and wait queues for C++ code (include/kern/abi/wait.h).
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <kern/abi/wait.h>
#include "native.h"

KERN_NATIVE(completion, struct completion)
KERN_NATIVE(wait_queue, wait_queue_head_t)
KERN_NATIVE(wait_entry, wait_queue_entry_t)
KERN_NATIVE(lock_class_key, struct lock_class_key)

static_assert(KERN_FOREVER == MAX_SCHEDULE_TIMEOUT);

void kern_completion_init(struct kern_completion *completion)
{
	init_completion(native_completion(completion));
}
EXPORT_SYMBOL_GPL(kern_completion_init);

void kern_completion_reinit(struct kern_completion *completion)
{
	reinit_completion(native_completion(completion));
}
EXPORT_SYMBOL_GPL(kern_completion_reinit);

void kern_complete(struct kern_completion *completion)
{
	complete(native_completion(completion));
}
EXPORT_SYMBOL_GPL(kern_complete);

void kern_complete_all(struct kern_completion *completion)
{
	complete_all(native_completion(completion));
}
EXPORT_SYMBOL_GPL(kern_complete_all);

void kern_completion_wait(struct kern_completion *completion)
{
	wait_for_completion(native_completion(completion));
}
EXPORT_SYMBOL_GPL(kern_completion_wait);

bool kern_completion_wait_for(struct kern_completion *completion, unsigned int ms)
{
	return wait_for_completion_timeout(native_completion(completion), msecs_to_jiffies(ms)) !=
	       0;
}
EXPORT_SYMBOL_GPL(kern_completion_wait_for);

bool kern_completion_done(struct kern_completion *completion)
{
	return completion_done(native_completion(completion));
}
EXPORT_SYMBOL_GPL(kern_completion_done);

void kern_wait_queue_init(struct kern_wait_queue *queue, const char *name,
			  struct kern_lock_class_key *key)
{
	__init_waitqueue_head(native_wait_queue(queue), name, native_lock_class_key(key));
}
EXPORT_SYMBOL_GPL(kern_wait_queue_init);

void kern_wake_up(struct kern_wait_queue *queue)
{
	wake_up(native_wait_queue(queue));
}
EXPORT_SYMBOL_GPL(kern_wake_up);

void kern_wake_up_all(struct kern_wait_queue *queue)
{
	wake_up_all(native_wait_queue(queue));
}
EXPORT_SYMBOL_GPL(kern_wake_up_all);

void kern_wait_entry_init(struct kern_wait_entry *entry)
{
	init_wait_entry(native_wait_entry(entry), 0);
}
EXPORT_SYMBOL_GPL(kern_wait_entry_init);

long kern_wait_prepare(struct kern_wait_queue *queue, struct kern_wait_entry *entry,
		       bool interruptible)
{
	return prepare_to_wait_event(native_wait_queue(queue), native_wait_entry(entry),
				     interruptible ? TASK_INTERRUPTIBLE : TASK_UNINTERRUPTIBLE);
}
EXPORT_SYMBOL_GPL(kern_wait_prepare);

long kern_wait_sleep(long timeout)
{
	return schedule_timeout(timeout);
}
EXPORT_SYMBOL_GPL(kern_wait_sleep);

void kern_wait_finish(struct kern_wait_queue *queue, struct kern_wait_entry *entry)
{
	finish_wait(native_wait_queue(queue), native_wait_entry(entry));
}
EXPORT_SYMBOL_GPL(kern_wait_finish);
