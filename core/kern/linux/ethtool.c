// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Forwards ethtool requests for a network interface to the C++ object that implements the
 * interface.
 */
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include "netdev.h"

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	strscpy(info->driver, private->ops->driver_name, sizeof(info->driver));
	if (private->ops->get_firmware_version) {
		private->ops->get_firmware_version(private->owner, info->fw_version,
						   sizeof(info->fw_version));
	}
	if (dev->dev.parent)
		strscpy(info->bus_info, dev_name(dev->dev.parent), sizeof(info->bus_info));
}

static void get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel_ring,
			  struct netlink_ext_ack *extack)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	struct kern_rings rings = {};

	private->ops->get_rings(private->owner, &rings);
	ring->rx_pending = rings.rx;
	ring->rx_max_pending = rings.rx_max;
	ring->tx_pending = rings.tx;
	ring->tx_max_pending = rings.tx_max;
}

static int set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			 struct kernel_ethtool_ringparam *kernel_ring,
			 struct netlink_ext_ack *extack)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	return private->ops->set_rings(private->owner, ring->rx_pending, ring->tx_pending);
}

static int get_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel_coalesce,
			struct netlink_ext_ack *extack)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	struct kern_coalesce rx = {}, tx = {};

	private->ops->get_coalesce(private->owner, &rx, &tx);
	coalesce->rx_coalesce_usecs = rx.usecs;
	coalesce->rx_max_coalesced_frames = rx.frames;
	coalesce->use_adaptive_rx_coalesce = rx.adaptive;
	coalesce->tx_coalesce_usecs = tx.usecs;
	coalesce->tx_max_coalesced_frames = tx.frames;
	coalesce->use_adaptive_tx_coalesce = tx.adaptive;
	return 0;
}

static int set_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			struct kernel_ethtool_coalesce *kernel_coalesce,
			struct netlink_ext_ack *extack)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	const struct kern_coalesce rx = {
		.usecs = coalesce->rx_coalesce_usecs,
		.frames = coalesce->rx_max_coalesced_frames,
		.adaptive = coalesce->use_adaptive_rx_coalesce,
	};
	const struct kern_coalesce tx = {
		.usecs = coalesce->tx_coalesce_usecs,
		.frames = coalesce->tx_max_coalesced_frames,
		.adaptive = coalesce->use_adaptive_tx_coalesce,
	};

	return private->ops->set_coalesce(private->owner, &rx, &tx);
}

static int get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	struct kern_link_speed speed = {};

	private->ops->get_link_speed(private->owner, &speed);
	settings->base.speed = speed.known ? speed.mbps : SPEED_UNKNOWN;
	settings->base.duplex = speed.known ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.autoneg = AUTONEG_ENABLE;
	settings->base.port = PORT_OTHER;
	return 0;
}

static int get_sset_count(struct net_device *dev, int set)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	return set == ETH_SS_STATS ? (int)private->ops->counter_count : -EOPNOTSUPP;
}

static void get_strings(struct net_device *dev, u32 set, u8 *data)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	unsigned int i;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < private->ops->counter_count; i++)
		ethtool_sprintf(&data, "%s", private->ops->counter_names[i]);
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *values)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	private->ops->get_counters(private->owner, values);
}

const struct ethtool_ops kern_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES |
				     ETHTOOL_COALESCE_USE_ADAPTIVE,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_ringparam = get_ringparam,
	.set_ringparam = set_ringparam,
	.get_coalesce = get_coalesce,
	.set_coalesce = set_coalesce,
	.get_link_ksettings = get_link_ksettings,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
};
