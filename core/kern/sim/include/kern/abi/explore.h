/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Actions for test scenarios that no kernel offers to a module: those of an administrator, who
 * names interfaces, and those of a person who plugs and unplugs hardware.
 */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct net_device;

/* NULL: there is none. rtnl lock held. */
struct net_device *kern_explore_netdev(const char *name);
/* A program's packet to a hardware address; the interface is held meanwhile. ENODEV, or as sent. */
int kern_explore_send(const char *name, const void *address, unsigned int length);
/* A program listens to a group, one of four at most. ENODEV, ENOSPC. */
int kern_explore_listen(const char *name, const void *address);
/*
 * `ip link add link PARENT … type ipoib pkey …`, and `ip link delete`: with the rtnl lock for as
 * long as rtnetlink holds it. ENODEV: there is no such interface; EPERM: it is a port's own.
 */
int kern_explore_link_add(const char *parent, u16 pkey);
int kern_explore_link_delete(const char *name);
/*
 * The network namespace that it is in goes: it is closed, and stands in the first one then. ENODEV.
 */
int kern_explore_namespace_end(const char *name);

/*
 * An emulated card into the one bus slot there is, with a subnet manager at the other end of its
 * first port's cable; and out of it. In a task.
 */
enum kern_explore_card {
	KERN_EXPLORE_MLX4,
	KERN_EXPLORE_MTHCA,
};
void kern_explore_plug_card(enum kern_explore_card card);
void kern_explore_pull_card(void);

/*
 * Selects whose allocations may fail, each as the seed decides, until the next call: a scenario
 * sets this where it copes with failures. None fails in the plain order. THIS_TASK: only those of
 * the calling task. EVERYBODY: also those of works and interrupts.
 */
enum kern_explore_failing {
	KERN_EXPLORE_NONE,
	KERN_EXPLORE_THIS_TASK,
	KERN_EXPLORE_EVERYBODY,
};
void kern_explore_failures(enum kern_explore_failing who);

KERN_C_END
