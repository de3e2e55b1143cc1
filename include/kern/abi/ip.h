/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * IP addresses: which interface has one, and how to reach one, in a network namespace.
 */
#pragma once
#include <kern/abi/net.h>

KERN_C_BEGIN

enum {
	KERN_LINK_ADDRESS_SIZE =
		20 /* length for an InfiniBand interface: 4 bytes of flags and QPN, and the GID */
};

struct kern_ip_address {
	u8 bytes[16]; /* the first four bytes for IPv4 */
	bool v6;
	u32 interface; /* the interface of a link-local address; otherwise 0 */
};

/* `infiniband` and `ethernet` are only set for interfaces of weft's drivers. */
struct kern_ip_interface {
	u64 net; /* the number of its namespace */
	u32 index;
	bool up;
	bool infiniband;
	bool ethernet; /* its address has six bytes */
	u8 address[KERN_LINK_ADDRESS_SIZE];
	u8 broadcast[KERN_LINK_ADDRESS_SIZE];
};

struct kern_ip_watcher;

/* Context of all functions: process. They return 0 or a negative errno. */

/*
 * Finds the interface of a namespace that has an address. Returns -EADDRNOTAVAIL if there is none.
 */
int kern_ip_owner(struct kern_net *net, const struct kern_ip_address *address,
		  struct kern_ip_interface *interface);
/*
 * Finds the interface, and the source address, to reach `to`. `source` is the one to use, or all
 * zero for any; filled in. -EADDRNOTAVAIL if the route leads through a gateway on InfiniBand;
 * errors of the routing tables.
 */
int kern_ip_route(struct kern_net *net, const struct kern_ip_address *to,
		  struct kern_ip_address *source, struct kern_ip_interface *interface);
/*
 * Finds the link address of a neighbour. Returns -EAGAIN while it is being resolved; then the
 * callback `neighbour` of kern_ip_watch() is called when it is known.
 */
int kern_ip_neighbour(struct kern_net *net, const struct kern_ip_address *to,
		      const struct kern_ip_interface *interface, u8 *link_address);
/*
 * Finds the InfiniBand interface with a GID and a P_Key, in any namespace; if there are several,
 * the one that has `address`. Returns -ENODEV if there is none, and -EHOSTUNREACH if it is down or
 * the route to `peer` uses another.
 */
int kern_ip_incoming(const u8 *gid, u16 pkey, const struct kern_ip_address *address,
		     const struct kern_ip_address *peer, struct kern_ip_interface *interface);
/*
 * Finds the Ethernet interface with a link address, in any namespace. Returns -ENODEV if there is
 * none, and -EADDRNOTAVAIL if it does not have `address`.
 */
int kern_ip_incoming_ethernet(const u8 *mac, const struct kern_ip_address *address,
			      struct kern_ip_interface *interface);

/*
 * Settings of a namespace: net.ipv4.ip_local_port_range; net.ipv6.bindv6only; whether the caller
 * may have ports below 1024.
 */
void kern_ip_local_ports(struct kern_net *net, u16 *first, u16 *last);
bool kern_ip_v6only(struct kern_net *net);
bool kern_ip_may_use_low_ports(struct kern_net *net);

/*
 * `neighbour` is called when a neighbour's link address may have become known, with the number of
 * the namespace, in any context; `interface` when an interface has another link address, with the
 * rtnl lock held. NULL without memory.
 */
struct kern_ip_watcher *kern_ip_watch(void (*neighbour)(void *context, u64 net),
				      void (*interface)(void *context), void *context);
/* No callback runs after this has returned. */
void kern_ip_unwatch(struct kern_ip_watcher *watcher);

struct net_device;
struct kern_ip_address_watcher;

/*
 * `changed` is called for each IPv4 address (network byte order) that an interface gets or loses,
 * with the rtnl lock held, and once even if the address is in several networks; it may sleep.
 * Returns NULL without memory. The second function may also be called with the lock held.
 */
struct kern_ip_address_watcher *kern_ip_watch_addresses(const struct net_device *dev,
							void (*changed)(void *context, u32 address,
									u32 mask, bool added),
							void *context);
void kern_ip_unwatch_addresses(struct kern_ip_address_watcher *watcher);
/*
 * Reports all addresses of the interface as if they were added or removed. Caller holds the rtnl
 * lock.
 */
void kern_ip_report_addresses(struct kern_ip_address_watcher *watcher, bool added);

KERN_C_END
