// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements network interfaces: their life cycle, queues and NAPI. The functions for packets are
 * in skb.c, those for ethtool in ethtool.c, and those for rtnetlink in link.c.
 */
#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <kern/abi/netdev.h>
#include "native.h"
#include "netdev.h"

KERN_NATIVE(napi, struct napi_struct)

static_assert(KERN_XMIT_OK == (int)NETDEV_TX_OK && KERN_XMIT_BUSY == (int)NETDEV_TX_BUSY);
/* C++ reads the owner at this offset without a call. */
static_assert(offsetof(struct kern_netdev_private, owner) == 0);

LIST_HEAD(kern_netdevs);

static int netdev_open(struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	return private->ops->open(private->owner);
}

static int netdev_stop(struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	private->ops->stop(private->owner);
	return 0;
}

static void netdev_set_rx_mode(struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	private->ops->set_rx_mode(private->owner);
}

static int netdev_change_mtu(struct net_device *dev, int mtu)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	int status = private->ops->change_mtu(private->owner, mtu);

	if (!status)
		dev->mtu = mtu;
	return status;
}

/* @address is a struct sockaddr of any length. The link type in sa_family is ignored. */
static int netdev_set_mac_address(struct net_device *dev, void *address)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	return private->ops->set_address(private->owner,
					 (const u8 *)address + offsetof(struct sockaddr, sa_data));
}

static int netdev_set_features(struct net_device *dev, netdev_features_t features)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	if ((features ^ dev->features) & NETIF_F_RXCSUM)
	private->ops->set_rx_checksum(private->owner, features & NETIF_F_RXCSUM);
	return 0;
}

static netdev_features_t netdev_fix_features(struct net_device *dev, netdev_features_t features)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	return private->segmentation ? features : features & ~NETIF_F_ALL_TSO;
}

static void netdev_tx_timeout(struct net_device *dev, unsigned int queue)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	private->ops->tx_timeout(private->owner, queue);
}

static void netdev_get_stats(struct net_device *dev, struct rtnl_link_stats64 *storage)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	struct kern_net_stats stats = {};

	private->ops->get_stats(private->owner, &stats);
	storage->rx_packets = stats.rx_packets;
	storage->rx_bytes = stats.rx_bytes;
	storage->rx_errors = stats.rx_errors;
	storage->rx_dropped = stats.rx_dropped;
	storage->rx_length_errors = stats.rx_length_errors;
	storage->multicast = stats.multicast;
	storage->tx_packets = stats.tx_packets;
	storage->tx_bytes = stats.tx_bytes;
	storage->tx_errors = stats.tx_errors;
	storage->tx_dropped = stats.tx_dropped;
}

static int netdev_get_iflink(const struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	return private->ops->get_iflink(private->owner);
}

static void netdev_uninit(struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	/*
	 * Readers may still use the node. The memory of the interface is freed after a grace
	 * period.
	 */
	if (!list_empty(&private->node))
		list_del_rcu(&private->node);
	private->ops->uninit(private->owner);
}

static void netdev_destroy(struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	if (private->owner)
	private->ops->destroy(private->owner);
}

void kern_netdev_setup(struct net_device *dev)
{
	/* The kernel treats a device whose queue length is 0 as a device without a queue. */
	dev->tx_queue_len = 1000;
	dev->flags |= IFF_BROADCAST | IFF_MULTICAST;
	dev->priv_flags &= ~IFF_XMIT_DST_RELEASE;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
}

struct net_device *kern_netdev_alloc(const char *name, unsigned int tx_queues)
{
	return alloc_netdev_mqs(sizeof(struct kern_netdev_private), name, NET_NAME_ENUM,
				kern_netdev_setup, tx_queues, 1);
}
EXPORT_SYMBOL_GPL(kern_netdev_alloc);

struct net_device *kern_netdev_alloc_child(const struct net_device *parent, unsigned int number,
					   unsigned int tx_queues)
{
	struct net_device *dev;
	char name[IFNAMSIZ];

	if (snprintf(name, sizeof(name), "%s.%04x", parent->name, number) >= (int)sizeof(name))
		return NULL;
	dev = kern_netdev_alloc(name, tx_queues);
	if (dev)
		dev_net_set(dev, dev_net(parent));
	return dev;
}
EXPORT_SYMBOL_GPL(kern_netdev_alloc_child);

