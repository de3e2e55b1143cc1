// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* IP addresses: interfaces, routes and neighbours. */
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
#include <net/netevent.h>
#include <net/route.h>
#include <kern/abi/ip.h>

/* As long as IPv6 may be a module of its own, others reach it by stubs. */
#if __has_include(<net/ipv6_stubs.h>)
#include <net/ipv6_stubs.h>
#define lookup_v6(flow) ipv6_stub->ipv6_dst_lookup_flow(&init_net, NULL, flow, NULL)
#define neighbours_v6 ipv6_stub->nd_tbl
#else
#define lookup_v6(flow) ip6_dst_lookup_flow(&init_net, NULL, flow, NULL)
#define neighbours_v6 (&nd_tbl)
#endif

struct kern_ip_watcher {
	struct notifier_block neighbours, interfaces;
	void (*neighbour)(void *context);
	void (*interface)(void *context);
	void *context;
};

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

static void describe(const struct net_device *dev, struct kern_ip_interface *interface)
{
	memset(interface, 0, sizeof(*interface));
	interface->index = dev->ifindex;
	interface->up = dev->flags & IFF_UP;
	interface->infiniband =
		dev->type == ARPHRD_INFINIBAND && dev->addr_len == KERN_LINK_ADDRESS_SIZE;
	if (interface->infiniband) {
		memcpy(interface->address, dev->dev_addr, KERN_LINK_ADDRESS_SIZE);
		memcpy(interface->broadcast, dev->broadcast, KERN_LINK_ADDRESS_SIZE);
	}
	interface->ethernet = dev->type == ARPHRD_ETHER && dev->addr_len == ETH_ALEN;
	if (interface->ethernet)
		memcpy(interface->address, dev->dev_addr, ETH_ALEN);
}

static bool owns(struct net_device *dev, const struct kern_ip_address *address)
{
	struct in_device *in_dev = __in_dev_get_rcu(dev);

	if (address->v6) {
		const struct in6_addr value = v6(address);

		/* Booted with ipv6.disable=1 there are no tables to look in. */
		if (!ipv6_mod_enabled())
			return false;
		return ipv6_chk_addr(&init_net, &value, dev, 1);
	}
	/*
	 * Without IPv4 (an MTU below 68) it has none; to the function that would be any interface.
	 */
	return in_dev && inet_confirm_addr(&init_net, in_dev, 0, v4(address), RT_SCOPE_HOST) != 0;
}

int kern_ip_owner(const struct kern_ip_address *address, struct kern_ip_interface *interface)
{
	struct net_device *dev;
	int status = -EADDRNOTAVAIL;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, dev)
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
EXPORT_SYMBOL_GPL(kern_ip_owner);

