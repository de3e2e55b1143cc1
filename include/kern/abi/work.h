/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares work queues and work items, whose functions run in process context. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(work);
KERN_OPAQUE(delayed_work);
struct workqueue_struct;

struct kern_work_item {
	struct kern_work native;
	void (*run)(struct kern_work_item *item);
	void *context;
	/* The item has been queued before. */
	bool used;
};

struct kern_delayed_work_item {
	struct kern_delayed_work native;
	void (*run)(struct kern_delayed_work_item *item);
	void *context;
	/* The item has been queued before. */
	bool used;
};

/*
 * @name and @key identify the item to lockdep, so that it reports a task that waits for the item
 * while holding a lock that the item's function takes.
 */
void kern_work_init(struct kern_work_item *item, const char *name, struct kern_lock_class_key *key);
/*
 * Cancels the item and destroys it. An item that was never queued may be destroyed while holding
 * locks that its function would take, because there is nothing to wait for.
 */
void kern_work_exit(struct kern_work_item *item);
bool kern_work_queue(struct workqueue_struct *queue, struct kern_work_item *item);
bool kern_work_cancel_sync(struct kern_work_item *item);
bool kern_work_flush(struct kern_work_item *item);
bool kern_work_pending(struct kern_work_item *item);

void kern_delayed_work_init(struct kern_delayed_work_item *item, const char *name,
			    struct kern_lock_class_key *key);
void kern_delayed_work_exit(struct kern_delayed_work_item *item);
bool kern_delayed_work_queue(struct workqueue_struct *queue, struct kern_delayed_work_item *item,
			     unsigned int ms);
bool kern_delayed_work_modify(struct workqueue_struct *queue, struct kern_delayed_work_item *item,
			      unsigned int ms);
bool kern_delayed_work_cancel(struct kern_delayed_work_item *item);
bool kern_delayed_work_cancel_sync(struct kern_delayed_work_item *item);
bool kern_delayed_work_flush(struct kern_delayed_work_item *item);

enum kern_workqueue_kind {
	/* Items run one at a time, in the order of queueing. */
	KERN_WORKQUEUE_ORDERED,
	/* Items run on the CPU on which they were queued, many in parallel. */
	KERN_WORKQUEUE_PER_CPU,
	KERN_WORKQUEUE_UNBOUND,
};
struct workqueue_struct *kern_workqueue_create(const char *name, enum kern_workqueue_kind kind);
void kern_workqueue_destroy(struct workqueue_struct *queue);
void kern_workqueue_flush(struct workqueue_struct *queue);
struct workqueue_struct *kern_workqueue_system(void);

KERN_C_END