void kern_netdev_configure(struct net_device *dev, const struct kern_netdev_config *config)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	private->ops = config->ops;
	private->owner = config->owner;
	private->dev = dev;
	INIT_LIST_HEAD(&private->node);
	private->native = (struct net_device_ops){
		.ndo_start_xmit = (typeof(private->native.ndo_start_xmit))config->ops->start_xmit,
		.ndo_open = netdev_open,
		.ndo_stop = netdev_stop,
		.ndo_set_rx_mode = netdev_set_rx_mode,
		.ndo_change_mtu = netdev_change_mtu,
		.ndo_set_mac_address = netdev_set_mac_address,
		.ndo_set_features = netdev_set_features,
		.ndo_fix_features = netdev_fix_features,
		.ndo_tx_timeout = netdev_tx_timeout,
		.ndo_get_stats64 = netdev_get_stats,
		.ndo_get_iflink = netdev_get_iflink,
		.ndo_uninit = netdev_uninit,
	};
	private->header_ops = (struct header_ops){.create = config->ops->header_create};
	private->segmentation = true;

	dev->netdev_ops = &private->native;
	dev->header_ops = &private->header_ops;
	dev->ethtool_ops = &kern_ethtool_ops;
	dev->needs_free_netdev = true;
	dev->priv_destructor = netdev_destroy;
	dev->type = config->type;
	dev->addr_len = config->addr_len;
	dev->hard_header_len = config->hard_header_len;
	/* Packets from raw sockets are at least this long, which start_xmit relies on. */
	dev->min_header_len = config->hard_header_len;
	/*
	 * Both members have the port number, because programs that are older than dev_port read
	 * dev_id.
	 */
	dev->dev_port = config->dev_port;
	dev->dev_id = config->dev_port;
	dev->tx_queue_len = config->tx_queue_len;
	dev->mtu = config->mtu;
	dev->min_mtu = config->min_mtu;
	dev->max_mtu = config->max_mtu;
	dev->watchdog_timeo = msecs_to_jiffies(config->watchdog_ms);
	SET_NETDEV_DEV(dev, config->parent);
	dev_addr_mod(dev, 0, config->address, config->addr_len);
	memcpy(dev->broadcast, config->broadcast, config->addr_len);

	dev->hw_features = 0;
	if (config->features & KERN_NETDEV_SG)
		dev->hw_features |= NETIF_F_SG;
	if (config->features & KERN_NETDEV_CSUM)
		dev->hw_features |= NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM | NETIF_F_RXCSUM;
	if (config->features & KERN_NETDEV_TSO)
		dev->hw_features |= NETIF_F_TSO | NETIF_F_TSO6;
	/*
	 * VLANs are not possible, because there is no Ethernet header in which the stack could
	 * insert the tag.
	 */
	dev->features = dev->hw_features | NETIF_F_GRO | NETIF_F_HIGHDMA | NETIF_F_VLAN_CHALLENGED;
	netif_set_tso_max_size(dev, config->gso_max_size);
	netif_carrier_off(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_configure);

