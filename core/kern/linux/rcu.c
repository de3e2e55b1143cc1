// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's read-copy update for C++ code (include/kern/abi/rcu.h).
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <kern/abi/rcu.h>
#include "native.h"

KERN_NATIVE(rcu_head, struct rcu_head)

static void run_rcu(struct rcu_head *head)
{
	struct kern_rcu_item *item = container_of((void *)head, struct kern_rcu_item, native);

	item->run(item);
}

void kern_rcu_read_lock(void) __acquires(RCU)
{
	rcu_read_lock();
}
EXPORT_SYMBOL_GPL(kern_rcu_read_lock);

void kern_rcu_read_unlock(void) __releases(RCU)
{
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(kern_rcu_read_unlock);

bool kern_rcu_read_lock_held(void)
{
	return rcu_read_lock_held();
}
EXPORT_SYMBOL_GPL(kern_rcu_read_lock_held);

void kern_rcu_synchronize(void)
{
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(kern_rcu_synchronize);

void kern_rcu_call(struct kern_rcu_item *item)
{
	call_rcu(native_rcu_head(&item->native), run_rcu);
}
EXPORT_SYMBOL_GPL(kern_rcu_call);

void kern_rcu_barrier(void)
{
	rcu_barrier();
}
EXPORT_SYMBOL_GPL(kern_rcu_barrier);
