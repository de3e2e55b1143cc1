/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares network interfaces, NAPI and packets (sk_buff). */
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
 * In one direction, the interrupt is raised after this many microseconds or packets. adaptive: the
 * interface chooses the values.
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
 * Operations of an interface. The network stack calls start_xmit and header_create directly, with
 * its own types, and the others through a C function each. All except start_xmit, header_create,
 * set_rx_mode, get_stats and tx_timeout are called with the rtnl lock held and may sleep. They
 * return 0 or a negative errno, unless noted otherwise.
 */
struct kern_netdev_ops {
	/*
	 * Returns KERN_XMIT_*. Called in soft interrupt context, one call at a time for each queue.
	 */
	int (*start_xmit)(struct sk_buff *skb, struct net_device *dev);
	/*
	 * Returns the number of bytes that were added in front, or the negative number if the
	 * address is missing in them because daddr is NULL.
	 */
	int (*header_create)(struct sk_buff *skb, struct net_device *dev, unsigned short type,
			     const void *daddr, const void *saddr, unsigned int len);

	int (*open)(void *owner);
	void (*stop)(void *owner);
	void (*set_rx_mode)(void *owner);
	int (*change_mtu)(void *owner, unsigned int mtu);
	/*
	 * Called when the administrator sets the hardware address. The driver sets the new address
	 * with kern_netdev_set_address().
	 */
	int (*set_address)(void *owner, const u8 *address);
	/*
	 * Sets whether to use the checksum results of the device. Called only if the interface has
	 * KERN_NETDEV_CSUM.
	 */
	void (*set_rx_checksum)(void *owner, bool on);
	void (*tx_timeout)(void *owner, unsigned int queue);
	void (*get_stats)(void *owner, struct kern_net_stats *stats);
	/*
	 * Returns the index of the interface below this one, or the interface's own index if there
	 * is none.
	 */
	int (*get_iflink)(void *owner);
	/* Called while the interface is being unregistered. It is down. */
	void (*uninit)(void *owner);
	/* Called when the interface has no users left. Context: process, without the rtnl lock. */
	void (*destroy)(void *owner);

	void (*get_rings)(void *owner, struct kern_rings *rings);
	int (*set_rings)(void *owner, u32 rx, u32 tx);
	void (*get_coalesce)(void *owner, struct kern_coalesce *rx, struct kern_coalesce *tx);
	int (*set_coalesce)(void *owner, const struct kern_coalesce *rx,
			    const struct kern_coalesce *tx);
	void (*get_link_speed)(void *owner, struct kern_link_speed *speed);
	/* The names of the counters of ethtool -S, and a function that returns their values. */
	unsigned int counter_count;
	const char *const *counter_names;
	void (*get_counters)(void *owner, u64 *values);
	const char *driver_name;
	/*
	 * Writes the version of the device's firmware as a text of at most @size bytes. May be
	 * NULL.
	 */
	void (*get_firmware_version)(void *owner, char *text, unsigned int size);
};

enum {
	KERN_XMIT_OK = 0x00,
	KERN_XMIT_BUSY = 0x10,
};

