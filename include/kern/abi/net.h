/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Network namespaces: references to them, and the numbers that identify them. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* A network namespace. */
struct kern_net;

/* The number of the initial namespace. */
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
 * Calls begun() for each namespace but the initial one, those included that exist already, and
 * ended() when one is about to end: its interfaces may still exist, but no task can enter it any
 * more. Both in process context and may sleep. One watcher at a time. 0; -EBUSY; -ENOMEM.
 */
struct kern_net_watcher {
	void (*begun)(void);
	void (*ended)(u64 number);
};
int kern_net_watch(const struct kern_net_watcher *watcher);
/* Calls ended() for the namespaces that remain; no callback runs afterwards. */
void kern_net_unwatch(void);

KERN_C_END
