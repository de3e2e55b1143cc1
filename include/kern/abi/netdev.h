/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Network interfaces, NAPI and packets (sk_buff). */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

#ifndef KERN_GENERATING_LAYOUT
KERN_OPAQUE(napi);
#endif
struct net_device;
struct netdev_queue;
struct napi_struct;
struct sk_buff;

struct kern_net_stats {
	u64 rx_packets, rx_bytes, rx_errors, rx_dropped, rx_length_errors, multicast;
	u64 tx_packets, tx_bytes, tx_errors, tx_dropped;
};

/* Sizes of an interface's rings, in packets. */
struct kern_rings {
	u32 rx, rx_max;
	u32 tx, tx_max;
};

/*
 * When the interrupt of one direction is due: after so many microseconds or packets; adaptive: as
 * the interface finds best.
 */
struct kern_coalesce {
	u32 usecs;
	u32 frames;
	bool adaptive;
};

struct kern_link_speed {
	u32 mbps;
	bool known;
};

/*
 * Operations of an interface. The first two are called by the stack itself, with its own types; the
 * others through one C function each. All but start_xmit, header_create, set_rx_mode, get_stats and
 * tx_timeout hold the rtnl lock and may sleep. 0 or a negative errno unless it says otherwise.
 */
struct kern_netdev_ops {
	/* KERN_XMIT_*. In a soft interrupt, one at a time for each queue. */
	int (*start_xmit)(struct sk_buff *skb, struct net_device *dev);
	/*
	 * Bytes put in front, or minus their number if they lack an address: the caller has none,
	 * and daddr is NULL.
	 */
	int (*header_create)(struct sk_buff *skb, struct net_device *dev, unsigned short type,
			     const void *daddr, const void *saddr, unsigned int len);

	int (*open)(void *owner);
	void (*stop)(void *owner);
	void (*set_rx_mode)(void *owner);
	int (*change_mtu)(void *owner, unsigned int mtu);
	/*
	 * The administrator wants this hardware address: kern_netdev_set_address() says what has
	 * become of it.
	 */
	int (*set_address)(void *owner, const u8 *address);
	/*
	 * Sets whether to trust the checksums that the device verified; called only if it has
	 * KERN_NETDEV_CSUM.
	 */
	void (*set_rx_checksum)(void *owner, bool on);
	void (*tx_timeout)(void *owner, unsigned int queue);
	void (*get_stats)(void *owner, struct kern_net_stats *stats);
	/* The interface that this one lies on; its own index if none. */
	int (*get_iflink)(void *owner);
	/* The interface is being unregistered and is down. */
	void (*uninit)(void *owner);
	/* The last use of the interface is over; process context, without the rtnl lock. */
	void (*destroy)(void *owner);

	void (*get_rings)(void *owner, struct kern_rings *rings);
	int (*set_rings)(void *owner, u32 rx, u32 tx);
	void (*get_coalesce)(void *owner, struct kern_coalesce *rx, struct kern_coalesce *tx);
	int (*set_coalesce)(void *owner, const struct kern_coalesce *rx,
			    const struct kern_coalesce *tx);
	void (*get_link_speed)(void *owner, struct kern_link_speed *speed);
	/* Names of the counters of ethtool -S, and their values. */
	unsigned int counter_count;
	const char *const *counter_names;
	void (*get_counters)(void *owner, u64 *values);
	const char *driver_name;
	/* The version of the device's firmware, as text of at most so many bytes. May be NULL. */
	void (*get_firmware_version)(void *owner, char *text, unsigned int size);
};

enum {
	KERN_XMIT_OK = 0x00,
	KERN_XMIT_BUSY = 0x10,
};

enum kern_netdev_feature {
	KERN_NETDEV_SG = 1 << 0,
	KERN_NETDEV_CSUM = 1 << 1, /* TCP and UDP over IPv4 and IPv6, both directions */
	KERN_NETDEV_TSO = 1 << 2,  /* of both, too */
};

