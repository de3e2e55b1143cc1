/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares completions and wait queues. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(completion);
KERN_OPAQUE(wait_queue);
KERN_OPAQUE(wait_entry);

void kern_completion_init(struct kern_completion *completion);
void kern_completion_reinit(struct kern_completion *completion);
void kern_complete(struct kern_completion *completion);
void kern_complete_all(struct kern_completion *completion);
void kern_completion_wait(struct kern_completion *completion);
/* Returns false if the time has expired. */
bool kern_completion_wait_for(struct kern_completion *completion, unsigned int ms);
bool kern_completion_done(struct kern_completion *completion);

void kern_wait_queue_init(struct kern_wait_queue *queue, const char *name,
			  struct kern_lock_class_key *key);
void kern_wake_up(struct kern_wait_queue *queue);
void kern_wake_up_all(struct kern_wait_queue *queue);
/*
 * The order of the calls: prepare, check the condition, sleep if it is false, repeat, and finally
 * finish.
 */
void kern_wait_entry_init(struct kern_wait_entry *entry);
/* Returns -ERESTARTSYS if @interruptible is set and a signal is pending. */
long kern_wait_prepare(struct kern_wait_queue *queue, struct kern_wait_entry *entry,
		       bool interruptible);
/* Returns the remaining jiffies. Sleeps without a limit if @jiffies is KERN_FOREVER. */
long kern_wait_sleep(long jiffies);
void kern_wait_finish(struct kern_wait_queue *queue, struct kern_wait_entry *entry);
#define KERN_FOREVER __LONG_MAX__

KERN_C_END
