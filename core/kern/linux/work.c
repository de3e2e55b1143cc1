// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's work items and work queues for C++ code (include/kern/abi/work.h).
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/sched/mm.h>
#include <linux/sched/task_stack.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <kern/abi/work.h>
#include "native.h"

KERN_NATIVE(work, struct work_struct)
KERN_NATIVE(delayed_work, struct delayed_work)
KERN_NATIVE(lock_class_key, struct lock_class_key)

/* Kernels from 6.18 on expect WQ_PERCPU for per-CPU work queues, and warn if it is missing. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define WQ_PERCPU 0
#define system_percpu_wq system_wq
#endif

/*
 * Runs a work item without I/O for memory reclaim. IPoIB's packets wait for work items: for
 * responses of the SA, for connections, for a restart. If pages are written out over IPoIB, a work
 * item that waited for such a write to get memory would wait for itself. @item may have been freed
 * when its function returns.
 */
static void run_work(struct work_struct *work)
{
	struct kern_work_item *item = container_of((void *)work, struct kern_work_item, native);
	const unsigned int former = memalloc_noio_save();

	item->run(item);
	memalloc_noio_restore(former);
}

static void run_delayed_work(struct work_struct *work)
{
	struct kern_delayed_work_item *item =
		container_of((void *)to_delayed_work(work), struct kern_delayed_work_item, native);
	const unsigned int former = memalloc_noio_save();

	item->run(item);
	memalloc_noio_restore(former);
}

static void name_work(struct work_struct *work, const char *name, struct kern_lock_class_key *key)
{
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&work->lockdep_map, name, native_lock_class_key(key), 0);
#endif
}

void kern_work_init(struct kern_work_item *item, const char *name, struct kern_lock_class_key *key)
{
	/* With CONFIG_DEBUG_OBJECTS, the kernel needs to know which objects are on a stack. */
	if (object_is_on_stack(item))
		INIT_WORK_ONSTACK(native_work(&item->native), run_work);
	else
		INIT_WORK(native_work(&item->native), run_work);
	name_work(native_work(&item->native), name, key);
	item->used = false;
}
EXPORT_SYMBOL_GPL(kern_work_init);

void kern_work_exit(struct kern_work_item *item)
{
	if (READ_ONCE(item->used))
		cancel_work_sync(native_work(&item->native));
	if (object_is_on_stack(item))
		destroy_work_on_stack(native_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_work_exit);

bool kern_work_queue(struct workqueue_struct *queue, struct kern_work_item *item)
{
	WRITE_ONCE(item->used, true);
	return queue_work(queue, native_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_work_queue);

bool kern_work_cancel_sync(struct kern_work_item *item)
{
	return cancel_work_sync(native_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_work_cancel_sync);

bool kern_work_flush(struct kern_work_item *item)
{
	return flush_work(native_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_work_flush);

bool kern_work_pending(struct kern_work_item *item)
{
	return work_pending(native_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_work_pending);

void kern_delayed_work_init(struct kern_delayed_work_item *item, const char *name,
			    struct kern_lock_class_key *key)
{
	if (object_is_on_stack(item))
		INIT_DELAYED_WORK_ONSTACK(native_delayed_work(&item->native), run_delayed_work);
	else
		INIT_DELAYED_WORK(native_delayed_work(&item->native), run_delayed_work);
	name_work(&native_delayed_work(&item->native)->work, name, key);
	item->used = false;
}
EXPORT_SYMBOL_GPL(kern_delayed_work_init);

void kern_delayed_work_exit(struct kern_delayed_work_item *item)
{
	if (READ_ONCE(item->used))
		cancel_delayed_work_sync(native_delayed_work(&item->native));
	if (object_is_on_stack(item))
		destroy_delayed_work_on_stack(native_delayed_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_delayed_work_exit);

bool kern_delayed_work_queue(struct workqueue_struct *queue, struct kern_delayed_work_item *item,
			     unsigned int ms)
{
	WRITE_ONCE(item->used, true);
	return queue_delayed_work(queue, native_delayed_work(&item->native), msecs_to_jiffies(ms));
}
EXPORT_SYMBOL_GPL(kern_delayed_work_queue);

bool kern_delayed_work_modify(struct workqueue_struct *queue, struct kern_delayed_work_item *item,
			      unsigned int ms)
{
	WRITE_ONCE(item->used, true);
	return mod_delayed_work(queue, native_delayed_work(&item->native), msecs_to_jiffies(ms));
}
EXPORT_SYMBOL_GPL(kern_delayed_work_modify);

bool kern_delayed_work_cancel(struct kern_delayed_work_item *item)
{
	return cancel_delayed_work(native_delayed_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_delayed_work_cancel);

bool kern_delayed_work_cancel_sync(struct kern_delayed_work_item *item)
{
	return cancel_delayed_work_sync(native_delayed_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_delayed_work_cancel_sync);

bool kern_delayed_work_flush(struct kern_delayed_work_item *item)
{
	return flush_delayed_work(native_delayed_work(&item->native));
}
EXPORT_SYMBOL_GPL(kern_delayed_work_flush);

struct workqueue_struct *kern_workqueue_create(const char *name, enum kern_workqueue_kind kind)
{
	/*
	 * WQ_MEM_RECLAIM is needed because network traffic, and therefore swapping over the
	 * network, may wait for these work items.
	 */
	switch (kind) {
	case KERN_WORKQUEUE_ORDERED:
		return alloc_ordered_workqueue("%s", WQ_MEM_RECLAIM, name);
	case KERN_WORKQUEUE_PER_CPU:
		return alloc_workqueue("%s", WQ_MEM_RECLAIM | WQ_PERCPU, 0, name);
	case KERN_WORKQUEUE_UNBOUND:
		return alloc_workqueue("%s", WQ_MEM_RECLAIM | WQ_UNBOUND, 0, name);
	}
	return NULL;
}
EXPORT_SYMBOL_GPL(kern_workqueue_create);

void kern_workqueue_destroy(struct workqueue_struct *queue)
{
	destroy_workqueue(queue);
}
EXPORT_SYMBOL_GPL(kern_workqueue_destroy);

void kern_workqueue_flush(struct workqueue_struct *queue)
{
	flush_workqueue(queue);
}
EXPORT_SYMBOL_GPL(kern_workqueue_flush);

struct workqueue_struct *kern_workqueue_system(void)
{
	return system_percpu_wq;
}
EXPORT_SYMBOL_GPL(kern_workqueue_system);
