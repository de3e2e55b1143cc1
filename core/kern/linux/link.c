// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the interface types that user space creates through rtnetlink (`ip link add ... type
 * ipoib`).
 */
#include <linux/export.h>
#include <linux/if_link.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <net/netlink.h>
#include <net/rtnetlink.h>
#include "netdev.h"

struct kern_link_kind {
	struct rtnl_link_ops native;
	const struct kern_link_ops *ops;
};

static const struct nla_policy link_policy[IFLA_IPOIB_MAX + 1] = {
	[IFLA_IPOIB_PKEY] = {.type = NLA_U16},
	[IFLA_IPOIB_MODE] = {.type = NLA_U16},
	[IFLA_IPOIB_UMCAST] = {.type = NLA_U16},
};

static_assert(KERN_LINK_DATAGRAM == (int)IPOIB_MODE_DATAGRAM &&
	      KERN_LINK_CONNECTED == (int)IPOIB_MODE_CONNECTED);

const struct kern_link_ops *kern_link_ops_of(const struct net_device *dev)
{
	return container_of(dev->rtnl_link_ops, struct kern_link_kind, native)->ops;
}

static int link_setting(struct nlattr *data[], int type)
{
	return data && data[type] ? nla_get_u16(data[type]) : -1;
}

static struct kern_link_settings link_settings(struct nlattr *data[])
{
	return (struct kern_link_settings){
		.pkey = link_setting(data, IFLA_IPOIB_PKEY),
		.mode = link_setting(data, IFLA_IPOIB_MODE),
		.umcast = link_setting(data, IFLA_IPOIB_UMCAST),
	};
}

static int link_validate(struct nlattr *tb[], struct nlattr *data[], struct netlink_ext_ack *extack)
{
	if (link_setting(data, IFLA_IPOIB_MODE) > IPOIB_MODE_CONNECTED) {
		NL_SET_ERR_MSG(extack, "no such mode");
		return -EINVAL;
	}
	return 0;
}

static int make_link(struct net *net, struct net_device *dev, struct nlattr *tb[],
		     struct nlattr *data[])
{
	const struct kern_link_settings settings = link_settings(data);
	const struct kern_link_ops *ops = kern_link_ops_of(dev);
	struct net_device *parent;

	if (!tb[IFLA_LINK])
		return -EINVAL;
	parent = __dev_get_by_index(net, nla_get_u32(tb[IFLA_LINK]));
	if (!parent)
		return -ENODEV;
	return ops->newlink(dev, parent, &settings);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
static int link_new(struct net *net, struct net_device *dev, struct nlattr *tb[],
		    struct nlattr *data[], struct netlink_ext_ack *extack)
{
	return make_link(net, dev, tb, data);
}
#else
static int link_new(struct net_device *dev, struct rtnl_newlink_params *params,
		    struct netlink_ext_ack *extack)
{
	return make_link(rtnl_newlink_link_net(params), dev, params->tb, params->data);
}
#endif

static int link_change(struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		       struct netlink_ext_ack *extack)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	const struct kern_link_settings settings = link_settings(data);

	return kern_link_ops_of(dev)->change(private->owner, &settings);
}

static void link_delete(struct net_device *dev, struct list_head *head)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	if (kern_link_ops_of(dev)->may_delete(private->owner))
		unregister_netdevice_queue(dev, head);
}

static size_t link_size(const struct net_device *dev)
{
	return 3 * nla_total_size(sizeof(u16));
}

static int link_fill(struct sk_buff *skb, const struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	struct kern_link_settings settings;

	kern_link_ops_of(dev)->get(private->owner, &settings);
	if (nla_put_u16(skb, IFLA_IPOIB_PKEY, settings.pkey) ||
	    nla_put_u16(skb, IFLA_IPOIB_MODE, settings.mode) ||
	    nla_put_u16(skb, IFLA_IPOIB_UMCAST, settings.umcast))
		return -EMSGSIZE;
	return 0;
}

struct kern_link_kind *kern_link_register(const struct kern_link_ops *ops)
{
	struct kern_link_kind *kind = kzalloc(sizeof(*kind), GFP_KERNEL);
	const struct rtnl_link_ops native = {
		.kind = ops->kind,
		.maxtype = IFLA_IPOIB_MAX,
		.policy = link_policy,
		.priv_size = sizeof(struct kern_netdev_private),
		/*
		 * When a network namespace exits, its interfaces move to the initial namespace,
		 * because a port's own interface is deleted only with the port.
		 */
		.netns_refund = true,
		.setup = kern_netdev_setup,
		.validate = link_validate,
		.newlink = link_new,
		.changelink = link_change,
		.dellink = link_delete,
		.get_size = link_size,
		.fill_info = link_fill,
		.get_num_tx_queues = ops->tx_queues,
	};
	int status;

	if (!kind)
		return NULL;
	kind->ops = ops;
	memcpy(&kind->native, &native,
	       sizeof(native)); /* memcpy(), because some members are const */
	status = rtnl_link_register(&kind->native);
	if (status) {
		kfree(kind);
		return NULL;
	}
	return kind;
}
EXPORT_SYMBOL_GPL(kern_link_register);

void kern_link_unregister(struct kern_link_kind *kind)
{
	rtnl_link_unregister(&kind->native);
	kfree(kind);
}
EXPORT_SYMBOL_GPL(kern_link_unregister);

void kern_link_adopt(struct kern_link_kind *kind, struct net_device *dev)
{
	dev->rtnl_link_ops = &kind->native;
	dev->sysfs_groups[0] = &kern_link_files;
}
EXPORT_SYMBOL_GPL(kern_link_adopt);
