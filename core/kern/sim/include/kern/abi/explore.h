/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares actions of test scenarios for which the kernel has no in-kernel API: the actions of an
 * administrator, who refers to interfaces by name, and hot-plugging of hardware.
 */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct net_device;

/* Returns the interface with this name; NULL if there is none. The caller holds the rtnl lock. */
struct net_device *kern_explore_netdev(const char *name);
/*
 * Sends a program's packet to a hardware address. The interface is held meanwhile. Errors: ENODEV,
 * and those of the transmission.
 */
int kern_explore_send(const char *name, const void *address, unsigned int length);
/* Joins a multicast group for a program. At most four groups. Errors: ENODEV, ENOSPC. */
int kern_explore_listen(const char *name, const void *address);
/*
 * Execute `ip link add link PARENT … type ipoib pkey …` and `ip link delete`, holding the rtnl lock
 * as long as rtnetlink does. Errors: ENODEV if there is no such interface; EPERM for a port's own
 * interface.
 */
int kern_explore_link_add(const char *parent, u16 pkey);
int kern_explore_link_delete(const char *name);
/*
 * Destroys the network namespace of an interface: the interface is closed and moved to the initial
 * namespace. Errors: ENODEV.
 */
int kern_explore_namespace_end(const char *name);

/*
 * Plug an emulated card into the only slot of the bus, and remove it. A subnet manager is connected
 * to the card's first port. Context: a task.
 */
enum kern_explore_card {
	KERN_EXPLORE_MLX4,
	KERN_EXPLORE_MTHCA,
};
void kern_explore_plug_card(enum kern_explore_card card);
void kern_explore_pull_card(void);

/*
 * Selects whose allocations may fail, as the seed decides, until the next call. A scenario calls
 * this where the code handles failed allocations. In the plain order, no allocation fails.
 * THIS_TASK: only allocations of the calling task. EVERYBODY: also those of work items and
 * interrupts.
 */
enum kern_explore_failing {
	KERN_EXPLORE_NONE,
	KERN_EXPLORE_THIS_TASK,
	KERN_EXPLORE_EVERYBODY,
};
void kern_explore_failures(enum kern_explore_failing who);

KERN_C_END
