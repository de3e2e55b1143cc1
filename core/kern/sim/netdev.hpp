// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Simulates the kernel's network stack as an interface sees it. The simulated stack opens and stops
 * interfaces, transmits one packet at a time on each queue, polls, and drops its reference to a
 * device some time after its unregistration. It ignores the carrier state, so it behaves like a
 * stack that learns of changes too late.
 */
#pragma once
#include <kern/abi/lock.h>
#include <kern/abi/netdev.h>
#include "fiber.hpp"

namespace sim
{

enum class Registration : unsigned char { none, registered, ended };

} // namespace sim

/*
 * A packet, whose bytes follow the structure. include/kern/netdev.hpp reads the first two members
 * by their offsets.
 */
struct sk_buff {
	u8 *data;
	u16 queue_mapping;
	u16 protocol;
	unsigned int length;
	sk_buff *next;
	net_device *dev;
	// The device owns the packet; see kern_skb_map().
	bool lent;
	u8 control[48];
};

struct netdev_queue {
	// Held during a transmission.
	kern_spinlock transmit;
	net_device *dev;
	const sim::Fiber *runner;
	// Packets that could not be passed to the interface yet.
	kern_skb_queue backlog;
	// Bytes that were reported by kern_txq_sent() and have not completed yet.
	unsigned int bytes;
	bool stopped;
};

struct net_device {
	char name[32];
	const kern_netdev_ops *ops;
	int (*start_xmit)(sk_buff *, net_device *);
	const kern_link_ops *kind;
	netdev_queue *queues;
	unsigned int queue_count, queues_used;
	unsigned int mtu, max_mtu;
	unsigned int references;
	int index;
	sim::Registration registration;
	bool up, carrier, segmentation, rx_checksum;
	unsigned char address_length;
	u8 address[32], broadcast[32];
	// The multicast groups that programs have joined.
	unsigned int multicast_count;
	u8 multicast[4][32];
};
static_assert(sizeof(net_device) <= KERN_NETDEV_PRIVATE);
