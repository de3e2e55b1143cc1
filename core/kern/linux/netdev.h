/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares the structures and functions that the C files of network interfaces share. */
#pragma once
#include <linux/netdevice.h>
#include <kern/abi/netdev.h>

/* netdev_priv() of every interface of weft's modules. */
struct kern_netdev_private {
	void *owner;
	const struct kern_netdev_ops *ops;
	struct net_device_ops native;
	struct header_ops header_ops;
	bool segmentation; /* the device cuts segments, if it can */
	struct net_device *dev;
	struct list_head node; /* in kern_netdevs while the device is registered */
};

/*
 * All registered interfaces, in all network namespaces. Changed with the rtnl lock held, read under
 * RCU.
 */
extern struct list_head kern_netdevs;

extern const struct ethtool_ops kern_ethtool_ops;

/* Returns true if the interface was set up by kern_netdev_configure(). */
static inline bool kern_netdev_is_ours(const struct net_device *dev)
{
	return dev->ethtool_ops == &kern_ethtool_ops;
}
/* The sysfs files of an interface that has a link type. */
extern const struct attribute_group kern_link_files;
/* Returns the operations of the interface's link type. */
const struct kern_link_ops *kern_link_ops_of(const struct net_device *dev);

/* Setup function for devices that the kernel allocates because user space requested one. */
void kern_netdev_setup(struct net_device *dev);