void kern_netdev_free(struct net_device *dev)
{
	free_netdev(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_free);

int kern_netdev_register_locked(struct net_device *dev)
{
	struct kern_netdev_private *private = netdev_priv(dev);
	void *owner = private->owner;
	int status;

	/*
	 * A failed registration would call the destructor and free the owner, which still belongs
	 * to the caller.
	 */
	dev->needs_free_netdev = false;
	dev->priv_destructor = NULL;
	status = register_netdevice(dev);
	if (status) {
		private->owner = NULL;
		return status;
	}
	private->owner = owner;
	dev->needs_free_netdev = true;
	dev->priv_destructor = netdev_destroy;
	list_add_tail_rcu(&private->node, &kern_netdevs);
	return 0;
}
EXPORT_SYMBOL_GPL(kern_netdev_register_locked);

void kern_netdev_unregister_locked(struct net_device *dev)
{
	unregister_netdevice(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_unregister_locked);

void kern_rtnl_lock(void)
{
	rtnl_lock();
}
EXPORT_SYMBOL_GPL(kern_rtnl_lock);

void kern_rtnl_unlock(void)
{
	rtnl_unlock();
}
EXPORT_SYMBOL_GPL(kern_rtnl_unlock);

bool kern_netdev_rx_checksum(const struct net_device *dev)
{
	return dev->features & NETIF_F_RXCSUM;
}
EXPORT_SYMBOL_GPL(kern_netdev_rx_checksum);

const char *kern_netdev_name(const struct net_device *dev)
{
	return netdev_name(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_name);

int kern_netdev_ifindex(const struct net_device *dev)
{
	return dev->ifindex;
}
EXPORT_SYMBOL_GPL(kern_netdev_ifindex);

bool kern_netdev_is_up(const struct net_device *dev)
{
	return dev->flags & IFF_UP;
}
EXPORT_SYMBOL_GPL(kern_netdev_is_up);

unsigned int kern_netdev_mtu(const struct net_device *dev)
{
	return READ_ONCE(dev->mtu);
}
EXPORT_SYMBOL_GPL(kern_netdev_mtu);

int kern_netdev_set_mtu(struct net_device *dev, unsigned int mtu)
{
	return dev_set_mtu(dev, mtu);
}
EXPORT_SYMBOL_GPL(kern_netdev_set_mtu);

void kern_netdev_set_max_mtu(struct net_device *dev, unsigned int max_mtu)
{
	dev->max_mtu = max_mtu;
}
EXPORT_SYMBOL_GPL(kern_netdev_set_max_mtu);

void kern_netdev_set_start_xmit(struct net_device *dev,
				int (*start_xmit)(struct sk_buff *skb, struct net_device *dev))
{
	struct kern_netdev_private *private = netdev_priv(dev);

	WRITE_ONCE(private->native.ndo_start_xmit,
		   (typeof(private->native.ndo_start_xmit))start_xmit);
}
EXPORT_SYMBOL_GPL(kern_netdev_set_start_xmit);

void kern_netdev_set_segmentation(struct net_device *dev, bool on)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	private->segmentation = on;
	netdev_update_features(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_set_segmentation);

void kern_netdev_set_address(struct net_device *dev, const u8 *address)
{
	dev_addr_mod(dev, 0, address, dev->addr_len);
	if (dev->reg_state == NETREG_REGISTERED)
		call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_set_address);

const u8 *kern_netdev_address(const struct net_device *dev)
{
	return dev->dev_addr;
}
EXPORT_SYMBOL_GPL(kern_netdev_address);

void kern_netdev_set_broadcast(struct net_device *dev, const u8 *address)
{
	memcpy(dev->broadcast, address, dev->addr_len);
}
EXPORT_SYMBOL_GPL(kern_netdev_set_broadcast);

void kern_netdev_carrier(struct net_device *dev, bool on)
{
	if (on)
		netif_carrier_on(dev);
	else
		netif_carrier_off(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_carrier);

bool kern_netdev_carrier_ok(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_carrier_ok);

void kern_netdev_start_queues(struct net_device *dev)
{
	netif_tx_start_all_queues(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_start_queues);

void kern_netdev_stop_queues(struct net_device *dev)
{
	netif_tx_disable(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_stop_queues);

unsigned int kern_netdev_multicast_count(const struct net_device *dev)
{
	return READ_ONCE(dev->mc.count);
}
EXPORT_SYMBOL_GPL(kern_netdev_multicast_count);

void kern_netdev_for_each_multicast(struct net_device *dev,
				    bool (*each)(void *context, const u8 *address), void *context)
{
	struct netdev_hw_addr *address;

	netif_addr_lock_bh(dev);
	netdev_for_each_mc_addr(address, dev)
	{
		if (!each(context, address->addr))
			break;
	}
	netif_addr_unlock_bh(dev);
}
EXPORT_SYMBOL_GPL(kern_netdev_for_each_multicast);

void *kern_netdev_owner_of(struct net_device *dev, const struct kern_netdev_ops *ops)
{
	struct kern_netdev_private *private = netdev_priv(dev);

	if (dev->netdev_ops->ndo_open != netdev_open || private->ops != ops)
		return NULL;
	return private->owner;
}
EXPORT_SYMBOL_GPL(kern_netdev_owner_of);

unsigned int kern_netdev_tx_queue_count(const struct net_device *dev)
{
	return dev->num_tx_queues;
}
EXPORT_SYMBOL_GPL(kern_netdev_tx_queue_count);

int kern_netdev_use_tx_queues(struct net_device *dev, unsigned int count)
{
	const int status = netif_set_real_num_tx_queues(dev, count);
	cpumask_var_t cpus;
	unsigned int queue, cpu;

	if (status || count == 1)
		return status;
	/*
	 * The affinity is optional: without memory for it, the stack distributes flows by their
	 * hash.
	 */
	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return 0;
	for (queue = 0; queue < count; queue++) {
		cpumask_clear(cpus);
		for_each_possible_cpu(cpu) if (cpu % count == queue) cpumask_set_cpu(cpu, cpus);
		netif_set_xps_queue(dev, cpus, queue);
	}
	free_cpumask_var(cpus);
	return 0;
}
EXPORT_SYMBOL_GPL(kern_netdev_use_tx_queues);

struct netdev_queue *kern_netdev_tx_queue(struct net_device *dev, unsigned int index)
{
	return netdev_get_tx_queue(dev, index);
}
EXPORT_SYMBOL_GPL(kern_netdev_tx_queue);

void kern_txq_stop(struct netdev_queue *queue)
{
	netif_tx_stop_queue(queue);
}
EXPORT_SYMBOL_GPL(kern_txq_stop);

void kern_txq_wake(struct netdev_queue *queue)
{
	netif_tx_wake_queue(queue);
}
EXPORT_SYMBOL_GPL(kern_txq_wake);

bool kern_txq_stopped(const struct netdev_queue *queue)
{
	return netif_tx_queue_stopped(queue);
}
EXPORT_SYMBOL_GPL(kern_txq_stopped);

void kern_txq_reset(struct netdev_queue *queue)
{
	netdev_tx_reset_queue(queue);
}
EXPORT_SYMBOL_GPL(kern_txq_reset);

bool kern_txq_sent(struct netdev_queue *queue, unsigned int bytes)
{
	return __netdev_tx_sent_queue(queue, bytes, netdev_xmit_more());
}
EXPORT_SYMBOL_GPL(kern_txq_sent);

void kern_txq_completed(struct netdev_queue *queue, unsigned int packets, unsigned int bytes)
{
	netdev_tx_completed_queue(queue, packets, bytes);
}
EXPORT_SYMBOL_GPL(kern_txq_completed);

bool kern_xmit_more(void)
{
	return netdev_xmit_more();
}
EXPORT_SYMBOL_GPL(kern_xmit_more);

void kern_napi_add(struct net_device *dev, struct kern_napi *napi,
		   int (*poll)(struct kern_napi *napi, int budget), bool transmit)
{
	int (*native_poll)(struct napi_struct *, int) = (void *)poll;

	memset(napi, 0, sizeof(*napi));
	if (transmit)
		netif_napi_add_tx(dev, native_napi(napi), native_poll);
	else
		netif_napi_add(dev, native_napi(napi), native_poll);
}
EXPORT_SYMBOL_GPL(kern_napi_add);

void kern_napi_del(struct kern_napi *napi)
{
	netif_napi_del(native_napi(napi));
}
EXPORT_SYMBOL_GPL(kern_napi_del);

void kern_napi_enable(struct kern_napi *napi)
{
	napi_enable(native_napi(napi));
}
EXPORT_SYMBOL_GPL(kern_napi_enable);

/*
 * After napi_complete_done(), the poll function may still run on another CPU, and may be about to
 * arm a CQ that the caller will free. napi_disable() does not wait for that. A grace period does,
 * because the poll function runs in a soft interrupt.
 */
void kern_napi_disable(struct kern_napi *napi)
{
	napi_disable(native_napi(napi));
	synchronize_net();
}
EXPORT_SYMBOL_GPL(kern_napi_disable);

void kern_napi_pause(struct kern_napi *napi)
{
	napi_disable(native_napi(napi));
}
EXPORT_SYMBOL_GPL(kern_napi_pause);

bool kern_napi_schedule(struct kern_napi *napi)
{
	if (!napi_schedule_prep(native_napi(napi)))
		return false;
	__napi_schedule(native_napi(napi));
	return true;
}
EXPORT_SYMBOL_GPL(kern_napi_schedule);

bool kern_napi_schedule_from_task(struct kern_napi *napi)
{
	bool scheduled;

	local_bh_disable();
	scheduled = kern_napi_schedule(napi);
	local_bh_enable();
	return scheduled;
}
EXPORT_SYMBOL_GPL(kern_napi_schedule_from_task);

bool kern_napi_complete_done(struct kern_napi *napi, int work)
{
	return napi_complete_done(native_napi(napi), work);
}
EXPORT_SYMBOL_GPL(kern_napi_complete_done);

static __always_inline struct sk_buff *netdev_packet(struct kern_napi *napi, struct net_device *dev,
						     const struct kern_rx_packet *packet)
{
	const unsigned int linear = packet->mac_length + packet->copied;
	struct sk_buff *skb = napi_alloc_skb(native_napi(napi), linear);

	if (unlikely(!skb))
		return NULL;
	skb->dev = dev;
	memcpy(__skb_put(skb, packet->mac_length), packet->mac_header, packet->mac_length);
	memcpy(__skb_put(skb, packet->copied), packet->data, packet->copied);
	if (packet->copied < packet->length)
		skb_add_rx_frag(skb, 0, packet->page, packet->page_offset + packet->copied,
				packet->length - packet->copied, packet->truesize);
	skb_reset_mac_header(skb);
	__skb_pull(skb, packet->mac_length);
	skb->protocol = htons(packet->protocol);
	skb->pkt_type = packet->type;
	if (packet->checksum_ok)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (packet->checksum_start)
		skb_partial_csum_set(skb, packet->checksum_start, packet->checksum_offset);
	return skb;
}

bool kern_napi_receive(struct kern_napi *napi, struct net_device *dev,
		       const struct kern_rx_packet *packet)
{
	struct sk_buff *skb = netdev_packet(napi, dev, packet);

	if (unlikely(!skb))
		return false;
	napi_gro_receive(native_napi(napi), skb);
	return true;
}
EXPORT_SYMBOL_GPL(kern_napi_receive);

bool kern_napi_receive_copy(struct kern_napi *napi, struct net_device *dev,
			    const struct kern_rx_packet *packet)
{
	struct kern_rx_packet linear = *packet;
	const u8 *from = packet->data + packet->copied;
	unsigned int left = packet->length - packet->copied;
	struct sk_buff *skb;
	int piece = 0;

	linear.length = packet->copied;
	skb = netdev_packet(napi, dev, &linear);
	if (unlikely(!skb))
		return false;
	while (left) {
		const unsigned int length = min_t(unsigned int, left, PAGE_SIZE);
		struct page *page = kern_page_alloc();

		if (unlikely(!page)) {
			kfree_skb(skb);
			return false;
		}
		memcpy(page_address(page), from, length);
		skb_add_rx_frag(skb, piece++, page, 0, length, PAGE_SIZE);
		from += length;
		left -= length;
	}
	napi_gro_receive(native_napi(napi), skb);
	return true;
}
EXPORT_SYMBOL_GPL(kern_napi_receive_copy);

static_assert(KERN_PACKET_HOST == PACKET_HOST && KERN_PACKET_BROADCAST == PACKET_BROADCAST &&
	      KERN_PACKET_MULTICAST == PACKET_MULTICAST);

#ifdef CONFIG_WEFT_DEBUG
static bool pages_fail;

void kern_fail_pages(bool fail)
{
	WRITE_ONCE(pages_fail, fail);
}
EXPORT_SYMBOL_GPL(kern_fail_pages);
#endif

struct page *kern_page_alloc(void)
{
#ifdef CONFIG_WEFT_DEBUG
	if (READ_ONCE(pages_fail))
		return NULL;
#endif
	return dev_alloc_page();
}
EXPORT_SYMBOL_GPL(kern_page_alloc);

void kern_page_get(struct page *page)
{
	get_page(page);
}
EXPORT_SYMBOL_GPL(kern_page_get);

void kern_page_put(struct page *page)
{
	put_page(page);
}
EXPORT_SYMBOL_GPL(kern_page_put);

int kern_page_references(const struct page *page)
{
	return page_ref_count(page);
}
EXPORT_SYMBOL_GPL(kern_page_references);

bool kern_page_reusable(const struct page *page)
{
	return dev_page_is_reusable(page);
}
EXPORT_SYMBOL_GPL(kern_page_reusable);

const void *kern_page_bytes(const struct page *page)
{
	return page_address(page);
}
EXPORT_SYMBOL_GPL(kern_page_bytes);
