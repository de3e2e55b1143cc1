/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares timers. Their functions run in soft interrupt context. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(timer);

struct kern_timer_item {
	struct kern_timer native;
	void (*run)(struct kern_timer_item *item);
	void *context;
};

void kern_timer_init(struct kern_timer_item *item, const char *name,
		     struct kern_lock_class_key *key);
/* Cancels the timer, waits for a running function, and destroys the timer. */
void kern_timer_exit(struct kern_timer_item *item);
void kern_timer_start(struct kern_timer_item *item, unsigned int ms);
bool kern_timer_cancel(struct kern_timer_item *item);
bool kern_timer_cancel_sync(struct kern_timer_item *item);
bool kern_timer_pending(struct kern_timer_item *item);

KERN_C_END
