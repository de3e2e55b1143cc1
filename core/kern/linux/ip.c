// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Looks up IP addresses in the kernel's interfaces, routes and neighbours. */
#include <linux/capability.h>
#include <linux/export.h>
#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ndisc.h>
#include <net/neighbour.h>
#include <net/net_namespace.h>
#include <net/netevent.h>
#include <net/route.h>
#include <kern/abi/ip.h>
#include "net.h"
#include "netdev.h"

/* IPv6 can be built as a module, so other code calls it through stubs. */
#if __has_include(<net/ipv6_stubs.h>)
#include <net/ipv6_stubs.h>
#define lookup_v6(net, flow) ipv6_stub->ipv6_dst_lookup_flow(net, NULL, flow, NULL)
#define neighbours_v6 ipv6_stub->nd_tbl
#else
#define lookup_v6(net, flow) ip6_dst_lookup_flow(net, NULL, flow, NULL)
#define neighbours_v6 (&nd_tbl)
#endif

struct kern_ip_watcher {
	struct notifier_block neighbours, interfaces;
	void (*neighbour)(void *context, u64 net);
	void (*interface)(void *context);
	void *context;
};

static struct net *native_of(struct kern_net *net)
{
	return (struct net *)net;
}

static __be32 v4(const struct kern_ip_address *address)
{
	__be32 value;

	memcpy(&value, address->bytes, sizeof(value));
	return value;
}

static struct in6_addr v6(const struct kern_ip_address *address)
{
	struct in6_addr value;

	memcpy(&value, address->bytes, sizeof(value));
	return value;
}

/*
 * Returns true if the interface represents a port. Any user can create an interface with any type
 * and link address in a private network namespace (for example a TUN device), so only interfaces of
 * weft's drivers do.
 */
