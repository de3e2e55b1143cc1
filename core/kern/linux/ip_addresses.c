// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Reports changes of an interface's IPv4 addresses to drivers whose cards need the addresses, such
 * as RNICs.
 */
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

/* Returns how often an interface has this address; it may have it with several networks. */
static unsigned int count_address(const struct in_device *in_dev, __be32 local)
{
	const struct in_ifaddr *next = rtnl_dereference(in_dev->ifa_list);
	unsigned int count = 0;

	for (; next; next = rtnl_dereference(next->ifa_next))
		count += next->ifa_local == local;
	return count;
}

/*
 * When the notifier is called, an added address is in the list already, and a removed one is not in
 * it any more.
 */
static int watch_addresses(struct notifier_block *block, unsigned long event, void *data)
{
	struct kern_ip_address_watcher *watcher =
		container_of(block, struct kern_ip_address_watcher, block);
	const struct in_ifaddr *address = data;

	if (address->ifa_dev->dev == watcher->dev && (event == NETDEV_UP || event == NETDEV_DOWN) &&
	    count_address(address->ifa_dev, address->ifa_local) == (event == NETDEV_UP))
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

static bool is_first(const struct in_device *in_dev, const struct in_ifaddr *address)
{
	const struct in_ifaddr *other = rtnl_dereference(in_dev->ifa_list);

	while (other->ifa_local != address->ifa_local)
		other = rtnl_dereference(other->ifa_next);
	return other == address;
}

void kern_ip_report_addresses(struct kern_ip_address_watcher *watcher, bool added)
{
	const struct in_device *in_dev = __in_dev_get_rtnl(watcher->dev);
	const struct in_ifaddr *next = in_dev ? rtnl_dereference(in_dev->ifa_list) : NULL;

	for (; next; next = rtnl_dereference(next->ifa_next))
		if (is_first(in_dev, next))
			watcher->changed(watcher->context, (__force u32)next->ifa_local,
					 (__force u32)next->ifa_mask, added);
}
EXPORT_SYMBOL_GPL(kern_ip_report_addresses);
