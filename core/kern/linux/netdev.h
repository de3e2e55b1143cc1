/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declarations shared by the C files of network interfaces. */
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

/* All that are registered, in any namespace. Changed with the rtnl lock held, read under RCU. */
extern struct list_head kern_netdevs;

extern const struct ethtool_ops kern_ethtool_ops;

/* True if an interface was set up by kern_netdev_configure(). */
static inline bool kern_netdev_is_ours(const struct net_device *dev)
{
	return dev->ethtool_ops == &kern_ethtool_ops;
}
/* The files of an interface that has a kind. */
extern const struct attribute_group kern_link_files;
/* The operations of a device's kind. */
const struct kern_link_ops *kern_link_ops_of(const struct net_device *dev);

/* Setup function for devices that the kernel allocates because user space requested one. */
void kern_netdev_setup(struct net_device *dev);