struct kern_netdev_config {
	const struct kern_netdev_ops *ops;
	void *owner;
	struct device *parent;
	unsigned short type; /* ARPHRD_* */
	unsigned char addr_len;
	unsigned short hard_header_len;
	unsigned short dev_port;
	unsigned int tx_queue_len;
	unsigned int mtu, min_mtu, max_mtu;
	unsigned int features; /* enum kern_netdev_feature */
	unsigned int gso_max_size;
	unsigned int watchdog_ms;
	const u8 *address;
	const u8 *broadcast;
};

/* name: with at most one %d. Process context. NULL without memory. */
struct net_device *kern_netdev_alloc(const char *name, unsigned int tx_queues);
/*
 * A child of another interface, in its namespace, named after it with a dot and a hexadecimal
 * number.
 */
struct net_device *kern_netdev_alloc_child(const struct net_device *parent, unsigned int number,
					   unsigned int tx_queues);
void kern_netdev_configure(struct net_device *dev, const struct kern_netdev_config *config);
/* Frees one that was not registered; its owner's destroy is not called. */
void kern_netdev_free(struct net_device *dev);
/*
 * With the rtnl lock held. After unregister, the last reference frees the device and calls destroy.
 */
int kern_netdev_register_locked(struct net_device *dev);
void kern_netdev_unregister_locked(struct net_device *dev);

void kern_rtnl_lock(void);
void kern_rtnl_unlock(void);

const char *kern_netdev_name(const struct net_device *dev);
/* The last value given to set_rx_checksum; initially, whether the device has KERN_NETDEV_CSUM. */
bool kern_netdev_rx_checksum(const struct net_device *dev);
int kern_netdev_ifindex(const struct net_device *dev);
bool kern_netdev_is_up(const struct net_device *dev);
unsigned int kern_netdev_mtu(const struct net_device *dev);
/* With the rtnl lock held. */
int kern_netdev_set_mtu(struct net_device *dev, unsigned int mtu);
void kern_netdev_set_max_mtu(struct net_device *dev, unsigned int max_mtu);
/* Another function to transmit by; the queues are stopped. */
void kern_netdev_set_start_xmit(struct net_device *dev,
				int (*start_xmit)(struct sk_buff *skb, struct net_device *dev));
/*
 * Sets whether the device segments outgoing packets, as far as it can. With the rtnl lock held.
 */
void kern_netdev_set_segmentation(struct net_device *dev, bool on);
void kern_netdev_set_address(struct net_device *dev, const u8 *address);
const u8 *kern_netdev_address(const struct net_device *dev);
void kern_netdev_set_broadcast(struct net_device *dev, const u8 *address);
void kern_netdev_carrier(struct net_device *dev, bool on);
bool kern_netdev_carrier_ok(const struct net_device *dev);
/* Lets the stack hand over packets, or none any more. */
void kern_netdev_start_queues(struct net_device *dev);
void kern_netdev_stop_queues(struct net_device *dev);
/* Returns the number of multicast addresses that the stack has now. Context: any. */
unsigned int kern_netdev_multicast_count(const struct net_device *dev);
/*
 * Calls each for every multicast address until it returns false. The address lock is held with soft
 * interrupts off: it must not sleep, nor take long.
 */
void kern_netdev_for_each_multicast(struct net_device *dev,
				    bool (*each)(void *context, const u8 *address), void *context);

/* Transmit queues that the device was allocated with. */
unsigned int kern_netdev_tx_queue_count(const struct net_device *dev);
/*
 * Uses the first `count` of them, and has each CPU prefer one of its own. The device is registered,
 * the rtnl lock held. 0 or a negative errno.
 */
int kern_netdev_use_tx_queues(struct net_device *dev, unsigned int count);
struct netdev_queue *kern_netdev_tx_queue(struct net_device *dev, unsigned int index);
void kern_txq_stop(struct netdev_queue *queue);
void kern_txq_wake(struct netdev_queue *queue);
bool kern_txq_stopped(const struct netdev_queue *queue);
void kern_txq_reset(struct netdev_queue *queue);
/*
 * A packet of so many bytes was queued. Returns true if the doorbell has to be rung now: no packet
 * follows, or the queue is full.
 */