static bool is_ours(const struct net_device *dev)
{
	const struct kern_netdev_private *private;
	bool found = kern_netdev_is_ours(dev);

	if (found || !netif_is_bond_master(dev))
		return found;
	/* A bond represents the port of the slave whose address it has. */
	rcu_read_lock();
	list_for_each_entry_rcu(private, &kern_netdevs, node)
	{
		found = netdev_master_upper_dev_get_rcu(private->dev) == dev &&
			private->dev->addr_len == dev->addr_len &&
			memcmp(private->dev->dev_addr, dev->dev_addr, dev->addr_len) == 0;
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

static bool has_type(const struct net_device *dev, unsigned int type, unsigned int addr_len)
{
	return dev->type == type && dev->addr_len == addr_len && is_ours(dev);
}

static void describe(const struct net_device *dev, struct kern_ip_interface *interface)
{
	memset(interface, 0, sizeof(*interface));
	interface->net = kern_native_net_number(dev_net(dev));
	interface->index = dev->ifindex;
	interface->up = dev->flags & IFF_UP;
	interface->infiniband = has_type(dev, ARPHRD_INFINIBAND, KERN_LINK_ADDRESS_SIZE);
	if (interface->infiniband) {
		memcpy(interface->address, dev->dev_addr, KERN_LINK_ADDRESS_SIZE);
		memcpy(interface->broadcast, dev->broadcast, KERN_LINK_ADDRESS_SIZE);
	}
	interface->ethernet = has_type(dev, ARPHRD_ETHER, ETH_ALEN);
	if (interface->ethernet)
		memcpy(interface->address, dev->dev_addr, ETH_ALEN);
}

static bool owns(struct net_device *dev, const struct kern_ip_address *address)
{
	struct in_device *in_dev = __in_dev_get_rcu(dev);

	if (address->v6) {
		const struct in6_addr value = v6(address);

		/* If the kernel was booted with ipv6.disable=1, there are no tables. */
		if (!ipv6_mod_enabled())
			return false;
		return ipv6_chk_addr(dev_net(dev), &value, dev, 1);
	}
	/*
	 * Without IPv4 (for example because of an MTU below 68), the interface has no in_device.
	 * inet_confirm_addr() would take NULL for any interface.
	 */
	return in_dev &&
	       inet_confirm_addr(dev_net(dev), in_dev, 0, v4(address), RT_SCOPE_HOST) != 0;
}

static int find_owner(struct net *net, const struct kern_ip_address *address,
		      struct kern_ip_interface *interface)
{
	struct net_device *dev;
	int status = -EADDRNOTAVAIL;

	rcu_read_lock();
	for_each_netdev_rcu(net, dev)
	{
		if (address->interface && address->interface != dev->ifindex)
			continue;
		if (owns(dev, address)) {
			describe(dev, interface);
			status = 0;
			break;
		}
	}
	rcu_read_unlock();
	return status;
}

int kern_ip_owner(struct kern_net *net, const struct kern_ip_address *address,
		  struct kern_ip_interface *interface)
{
	return find_owner(native_of(net), address, interface);
}
EXPORT_SYMBOL_GPL(kern_ip_owner);

/* Returns a reference to the route, which must not use a gateway. */
static struct dst_entry *find_v4(struct net *net, const struct kern_ip_address *to,
				 struct kern_ip_address *source, u32 index)
{
	struct flowi4 flow = {.daddr = v4(to), .saddr = v4(source), .flowi4_oif = index};
	struct rtable *route = ip_route_output_key(net, &flow);

	if (IS_ERR(route))
		return ERR_CAST(route);
	if (route->rt_uses_gateway) {
		ip_rt_put(route);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	memcpy(source->bytes, &flow.saddr, sizeof(flow.saddr));
	return &route->dst;
}

static struct dst_entry *find_v6(struct net *net, const struct kern_ip_address *to,
				 struct kern_ip_address *source, u32 index)
{
	struct flowi6 flow = {.daddr = v6(to), .saddr = v6(source), .flowi6_oif = index};
	struct dst_entry *dst;

	/*
	 * If the kernel was booted with ipv6.disable=1, there are no tables and, from 7.1 on, no
	 * stub that returns an error.
	 */
	if (!ipv6_mod_enabled())
		return ERR_PTR(-EAFNOSUPPORT);
	dst = lookup_v6(net, &flow);
	if (IS_ERR(dst))
		return dst;
	if (((struct rt6_info *)dst)->rt6i_flags & RTF_GATEWAY) {
		dst_release(dst);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	memcpy(source->bytes, &flow.saddr, sizeof(flow.saddr));
	return dst;
}

static struct dst_entry *find_route(struct net *net, const struct kern_ip_address *to,
				    struct kern_ip_address *source, u32 index)
{
	return to->v6 ? find_v6(net, to, source, index) : find_v4(net, to, source, index);
}

int kern_ip_route(struct kern_net *net, const struct kern_ip_address *to,
		  struct kern_ip_address *source, struct kern_ip_interface *interface)
{
	struct dst_entry *dst = find_route(native_of(net), to, source, to->interface);

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	source->interface = to->interface;
	/* A local address is described by the interface that has it. */
	if (find_owner(native_of(net), to, interface) != 0)
		describe(dst->dev, interface);
	dst_release(dst);
	return 0;
}
EXPORT_SYMBOL_GPL(kern_ip_route);

int kern_ip_neighbour(struct kern_net *net, const struct kern_ip_address *to,
		      const struct kern_ip_interface *interface, u8 *link_address)
{
	struct kern_ip_interface own;
	struct net_device *dev;
	struct neighbour *neighbour;
	int status = -EAGAIN;

	if (find_owner(native_of(net), to, &own) == 0) {
		memcpy(link_address, own.address, KERN_LINK_ADDRESS_SIZE);
		return 0;
	}
	if (to->v6 && !ipv6_mod_enabled())
		return -EAFNOSUPPORT;
	dev = dev_get_by_index(native_of(net), interface->index);
	if (!dev)
		return -ENODEV;
	neighbour = __neigh_lookup_errno(to->v6 ? neighbours_v6 : &arp_tbl, to->bytes, dev);
	if (IS_ERR(neighbour)) {
		dev_put(dev);
		return PTR_ERR(neighbour);
	}
	if (READ_ONCE(neighbour->nud_state) & NUD_VALID) {
		char address[MAX_ADDR_LEN];

		neigh_ha_snapshot(address, neighbour, dev);
		memcpy(link_address, address, KERN_LINK_ADDRESS_SIZE);
		status = 0;
	} else {
		neigh_event_send(neighbour, NULL);
	}
	neigh_release(neighbour);
	dev_put(dev);
	return status;
}
EXPORT_SYMBOL_GPL(kern_ip_neighbour);

/*
 * Calls `matches` for each interface of the drivers, in all network namespaces, until one matches
 * and has the address. If some match but none has the address, the first match is used. Returns the
 * network namespace with a reference.
 */
static struct net *find_incoming(bool (*matches)(const struct kern_ip_interface *interface,
						 const void *key),
				 const void *key, const struct kern_ip_address *address,
				 struct kern_ip_interface *interface)
{
	const struct kern_netdev_private *private;
	struct net *net = NULL;

	rcu_read_lock();
	list_for_each_entry_rcu(private, &kern_netdevs, node)
	{
		struct kern_ip_interface here;
		const bool has_address = owns(private->dev, address);
		struct net *its;

		if (net && !has_address)
			continue;
		describe(private->dev, &here);
		if (!matches(&here, key))
			continue;
		/* A network namespace that is being destroyed has no listeners. */
		its = maybe_get_net(dev_net(private->dev));
		if (!its)
			continue;
		if (net)
			put_net(net);
		net = its;
		*interface = here;
		if (has_address)
			break;
	}
	rcu_read_unlock();
	return net;
}

struct partition {
	const u8 *gid;
	u16 pkey;
};

static bool is_on(const struct kern_ip_interface *interface, const void *key)
{
	const struct partition *partition = key;

	const u8 *broadcast = interface->broadcast;

	/*
	 * The membership bit is ignored, because a request from a limited member has the P_Key of a
	 * limited member.
	 */
	return interface->infiniband && memcmp(interface->address + 4, partition->gid, 16) == 0 &&
	       ((broadcast[8] << 8 | broadcast[9]) & 0x7fff) == (partition->pkey & 0x7fff);
}

static int check_return_route(struct net *net, const struct kern_ip_interface *interface,
			      const struct kern_ip_address *address,
			      const struct kern_ip_address *peer)
{
	struct kern_ip_address source = *address;
	struct kern_ip_interface own;
	struct dst_entry *dst;
	int status;

	if (!interface->up)
		return -EHOSTUNREACH;
	if (find_owner(net, peer, &own) == 0)
		return own.index == interface->index ? 0 : -EHOSTUNREACH;
	dst = find_route(net, peer, &source, interface->index);
	if (IS_ERR(dst))
		return -EHOSTUNREACH;
	status = dst->dev->ifindex == interface->index ? 0 : -EHOSTUNREACH;
	dst_release(dst);
	return status;
}

int kern_ip_incoming(const u8 *gid, u16 pkey, const struct kern_ip_address *address,
		     const struct kern_ip_address *peer, struct kern_ip_interface *interface)
{
	const struct partition partition = {.gid = gid, .pkey = pkey};
	struct net *net = find_incoming(is_on, &partition, address, interface);
	int status;

	if (!net)
		return -ENODEV;
	status = check_return_route(net, interface, address, peer);
	put_net(net);
	return status;
}
EXPORT_SYMBOL_GPL(kern_ip_incoming);

static bool has_mac(const struct kern_ip_interface *interface, const void *mac)
{
	return interface->ethernet && memcmp(interface->address, mac, ETH_ALEN) == 0;
}

int kern_ip_incoming_ethernet(const u8 *mac, const struct kern_ip_address *address,
			      struct kern_ip_interface *interface)
{
	struct kern_ip_interface own;
	struct net *net = find_incoming(has_mac, mac, address, interface);
	int status;

	if (!net)
		return -ENODEV;
	status = find_owner(net, address, &own);
	put_net(net);
	return status == 0 && own.index == interface->index ? 0 : -EADDRNOTAVAIL;
}
EXPORT_SYMBOL_GPL(kern_ip_incoming_ethernet);

void kern_ip_local_ports(struct kern_net *net, u16 *first, u16 *last)
{
	int low, high;

	inet_get_local_port_range(native_of(net), &low, &high);
	*first = low;
	*last = high;
}
EXPORT_SYMBOL_GPL(kern_ip_local_ports);

bool kern_ip_v6only(struct kern_net *net)
{
	return native_of(net)->ipv6.sysctl.bindv6only;
}
EXPORT_SYMBOL_GPL(kern_ip_v6only);

bool kern_ip_may_use_low_ports(struct kern_net *net)
{
	return ns_capable(native_of(net)->user_ns, CAP_NET_BIND_SERVICE);
}
EXPORT_SYMBOL_GPL(kern_ip_may_use_low_ports);

static int watch_neighbours(struct notifier_block *block, unsigned long event, void *data)
{
	struct kern_ip_watcher *watcher = container_of(block, struct kern_ip_watcher, neighbours);
	const struct neighbour *neighbour = data;

	/*
	 * Any user can cause neighbour events on other interfaces, and on interfaces in a private
	 * network namespace. The former are ignored; the latter do not affect other namespaces.
	 */
	if (event == NETEVENT_NEIGH_UPDATE && (READ_ONCE(neighbour->nud_state) & NUD_VALID) &&
	    neighbour->dev->type == ARPHRD_INFINIBAND && is_ours(neighbour->dev))
		watcher->neighbour(watcher->context,
				   kern_native_net_number(dev_net(neighbour->dev)));
	return 0;
}

static int watch_interfaces(struct notifier_block *block, unsigned long event, void *data)
{
	struct kern_ip_watcher *watcher = container_of(block, struct kern_ip_watcher, interfaces);

	if (event == NETDEV_CHANGEADDR || event == NETDEV_BONDING_FAILOVER)
		watcher->interface(watcher->context);
	return 0;
}

struct kern_ip_watcher *kern_ip_watch(void (*neighbour)(void *context, u64 net),
				      void (*interface)(void *context), void *context)
{
	struct kern_ip_watcher *watcher = kzalloc(sizeof(*watcher), GFP_KERNEL);

	if (!watcher)
		return NULL;
	watcher->neighbours.notifier_call = watch_neighbours;
	watcher->interfaces.notifier_call = watch_interfaces;
	watcher->neighbour = neighbour;
	watcher->interface = interface;
	watcher->context = context;
	if (register_netdevice_notifier(&watcher->interfaces)) {
		kfree(watcher);
		return NULL;
	}
	register_netevent_notifier(&watcher->neighbours);
	return watcher;
}
EXPORT_SYMBOL_GPL(kern_ip_watch);

void kern_ip_unwatch(struct kern_ip_watcher *watcher)
{
	/*
	 * The netevent chain is atomic: its notifiers run in an RCU section, for which
	 * unregistering waits.
	 */
	unregister_netevent_notifier(&watcher->neighbours);
	unregister_netdevice_notifier(&watcher->interfaces);
	kfree(watcher);
}
EXPORT_SYMBOL_GPL(kern_ip_unwatch);
