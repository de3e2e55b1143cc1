/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares read-copy update: read-side sections, grace periods, deferred callbacks. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(rcu_head);

struct kern_rcu_item {
	struct kern_rcu_head native;
	void (*run)(struct kern_rcu_item *item);
	void *context;
};

void kern_rcu_read_lock(void);
void kern_rcu_read_unlock(void);
bool kern_rcu_read_lock_held(void);
void kern_rcu_synchronize(void);
void kern_rcu_call(struct kern_rcu_item *item);
void kern_rcu_barrier(void);

KERN_C_END
