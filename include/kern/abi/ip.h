/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the lookup of IP addresses in a network namespace: the interface that has an address,
 * and the route to an address.
 */
#pragma once
#include <kern/abi/net.h>

KERN_C_BEGIN

enum {
	KERN_LINK_ADDRESS_SIZE = 20 /* for InfiniBand: 4 bytes of flags and QPN, and the GID */
};

struct kern_ip_address {
	u8 bytes[16]; /* only the first four bytes for IPv4 */
	bool v6;
	u32 interface; /* index of the interface of a link-local address; otherwise 0 */
};

/* `infiniband` and `ethernet` are set only for interfaces of weft's drivers. */
struct kern_ip_interface {
	u64 net; /* number of the network namespace */
	u32 index;
	bool up;
	bool infiniband;
	bool ethernet; /* the link address has six bytes */
	u8 address[KERN_LINK_ADDRESS_SIZE];
	u8 broadcast[KERN_LINK_ADDRESS_SIZE];
};

struct kern_ip_watcher;

/* Context of all functions: process. They return 0 or a negative errno, unless noted otherwise. */

/* Finds the interface that has an address. Returns -EADDRNOTAVAIL if there is none. */
int kern_ip_owner(struct kern_net *net, const struct kern_ip_address *address,
		  struct kern_ip_interface *interface);
/*
 * Finds the interface and the source address for reaching `to`. `source` is the address to use, or
 * zero for any; the function fills it in. Returns -EADDRNOTAVAIL if the route uses a gateway on
 * InfiniBand; the errors of the routing tables.
 */
int kern_ip_route(struct kern_net *net, const struct kern_ip_address *to,
		  struct kern_ip_address *source, struct kern_ip_interface *interface);
/*
 * Finds the link address of a neighbour. Returns -EAGAIN while it is being resolved; when it is
 * known, the callback `neighbour` of kern_ip_watch() is called.
 */
int kern_ip_neighbour(struct kern_net *net, const struct kern_ip_address *to,
		      const struct kern_ip_interface *interface, u8 *link_address);
/*
 * Finds the InfiniBand interface with this GID and P_Key, in any network namespace; if there are
 * several, the one that has `address`. Returns -ENODEV if there is none, and -EHOSTUNREACH if it is
 * down or the route to `peer` uses another interface.
 */
int kern_ip_incoming(const u8 *gid, u16 pkey, const struct kern_ip_address *address,
		     const struct kern_ip_address *peer, struct kern_ip_interface *interface);
/*
 * Finds the Ethernet interface with this link address, in any network namespace. Returns -ENODEV if
 * there is none, and -EADDRNOTAVAIL if it does not have `address`.
 */
int kern_ip_incoming_ethernet(const u8 *mac, const struct kern_ip_address *address,
			      struct kern_ip_interface *interface);

/*
 * Settings of a network namespace: net.ipv4.ip_local_port_range; net.ipv6.bindv6only; whether the
 * caller may use ports below 1024.
 */
void kern_ip_local_ports(struct kern_net *net, u16 *first, u16 *last);
bool kern_ip_v6only(struct kern_net *net);
bool kern_ip_may_use_low_ports(struct kern_net *net);

/*
 * `neighbour` is called, in any context, when a neighbour may have been resolved, with the number
 * of the network namespace. `interface` is called, with the rtnl lock held, when the link address
 * of an interface has changed. Returns NULL if there is no memory.
 */
struct kern_ip_watcher *kern_ip_watch(void (*neighbour)(void *context, u64 net),
				      void (*interface)(void *context), void *context);
/* After it returns, no callback runs. */
void kern_ip_unwatch(struct kern_ip_watcher *watcher);

struct net_device;
struct kern_ip_address_watcher;

/*
 * `changed` is called for each IPv4 address (in network byte order) that an interface gets or
 * loses, with the rtnl lock held. It is called only once if the address is in several networks. It
 * may sleep. Returns NULL if there is no memory. kern_ip_unwatch_addresses() may also be called
 * with the lock held.
 */
struct kern_ip_address_watcher *kern_ip_watch_addresses(const struct net_device *dev,
							void (*changed)(void *context, u32 address,
									u32 mask, bool added),
							void *context);
void kern_ip_unwatch_addresses(struct kern_ip_address_watcher *watcher);
/*
 * Reports all addresses of the interface as if they were added or removed. The caller holds the
 * rtnl lock.
 */
void kern_ip_report_addresses(struct kern_ip_address_watcher *watcher, bool added);

KERN_C_END