bool kern_txq_sent(struct netdev_queue *queue, unsigned int bytes);
void kern_txq_completed(struct netdev_queue *queue, unsigned int packets, unsigned int bytes);
bool kern_xmit_more(void);

/* NAPI. poll gets the address of napi, which is also that of struct napi_struct. */
void kern_napi_add(struct net_device *dev, struct kern_napi *napi,
		   int (*poll)(struct kern_napi *napi, int budget), bool transmit);
void kern_napi_del(struct kern_napi *napi);
void kern_napi_enable(struct kern_napi *napi);
/* Waits until nothing is left of a poll: what it uses may be freed. */
void kern_napi_disable(struct kern_napi *napi);
/*
 * Waits no longer than until a poll has said that it is done, of which what arms the queue may be
 * left: for an end that is soon enabled again.
 */
void kern_napi_pause(struct kern_napi *napi);
bool kern_napi_schedule(struct kern_napi *napi);
/* The same from process context, where no interrupt's end would have it run. */
bool kern_napi_schedule_from_task(struct kern_napi *napi);
/* False if it is to be polled again anyway. */
bool kern_napi_complete_done(struct kern_napi *napi, int work);

/* Attributes of a packet for a transmit function. */
struct kern_tx_packet {
	u8 *data;
	unsigned int length;
	unsigned int linear; /* bytes at data; the rest is in fragments */
	unsigned int fragments;
	unsigned int gso_size; /* 0: one packet */
	unsigned int gso_segments;
	unsigned int header_length; /* of a GSO packet: up to the TCP payload, from data */
	bool checksum;              /* the device has to fill it in */
};
void kern_skb_tx_packet(struct sk_buff *skb, struct kern_tx_packet *packet);
/*
 * Lends the packet from `skip` bytes of its linear part on. The number of pieces, or a negative
 * errno and none.
 */
struct kern_tx_piece {
	u64 address;
	u32 length;
	u32 key; /* the caller's; not touched */
};
int kern_skb_map(struct device *device, struct sk_buff *skb, unsigned int skip,
		 struct kern_tx_piece *pieces);
void kern_skb_unmap(struct device *device, struct sk_buff *skb, unsigned int skip,
		    const struct kern_tx_piece *pieces);
/* Copies all of it, linear or not. */
void kern_skb_copy(const struct sk_buff *skb, void *to, unsigned int length);
void *kern_skb_push(struct sk_buff *skb, unsigned int length);
/*
 * Takes so many bytes off the front. False, and nothing has changed, where the linear part does not
 * have them and `leave` more.
 */
bool kern_skb_pull(struct sk_buff *skb, unsigned int length, unsigned int leave);
/* Makes room in front and a private header. A negative errno without memory. */
int kern_skb_cow_head(struct sk_buff *skb, unsigned int headroom);
int kern_skb_linearize(struct sk_buff *skb);
/*
 * For a packet whose checksum the device has to fill in: the offset where the covered bytes begin,
 * and the checksum's offset from there.
 */
void kern_skb_checksum_place(const struct sk_buff *skb, unsigned int *start, unsigned int *offset);
/* Fills it in. A negative errno without memory. */
int kern_skb_fill_checksum(struct sk_buff *skb);
/* The 48 bytes that belong to the layer that has the packet. */
void *kern_skb_control(struct sk_buff *skb);
u16 kern_skb_protocol(const struct sk_buff *skb);
/* Sends a packet again from the start: for one that waited for its address. */
int kern_skb_requeue(struct sk_buff *skb, struct net_device *dev);
/*
 * Drops a packet that exceeds the path MTU, and reports the MTU to its sender. Process context.
 */
void kern_skb_too_big(struct sk_buff *skb, unsigned int mtu);
/* budget: of the poll function that calls; 0 elsewhere. Any context. */
void kern_skb_consume(struct sk_buff *skb, int budget);
void kern_skb_drop(struct sk_buff *skb);

