// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements include/kern/abi/net.h: references to network namespaces, and their numbers. */
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/net_namespace.h>
#include <kern/abi/net.h>
#include "net.h"

struct kern_net *kern_net_get(bool of_caller)
{
	return (struct kern_net *)get_net(of_caller ? current->nsproxy->net_ns : &init_net);
}
EXPORT_SYMBOL_GPL(kern_net_get);

void kern_net_put(struct kern_net *net)
{
	put_net((struct net *)net);
}
EXPORT_SYMBOL_GPL(kern_net_put);

/* The kernel never assigns a namespace's cookie to another namespace. */
u64 kern_native_net_number(const struct net *net)
{
	return net_eq(net, &init_net) ? KERN_NET_INITIAL : net->net_cookie;
}

u64 kern_net_number(struct kern_net *net)
{
	return kern_native_net_number((struct net *)net);
}
EXPORT_SYMBOL_GPL(kern_net_number);

u64 kern_net_number_of_caller(void)
{
	return kern_native_net_number(current->nsproxy->net_ns);
}
EXPORT_SYMBOL_GPL(kern_net_number_of_caller);

static DEFINE_MUTEX(in_use);
static const struct kern_net_watcher *watching;

static int begin_namespace(struct net *net)
{
	if (!net_eq(net, &init_net))
		watching->begun();
	return 0;
}

static void end_namespace(struct net *net)
{
	if (!net_eq(net, &init_net))
		watching->ended(kern_native_net_number(net));
}

/*
 * The namespace is processed with pernet devices, which happens before the network stack moves
 * interfaces back to the initial namespace.
 */
static struct pernet_operations operations = {
	.init = begin_namespace,
	.exit = end_namespace,
};

int kern_net_watch(const struct kern_net_watcher *watcher)
{
	int status = -EBUSY;

	mutex_lock(&in_use);
	if (!watching) {
		watching = watcher;
		status = register_pernet_device(&operations);
		if (status)
			watching = NULL;
	}
	mutex_unlock(&in_use);
	return status;
}
EXPORT_SYMBOL_GPL(kern_net_watch);

void kern_net_unwatch(void)
{
	mutex_lock(&in_use);
	unregister_pernet_device(&operations);
	watching = NULL;
	mutex_unlock(&in_use);
}
EXPORT_SYMBOL_GPL(kern_net_unwatch);
