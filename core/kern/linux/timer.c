// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's timers for C++ code (include/kern/abi/timer.h).
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/sched/task_stack.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <kern/abi/timer.h>
#include "native.h"

KERN_NATIVE(timer, struct timer_list)
KERN_NATIVE(lock_class_key, struct lock_class_key)

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define timer_delete del_timer
#define timer_delete_sync del_timer_sync
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define timer_init_key init_timer_key
#define timer_init_key_on_stack init_timer_on_stack_key
#define timer_destroy_on_stack destroy_timer_on_stack
#endif

static void run_timer(struct timer_list *timer)
{
	struct kern_timer_item *item = container_of((void *)timer, struct kern_timer_item, native);

	item->run(item);
}

void kern_timer_init(struct kern_timer_item *item, const char *name,
		     struct kern_lock_class_key *key)
{
	/* With CONFIG_DEBUG_OBJECTS, the kernel needs to know which objects are on a stack. */
	if (object_is_on_stack(item))
		timer_init_key_on_stack(native_timer(&item->native), run_timer, 0, name,
					native_lock_class_key(key));
	else
		timer_init_key(native_timer(&item->native), run_timer, 0, name,
			       native_lock_class_key(key));
}
EXPORT_SYMBOL_GPL(kern_timer_init);

void kern_timer_exit(struct kern_timer_item *item)
{
	timer_delete_sync(native_timer(&item->native));
	if (object_is_on_stack(item))
		timer_destroy_on_stack(native_timer(&item->native));
}
EXPORT_SYMBOL_GPL(kern_timer_exit);

void kern_timer_start(struct kern_timer_item *item, unsigned int ms)
{
	mod_timer(native_timer(&item->native), jiffies + msecs_to_jiffies(ms));
}
EXPORT_SYMBOL_GPL(kern_timer_start);

bool kern_timer_cancel(struct kern_timer_item *item)
{
	return timer_delete(native_timer(&item->native));
}
EXPORT_SYMBOL_GPL(kern_timer_cancel);

bool kern_timer_cancel_sync(struct kern_timer_item *item)
{
	return timer_delete_sync(native_timer(&item->native));
}
EXPORT_SYMBOL_GPL(kern_timer_cancel_sync);

bool kern_timer_pending(struct kern_timer_item *item)
{
	return timer_pending(native_timer(&item->native));
}
EXPORT_SYMBOL_GPL(kern_timer_pending);