/* A queue of packets, under its owner's lock. */
struct kern_skb_queue {
	struct sk_buff *first;
	struct sk_buff *last;
	unsigned int length;
};
void kern_skb_enqueue(struct kern_skb_queue *queue, struct sk_buff *skb);
struct sk_buff *kern_skb_dequeue(struct kern_skb_queue *queue);

enum kern_packet_type {
	KERN_PACKET_HOST,
	KERN_PACKET_BROADCAST,
	KERN_PACKET_MULTICAST,
};

/*
 * A packet for the stack: `copied` bytes are copied into its linear part, the rest of `length`
 * stays in the page.
 */
struct kern_rx_packet {
	const void *
		mac_header; /* mac_length bytes that stand in front, as the stack's link-layer header */
	unsigned int mac_length;
	const u8 *data;
	unsigned int length;
	unsigned int copied;
	struct page *page;        /* if copied < length: its reference is handed over */
	unsigned int page_offset; /* of data */
	unsigned int truesize;    /* of the piece of page */
	u16 protocol;             /* host order */
	enum kern_packet_type type;
	bool checksum_ok;
	/*
	 * For a checksum that the sender has not computed: the offset where the covered bytes
	 * begin, and the checksum's offset from there, all of which is copied; otherwise 0 and 0.
	 */
	u16 checksum_start, checksum_offset;
};
/*
 * False without memory: the page's reference stays the caller's. Only from within the poll function
 * of napi.
 */
bool kern_napi_receive(struct kern_napi *napi, struct net_device *dev,
		       const struct kern_rx_packet *packet);
/* The same, with all of the packet copied into pages of its own; its page is not looked at. */
bool kern_napi_receive_copy(struct kern_napi *napi, struct net_device *dev,
			    const struct kern_rx_packet *packet);

/* Pages of the receive ring. */
struct page *kern_page_alloc(void);
/* For tests, in builds with checks: until it is called again, there are none. */
void kern_fail_pages(bool fail);
void kern_page_get(struct page *page);
void kern_page_put(struct page *page);
int kern_page_references(const struct page *page);
/* True if the page is on the local NUMA node, and not from emergency reserves. */
bool kern_page_reusable(const struct page *page);
const void *kern_page_bytes(const struct page *page);

enum kern_link_mode {
	KERN_LINK_DATAGRAM,
	KERN_LINK_CONNECTED,
};

/* Settings of an IP over InfiniBand interface from rtnetlink and sysfs; minus one: not set. */
struct kern_link_settings {
	int pkey;
	int mode; /* enum kern_link_mode */
	int umcast;
};

/* Interfaces that user space makes: `ip link add link PARENT name NAME type KIND`. */
struct kern_link_ops {
	const char *kind;
	/* dev: allocated, named, not configured; parent: what IFLA_LINK named. rtnl lock held. */
	int (*newlink)(struct net_device *dev, struct net_device *parent,
		       const struct kern_link_settings *settings);
	/* The P_Key is not to be changed, and not looked at. rtnl lock held. */
	int (*change)(void *owner, const struct kern_link_settings *settings);
	void (*get)(void *owner, struct kern_link_settings *settings);
	/* May user space delete it? */
	bool (*may_delete)(void *owner);
	/*
	 * The older way to make and to delete one: by the P_Key, of an interface that has a port.
	 * rtnl lock held.
	 */
	int (*create_child)(void *owner, u16 pkey);
	int (*delete_child)(void *owner, u16 pkey);
	/* Transmit queues of a device that is about to be made. */
	unsigned int (*tx_queues)(void);
	/* Identifies devices of this kind: their ops are these. */
	const struct kern_netdev_ops *netdev_ops;
};
struct kern_link_kind;
struct kern_link_kind *kern_link_register(const struct kern_link_ops *ops);
void kern_link_unregister(struct kern_link_kind *kind);
/*
 * Makes a device one of the kind, so that user space sees its attributes, by rtnetlink and in its
 * directory in sysfs. Before it is registered.
 */
void kern_link_adopt(struct kern_link_kind *kind, struct net_device *dev);
/* The owner of a device with these ops, NULL for any other. */
void *kern_netdev_owner_of(struct net_device *dev, const struct kern_netdev_ops *ops);

KERN_C_END
