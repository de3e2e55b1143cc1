// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* The IPv4 addresses of one interface, for a device that has to know them. */
#include <linux/export.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <kern/abi/ip.h>

struct kern_ip_address_watcher {
	struct notifier_block block;
	const struct net_device *dev;
	void (*changed)(void *context, u32 address, u32 mask, bool added);
	void *context;
};

static int watch_addresses(struct notifier_block *block, unsigned long event, void *data)
{
	struct kern_ip_address_watcher *watcher =
		container_of(block, struct kern_ip_address_watcher, block);
	const struct in_ifaddr *address = data;

	if (address->ifa_dev->dev == watcher->dev && (event == NETDEV_UP || event == NETDEV_DOWN))
		watcher->changed(watcher->context, (__force u32)address->ifa_local,
				 (__force u32)address->ifa_mask, event == NETDEV_UP);
	return 0;
}

struct kern_ip_address_watcher *kern_ip_watch_addresses(const struct net_device *dev,
							void (*changed)(void *context, u32 address,
									u32 mask, bool added),
							void *context)
{
	struct kern_ip_address_watcher *watcher = kzalloc(sizeof(*watcher), GFP_KERNEL);

	if (!watcher)
		return NULL;
	watcher->block.notifier_call = watch_addresses;
	watcher->dev = dev;
	watcher->changed = changed;
	watcher->context = context;
	if (register_inetaddr_notifier(&watcher->block)) {
		kfree(watcher);
		return NULL;
	}
	return watcher;
}
EXPORT_SYMBOL_GPL(kern_ip_watch_addresses);

void kern_ip_unwatch_addresses(struct kern_ip_address_watcher *watcher)
{
	unregister_inetaddr_notifier(&watcher->block);
	kfree(watcher);
}
EXPORT_SYMBOL_GPL(kern_ip_unwatch_addresses);

void kern_ip_tell_addresses(struct kern_ip_address_watcher *watcher, bool added)
{
	const struct in_device *in_dev = __in_dev_get_rtnl(watcher->dev);
	const struct in_ifaddr *address;

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rtnl(address, in_dev)
		watcher->changed(watcher->context, (__force u32)address->ifa_local,
				 (__force u32)address->ifa_mask, added);
}
EXPORT_SYMBOL_GPL(kern_ip_tell_addresses);