/* A reference to the route; the way it leads must not go through a gateway. */
static struct dst_entry *find_v4(const struct kern_ip_address *to, struct kern_ip_address *source,
				 u32 index)
{
	struct flowi4 flow = {.daddr = v4(to), .saddr = v4(source), .flowi4_oif = index};
	struct rtable *route = ip_route_output_key(&init_net, &flow);

	if (IS_ERR(route))
		return ERR_CAST(route);
	if (route->rt_uses_gateway) {
		ip_rt_put(route);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	memcpy(source->bytes, &flow.saddr, sizeof(flow.saddr));
	return &route->dst;
}

static struct dst_entry *find_v6(const struct kern_ip_address *to, struct kern_ip_address *source,
				 u32 index)
{
	struct flowi6 flow = {.daddr = v6(to), .saddr = v6(source), .flowi6_oif = index};
	struct dst_entry *dst;

	/*
	 * Booted with ipv6.disable=1 it has no tables to look in, and from 7.1 on no stub that says
	 * so.
	 */
	if (!ipv6_mod_enabled())
		return ERR_PTR(-EAFNOSUPPORT);
	dst = lookup_v6(&flow);
	if (IS_ERR(dst))
		return dst;
	if (((struct rt6_info *)dst)->rt6i_flags & RTF_GATEWAY) {
		dst_release(dst);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	memcpy(source->bytes, &flow.saddr, sizeof(flow.saddr));
	return dst;
}

int kern_ip_route(const struct kern_ip_address *to, struct kern_ip_address *source,
		  struct kern_ip_interface *interface)
{
	struct dst_entry *dst =
		to->v6 ? find_v6(to, source, to->interface) : find_v4(to, source, to->interface);

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	source->interface = to->interface;
	/* To an address of our own one gets by the interface that has it. */
	if (kern_ip_owner(to, interface) != 0)
		describe(dst->dev, interface);
	dst_release(dst);
	return 0;
}
EXPORT_SYMBOL_GPL(kern_ip_route);

int kern_ip_neighbour(const struct kern_ip_address *to, const struct kern_ip_interface *interface,
		      u8 *link_address)
{
	struct kern_ip_interface own;
	struct net_device *dev;
	struct neighbour *neighbour;
	int status = -EAGAIN;

	if (kern_ip_owner(to, &own) == 0) {
		memcpy(link_address, own.address, KERN_LINK_ADDRESS_SIZE);
		return 0;
	}
	if (to->v6 && !ipv6_mod_enabled())
		return -EAFNOSUPPORT;
	dev = dev_get_by_index(&init_net, interface->index);
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
 * Of several interfaces with one GID and P_Key (children) the one that has the address; of one
 * itself.
 */
static int find_incoming(const u8 *gid, u16 pkey, const struct kern_ip_address *address,
			 struct kern_ip_interface *interface)
{
	struct net_device *dev;
	unsigned int found = 0;
	int status = -ENODEV;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, dev)
	{
		struct kern_ip_interface here;

		describe(dev, &here);
		if (!here.infiniband || memcmp(here.address + 4, gid, 16) != 0 ||
		    (here.broadcast[8] << 8 | here.broadcast[9]) != pkey)
			continue;
		if (found++ == 0 || owns(dev, address)) {
			*interface = here;
			status = 0;
		}
	}
	rcu_read_unlock();
	return status;
}

int kern_ip_incoming(const u8 *gid, u16 pkey, const struct kern_ip_address *address,
		     const struct kern_ip_address *peer, struct kern_ip_interface *interface)
{
	struct kern_ip_address source = *address;
	struct kern_ip_interface own;
	struct dst_entry *dst;
	int status = find_incoming(gid, pkey, address, interface);

	if (status)
		return status;
	if (!interface->up)
		return -EHOSTUNREACH;
	if (kern_ip_owner(peer, &own) == 0)
		return own.index == interface->index ? 0 : -EHOSTUNREACH;
	dst = peer->v6 ? find_v6(peer, &source, interface->index)
		       : find_v4(peer, &source, interface->index);
	if (IS_ERR(dst))
		return -EHOSTUNREACH;
	status = dst->dev->ifindex == interface->index ? 0 : -EHOSTUNREACH;
	dst_release(dst);
	return status;
}
EXPORT_SYMBOL_GPL(kern_ip_incoming);

void kern_ip_local_ports(u16 *first, u16 *last)
{
	int low, high;

	inet_get_local_port_range(&init_net, &low, &high);
	*first = low;
	*last = high;
}
EXPORT_SYMBOL_GPL(kern_ip_local_ports);

bool kern_ip_v6only(void)
{
	return init_net.ipv6.sysctl.bindv6only;
}
EXPORT_SYMBOL_GPL(kern_ip_v6only);

bool kern_ip_may_use_low_ports(void)
{
	return ns_capable(init_net.user_ns, CAP_NET_BIND_SERVICE);
}
EXPORT_SYMBOL_GPL(kern_ip_may_use_low_ports);

static int watch_neighbours(struct notifier_block *block, unsigned long event, void *data)
{
	struct kern_ip_watcher *watcher = container_of(block, struct kern_ip_watcher, neighbours);
	const struct neighbour *neighbour = data;

	/*
	 * Those of Ethernet and of other namespaces, which anybody can make come and go, are
	 * nobody's peers here.
	 */
	if (event == NETEVENT_NEIGH_UPDATE && (READ_ONCE(neighbour->nud_state) & NUD_VALID) &&
	    neighbour->dev->type == ARPHRD_INFINIBAND && net_eq(dev_net(neighbour->dev), &init_net))
		watcher->neighbour(watcher->context);
	return 0;
}

static int watch_interfaces(struct notifier_block *block, unsigned long event, void *data)
{
	struct kern_ip_watcher *watcher = container_of(block, struct kern_ip_watcher, interfaces);

	if (event == NETDEV_CHANGEADDR || event == NETDEV_BONDING_FAILOVER)
		watcher->interface(watcher->context);
	return 0;
}

struct kern_ip_watcher *kern_ip_watch(void (*neighbour)(void *context),
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
	 * This chain is atomic: whoever calls it is in an RCU section, for which unregistering
	 * waits.
	 */
	unregister_netevent_notifier(&watcher->neighbours);
	unregister_netdevice_notifier(&watcher->interfaces);
	kfree(watcher);
}
EXPORT_SYMBOL_GPL(kern_ip_unwatch);
