// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the functions of include/kern/abi/netdev.h for outgoing packets (sk_buff). */
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/icmpv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/dst.h>
#include <net/icmp.h>
#include <kern/abi/netdev.h>

void kern_skb_tx_packet(struct sk_buff *skb, struct kern_tx_packet *packet)
{
	const struct skb_shared_info *shared = skb_shinfo(skb);

	packet->data = skb->data;
	packet->length = skb->len;
	packet->linear = skb_headlen(skb);
	packet->fragments = shared->nr_frags;
	packet->checksum = skb->ip_summed == CHECKSUM_PARTIAL;
	packet->gso_size = shared->gso_size;
	if (unlikely(packet->gso_size)) {
		packet->gso_segments = shared->gso_segs;
		packet->header_length = skb_tcp_all_headers(skb);
	}
}
EXPORT_SYMBOL_GPL(kern_skb_tx_packet);

void kern_skb_checksum_place(const struct sk_buff *skb, unsigned int *start, unsigned int *offset)
{
	*start = skb_checksum_start_offset(skb);
	*offset = skb->csum_offset;
}
EXPORT_SYMBOL_GPL(kern_skb_checksum_place);

int kern_skb_fill_checksum(struct sk_buff *skb)
{
	return skb_checksum_help(skb);
}
EXPORT_SYMBOL_GPL(kern_skb_fill_checksum);

int kern_skb_map(struct device *device, struct sk_buff *skb, unsigned int skip,
		 struct kern_tx_piece *pieces)
{
	const struct skb_shared_info *shared = skb_shinfo(skb);
	const unsigned int linear = skb_headlen(skb) - skip;
	int count = 0, i;

	if (linear) {
		pieces[0].address = dma_map_single(device, skb->data + skip, linear, DMA_TO_DEVICE);
		pieces[0].length = linear;
		if (dma_mapping_error(device, pieces[0].address))
			return -ENOMEM;
		count = 1;
	}
	for (i = 0; i < shared->nr_frags; i++, count++) {
		const skb_frag_t *frag = &shared->frags[i];

		pieces[count].length = skb_frag_size(frag);
		pieces[count].address =
			skb_frag_dma_map(device, frag, 0, skb_frag_size(frag), DMA_TO_DEVICE);
		if (dma_mapping_error(device, pieces[count].address))
			goto undo;
	}
	return count;

undo:
	while (i-- > 0) {
		count--;
		dma_unmap_page(device, pieces[count].address, pieces[count].length, DMA_TO_DEVICE);
	}
	if (linear)
		dma_unmap_single(device, pieces[0].address, linear, DMA_TO_DEVICE);
	return -ENOMEM;
}
EXPORT_SYMBOL_GPL(kern_skb_map);

void kern_skb_unmap(struct device *device, struct sk_buff *skb, unsigned int skip,
		    const struct kern_tx_piece *pieces)
{
	int i, fragments = skb_shinfo(skb)->nr_frags;

	if (skb_headlen(skb) > skip) {
		dma_unmap_single(device, pieces->address, pieces->length, DMA_TO_DEVICE);
		pieces++;
	}
	for (i = 0; i < fragments; i++, pieces++)
		dma_unmap_page(device, pieces->address, pieces->length, DMA_TO_DEVICE);
}
EXPORT_SYMBOL_GPL(kern_skb_unmap);

void kern_skb_copy(const struct sk_buff *skb, void *to, unsigned int length)
{
	skb_copy_bits(skb, 0, to, length);
}
EXPORT_SYMBOL_GPL(kern_skb_copy);

void *kern_skb_push(struct sk_buff *skb, unsigned int length)
{
	return skb_push(skb, length);
}
EXPORT_SYMBOL_GPL(kern_skb_push);

bool kern_skb_pull(struct sk_buff *skb, unsigned int length, unsigned int leave)
{
	if (unlikely(skb_headlen(skb) < length + leave))
		return false;
	skb->len -= length;
	skb->data += length;
	return true;
}
EXPORT_SYMBOL_GPL(kern_skb_pull);

int kern_skb_cow_head(struct sk_buff *skb, unsigned int headroom)
{
	return skb_cow_head(skb, headroom);
}
EXPORT_SYMBOL_GPL(kern_skb_cow_head);

int kern_skb_linearize(struct sk_buff *skb)
{
	return skb_linearize(skb);
}
EXPORT_SYMBOL_GPL(kern_skb_linearize);

void *kern_skb_control(struct sk_buff *skb)
{
	return skb->cb;
}
EXPORT_SYMBOL_GPL(kern_skb_control);

u16 kern_skb_protocol(const struct sk_buff *skb)
{
	return ntohs(skb->protocol);
}
EXPORT_SYMBOL_GPL(kern_skb_protocol);

int kern_skb_requeue(struct sk_buff *skb, struct net_device *dev)
{
	skb->dev = dev;
	return dev_queue_xmit(skb);
}
EXPORT_SYMBOL_GPL(kern_skb_requeue);

void kern_skb_too_big(struct sk_buff *skb, unsigned int mtu)
{
	/*
	 * The previous owner of the packet has left data in cb, which would be interpreted as IP
	 * options and quoted in the ICMP message.
	 */
	memset(skb->cb, 0, sizeof(skb->cb));
	skb_dst_update_pmtu(skb, mtu);
	if (skb->protocol == htons(ETH_P_IP))
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	else if (IS_ENABLED(CONFIG_IPV6) && skb->protocol == htons(ETH_P_IPV6))
		icmpv6_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
	kfree_skb(skb);
}
EXPORT_SYMBOL_GPL(kern_skb_too_big);

void kern_skb_consume(struct sk_buff *skb, int budget)
{
	napi_consume_skb(skb, budget);
}
EXPORT_SYMBOL_GPL(kern_skb_consume);

void kern_skb_drop(struct sk_buff *skb)
{
	dev_kfree_skb_any(skb);
}
EXPORT_SYMBOL_GPL(kern_skb_drop);

void kern_skb_enqueue(struct kern_skb_queue *queue, struct sk_buff *skb)
{
	skb->next = NULL;
	if (queue->last)
		queue->last->next = skb;
	else
		queue->first = skb;
	queue->last = skb;
	queue->length++;
}
EXPORT_SYMBOL_GPL(kern_skb_enqueue);

struct sk_buff *kern_skb_dequeue(struct kern_skb_queue *queue)
{
	struct sk_buff *skb = queue->first;

	if (!skb)
		return NULL;
	queue->first = skb->next;
	if (!queue->first)
		queue->last = NULL;
	queue->length--;
	skb->next = NULL;
	return skb;
}
EXPORT_SYMBOL_GPL(kern_skb_dequeue);
