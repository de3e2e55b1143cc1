/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares network namespaces: references to them, and numbers that identify them. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* A network namespace. */
struct kern_net;

/* Number of the initial namespace. */
#define KERN_NET_INITIAL 0

/*
 * Returns the network namespace of the calling task, or the initial one, held until kern_net_put().
 * Context: any task.
 */
struct kern_net *kern_net_get(bool of_caller);
void kern_net_put(struct kern_net *net);
/* Returns a number that no other namespace has or will have. */
u64 kern_net_number(struct kern_net *net);
/* Returns the number of the calling task's namespace. Context: any task. */
u64 kern_net_number_of_caller(void);

/*
 * Calls begun() for each network namespace except the initial one, including those that exist
 * already. Calls ended() when a namespace is being destroyed: its interfaces may still exist, but
 * no task can enter it. Both are called in process context and may sleep. There can be only one
 * watcher. Returns 0, -EBUSY or -ENOMEM.
 */
struct kern_net_watcher {
	void (*begun)(void);
	void (*ended)(u64 number);
};
int kern_net_watch(const struct kern_net_watcher *watcher);
/* Calls ended() for the namespaces that remain. No callback runs afterwards. */
void kern_net_unwatch(void);

KERN_C_END
