// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions of include/kern/abi/netdev.h for outgoing packets. All packets are
// linear. A packet is allocated with kern_alloc(), so that a leak is reported. No other code may
// access it while the device owns it.
#include <cerrno>
#include <cstring>
#include <utility>
#include <kern/abi/dma.h>
#include <kern/abi/kunit.h>
#include <kern/abi/memory.h>
#include "failure.hpp"
#include "scheduler.hpp"
#include "netdev.hpp"

using namespace sim;

extern "C" {

void kern_skb_enqueue(kern_skb_queue *queue, sk_buff *skb)
{
	skb->next = nullptr;
	(queue->last ? queue->last->next : queue->first) = skb;
	queue->last = skb;
	queue->length++;
}

sk_buff *kern_skb_dequeue(kern_skb_queue *queue)
{
	sk_buff *const skb = queue->first;

	if (skb) {
		queue->first = skb->next;
		if (!queue->first)
			queue->last = nullptr;
		queue->length--;
	}
	return skb;
}

void kern_skb_drop(sk_buff *skb)
{
	SIM_STEP(skb);
	if (skb->lent)
		fail("a packet is freed while the device owns it",
		     describe(scheduler().current().place));
	kern_free(skb);
}

void kern_skb_consume(sk_buff *skb, int)
{
	kern_skb_drop(skb);
}

void kern_skb_tx_packet(sk_buff *skb, kern_tx_packet *packet)
{
	*packet = {};
	packet->data = skb->data;
	packet->length = packet->linear = skb->length;
}

int kern_skb_map(device *device, sk_buff *skb, unsigned int skip, kern_tx_piece *pieces)
{
	SIM_STEP(skb);
	pieces[0].length = skb->length - skip;
	if (kern_dma_map_single(device, skb->data + skip, pieces[0].length, KERN_DMA_TO_DEVICE,
				&pieces[0].address))
		return -ENOMEM;
	if (std::exchange(skb->lent, true))
		fail("a packet is mapped for DMA twice", describe(scheduler().current().place));
	return 1;
}

void kern_skb_unmap(device *device, sk_buff *skb, unsigned int skip, const kern_tx_piece *pieces)
{
	SIM_STEP(skb);
	if (!std::exchange(skb->lent, false))
		fail("a packet is unmapped that was not mapped",
		     describe(scheduler().current().place));
	kern_dma_unmap_single(device, pieces[0].address, skb->length - skip, KERN_DMA_TO_DEVICE);
}

void *kern_skb_push(sk_buff *skb, unsigned int length)
{
	skb->data -= length;
	skb->length += length;
	return skb->data;
}

bool kern_skb_pull(sk_buff *skb, unsigned int length, unsigned int leave)
{
	if (skb->length < length + leave)
		return false;
	skb->data += length;
	skb->length -= length;
	return true;
}

int kern_skb_linearize(sk_buff *)
{
	return 0;
}

/* Packets have only one owner in the simulation, so there is nothing to copy. */
int kern_skb_cow_head(sk_buff *, unsigned int)
{
	return 0;
}

/* No packet requests a checksum in the simulation. */
void kern_skb_checksum_place(const sk_buff *, unsigned int *start, unsigned int *offset)
{
	*start = *offset = 0;
}

int kern_skb_fill_checksum(sk_buff *)
{
	return 0;
}

void *kern_skb_control(sk_buff *skb)
{
	return skb->control;
}

void kern_skb_too_big(sk_buff *skb, unsigned int)
{
	kern_skb_drop(skb);
}

int kern_kunit_netdev_send(net_device *dev, const void *address, u16 protocol, unsigned int length)
{
	constexpr unsigned int headroom = 64;
	auto *skb = static_cast<sk_buff *>(
		kern_alloc(sizeof(sk_buff) + headroom + length, KERN_GFP_KERNEL | KERN_GFP_ZERO));

	if (!skb)
		return -ENOMEM;
	skb->data = reinterpret_cast<u8 *>(skb + 1) + headroom;
	skb->length = length;
	skb->protocol = protocol;
	std::memset(skb->data, 0x5a, length);
	if (dev->ops->header_create(skb, dev, protocol, address, nullptr, length) < 0) {
		kern_skb_drop(skb);
		return -EINVAL;
	}
	return kern_skb_requeue(skb, dev);
}
}