enum kern_netdev_feature {
	KERN_NETDEV_SG = 1 << 0,
	KERN_NETDEV_CSUM = 1 << 1, /* TCP and UDP over IPv4 and IPv6, in both directions */
	KERN_NETDEV_TSO = 1 << 2,  /* over IPv4 and IPv6 */
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

/* name: contains at most one %d. Context: process. Returns NULL if there is no memory. */
struct net_device *kern_netdev_alloc(const char *name, unsigned int tx_queues);
/*
 * Allocates a child of another interface in the same network namespace. Its name is the parent's,
 * with a dot and a hexadecimal number.
 */
struct net_device *kern_netdev_alloc_child(const struct net_device *parent, unsigned int number,
					   unsigned int tx_queues);
void kern_netdev_configure(struct net_device *dev, const struct kern_netdev_config *config);
/* Frees a device that was not registered. Its owner's destroy is not called. */
void kern_netdev_free(struct net_device *dev);
/*
 * The caller holds the rtnl lock. After unregistering, dropping the last reference frees the device
 * and calls destroy.
 */
int kern_netdev_register_locked(struct net_device *dev);
void kern_netdev_unregister_locked(struct net_device *dev);

void kern_rtnl_lock(void);
void kern_rtnl_unlock(void);

const char *kern_netdev_name(const struct net_device *dev);
/*
 * Returns the last value passed to set_rx_checksum or, if it was not called, whether the interface
 * has KERN_NETDEV_CSUM.
 */
bool kern_netdev_rx_checksum(const struct net_device *dev);
int kern_netdev_ifindex(const struct net_device *dev);
bool kern_netdev_is_up(const struct net_device *dev);
unsigned int kern_netdev_mtu(const struct net_device *dev);
/* The caller holds the rtnl lock. */
int kern_netdev_set_mtu(struct net_device *dev, unsigned int mtu);
void kern_netdev_set_max_mtu(struct net_device *dev, unsigned int max_mtu);
/* Replaces the transmit function. The queues must be stopped. */
void kern_netdev_set_start_xmit(struct net_device *dev,
				int (*start_xmit)(struct sk_buff *skb, struct net_device *dev));
/*
 * Sets whether the device segments outgoing packets, as far as it can. The caller holds the rtnl
 * lock.
 */
void kern_netdev_set_segmentation(struct net_device *dev, bool on);
void kern_netdev_set_address(struct net_device *dev, const u8 *address);
const u8 *kern_netdev_address(const struct net_device *dev);
void kern_netdev_set_broadcast(struct net_device *dev, const u8 *address);
void kern_netdev_carrier(struct net_device *dev, bool on);
bool kern_netdev_carrier_ok(const struct net_device *dev);
/* Start or stop the network stack's calls of the transmit function. */
void kern_netdev_start_queues(struct net_device *dev);
void kern_netdev_stop_queues(struct net_device *dev);
/* Returns the current number of multicast addresses of the network stack. Context: any. */
unsigned int kern_netdev_multicast_count(const struct net_device *dev);
/*
 * Calls @each for every multicast address until it returns false. The address lock is held and soft
 * interrupts are disabled, so it must not sleep or take long.
 */
void kern_netdev_for_each_multicast(struct net_device *dev,
				    bool (*each)(void *context, const u8 *address), void *context);

/* Returns the number of transmit queues with which the device was allocated. */
unsigned int kern_netdev_tx_queue_count(const struct net_device *dev);
/*
 * Uses the first `count` transmit queues, and assigns each CPU one of them. The device must be
 * registered, and the caller must hold the rtnl lock. Returns 0 or a negative errno.
 */
int kern_netdev_use_tx_queues(struct net_device *dev, unsigned int count);
struct netdev_queue *kern_netdev_tx_queue(struct net_device *dev, unsigned int index);
void kern_txq_stop(struct netdev_queue *queue);
void kern_txq_wake(struct netdev_queue *queue);
bool kern_txq_stopped(const struct netdev_queue *queue);
void kern_txq_reset(struct netdev_queue *queue);
/*
 * Called after a packet of this size has been queued. Returns true if the doorbell must be rung
 * now, because no packet follows or the queue is full.
 */
bool kern_txq_sent(struct netdev_queue *queue, unsigned int bytes);
void kern_txq_completed(struct netdev_queue *queue, unsigned int packets, unsigned int bytes);
bool kern_xmit_more(void);

/* NAPI. The poll function gets the address of @napi, which is also that of struct napi_struct. */
void kern_napi_add(struct net_device *dev, struct kern_napi *napi,
		   int (*poll)(struct kern_napi *napi, int budget), bool transmit);
void kern_napi_del(struct kern_napi *napi);
void kern_napi_enable(struct kern_napi *napi);
/* Waits until a running poll has returned, so that its data can be freed. */
void kern_napi_disable(struct kern_napi *napi);
/*
 * Waits only until a running poll has called kern_napi_complete_done(); it may still arm the queue.
 * For an instance that is enabled again soon.
 */
void kern_napi_pause(struct kern_napi *napi);
bool kern_napi_schedule(struct kern_napi *napi);
/*
 * Like kern_napi_schedule(), in process context, where the poll is not started by the end of an
 * interrupt.
 */
bool kern_napi_schedule_from_task(struct kern_napi *napi);
/* Returns false if the instance must be polled again. */
bool kern_napi_complete_done(struct kern_napi *napi, int work);

/* Attributes of a packet for a transmit function. */
struct kern_tx_packet {
	u8 *data;
	unsigned int length;
	unsigned int linear; /* bytes at data; the rest is in fragments */
	unsigned int fragments;
	unsigned int gso_size; /* 0 for a single packet */
	unsigned int gso_segments;
	/* only for a GSO packet: number of bytes from data to the TCP payload */
	unsigned int header_length;
	bool checksum; /* the device must compute the checksum */
};
void kern_skb_tx_packet(struct sk_buff *skb, struct kern_tx_packet *packet);
/*
 * Maps a packet for DMA, beginning with byte `skip` of its linear part. Returns the number of
 * pieces, or a negative errno after which nothing is mapped.
 */
struct kern_tx_piece {
	u64 address;
	u32 length;
	u32 key; /* for the caller; not accessed by these functions */
};
int kern_skb_map(struct device *device, struct sk_buff *skb, unsigned int skip,
		 struct kern_tx_piece *pieces);
void kern_skb_unmap(struct device *device, struct sk_buff *skb, unsigned int skip,
		    const struct kern_tx_piece *pieces);
/* Copies the whole packet, including fragments. */
void kern_skb_copy(const struct sk_buff *skb, void *to, unsigned int length);
void *kern_skb_push(struct sk_buff *skb, unsigned int length);
/*
 * Removes @length bytes from the front. Returns false without a change if the linear part does not
 * have these bytes and `leave` more.
 */
bool kern_skb_pull(struct sk_buff *skb, unsigned int length, unsigned int leave);
/*
 * Makes space in front of the data, and makes the header private. Returns a negative errno if there
 * is no memory.
 */
int kern_skb_cow_head(struct sk_buff *skb, unsigned int headroom);
int kern_skb_linearize(struct sk_buff *skb);
/*
 * For a packet whose checksum the device must complete. @start: the offset of the first covered
 * byte. @offset: the offset of the checksum from there.
 */
void kern_skb_checksum_place(const struct sk_buff *skb, unsigned int *start, unsigned int *offset);
/* Computes the checksum. Returns a negative errno if there is no memory. */
int kern_skb_fill_checksum(struct sk_buff *skb);
/* The 48 bytes that belong to the current owner of the packet. */
void *kern_skb_control(struct sk_buff *skb);
u16 kern_skb_protocol(const struct sk_buff *skb);
/*
 * Sends a packet again from the beginning of the network stack, after it has waited for its
 * address.
 */
int kern_skb_requeue(struct sk_buff *skb, struct net_device *dev);
/* Drops a packet that exceeds the path MTU, and reports the MTU to its sender. Context: process. */
void kern_skb_too_big(struct sk_buff *skb, unsigned int mtu);
/* budget: the budget of the calling poll function; 0 elsewhere. Context: any. */
void kern_skb_consume(struct sk_buff *skb, int budget);
void kern_skb_drop(struct sk_buff *skb);

/* A queue of packets, which is protected by the owner's lock. */
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
 * A received packet for the network stack: `copied` bytes are copied into its linear part, and the
 * rest of `length` stays in the page.
 */
struct kern_rx_packet {
	/*
	 * The link-layer header in front of the data, which the network stack sees; mac_length
	 * bytes.
	 */
	const void *mac_header;
	unsigned int mac_length;
	const u8 *data;
	unsigned int length;
	unsigned int copied;
	struct page *page;        /* if copied < length, the reference is taken over */
	unsigned int page_offset; /* offset of data in the page */
	unsigned int truesize;    /* size of the part of the page that the packet uses */
	u16 protocol;             /* in host byte order */
	enum kern_packet_type type;
	bool checksum_ok;
	/*
	 * For a checksum that the sender has not computed: the offset of the first covered byte,
	 * and the offset of the checksum from there. Both must be in the copied bytes. 0 and 0 for
	 * other packets.
	 */
	u16 checksum_start, checksum_offset;
};
/*
 * Returns false if there is no memory; the caller then keeps the reference to the page. May be
 * called only by the poll function of @napi.
 */
bool kern_napi_receive(struct kern_napi *napi, struct net_device *dev,
		       const struct kern_rx_packet *packet);
/*
 * Like kern_napi_receive(), but the whole packet is copied into new pages, and `page` is ignored.
 */
bool kern_napi_receive_copy(struct kern_napi *napi, struct net_device *dev,
			    const struct kern_rx_packet *packet);

/* Pages of the receive ring. */
struct page *kern_page_alloc(void);
/* For tests, in builds with checks: allocations of pages fail as long as `fail` is set. */
void kern_fail_pages(bool fail);
void kern_page_get(struct page *page);
void kern_page_put(struct page *page);
int kern_page_references(const struct page *page);
/*
 * Returns true if the page is on the local NUMA node and does not come from the emergency reserves.
 */
bool kern_page_reusable(const struct page *page);
const void *kern_page_bytes(const struct page *page);

enum kern_link_mode {
	KERN_LINK_DATAGRAM,
	KERN_LINK_CONNECTED,
};

/* Settings of an IPoIB interface from rtnetlink and sysfs; -1 if not set. */
struct kern_link_settings {
	int pkey;
	int mode; /* enum kern_link_mode */
	int umcast;
};

/* A type of interfaces that user space creates: `ip link add link PARENT name NAME type KIND`. */
struct kern_link_ops {
	const char *kind;
	/*
	 * @dev has been allocated and named, but not configured. @parent is the device in
	 * IFLA_LINK. Called with the rtnl lock held.
	 */
	int (*newlink)(struct net_device *dev, struct net_device *parent,
		       const struct kern_link_settings *settings);
	/* The P_Key cannot be changed, and is ignored. Called with the rtnl lock held. */
	int (*change)(void *owner, const struct kern_link_settings *settings);
	void (*get)(void *owner, struct kern_link_settings *settings);
	/* Returns whether user space may delete the interface. */
	bool (*may_delete)(void *owner);
	/*
	 * The older interface for creating and deleting a child interface by its P_Key, through
	 * files of an interface that has a port. Called with the rtnl lock held.
	 */
	int (*create_child)(void *owner, u16 pkey);
	int (*delete_child)(void *owner, u16 pkey);
	/* Returns the number of transmit queues of a device that is about to be created. */
	unsigned int (*tx_queues)(void);
	/* An interface with these operations is of this type. */
	const struct kern_netdev_ops *netdev_ops;
};
struct kern_link_kind;
struct kern_link_kind *kern_link_register(const struct kern_link_ops *ops);
void kern_link_unregister(struct kern_link_kind *kind);
/*
 * Makes a device one of this type, so that user space sees its attributes through rtnetlink and
 * sysfs. Must be called before the device is registered.
 */
void kern_link_adopt(struct kern_link_kind *kind, struct net_device *dev);
/* Returns the owner of a device with these operations; NULL for any other device. */
void *kern_netdev_owner_of(struct net_device *dev, const struct kern_netdev_ops *ops);

KERN_C_END
