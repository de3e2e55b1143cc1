// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Of include/kern/abi/netdev.h what packets in queues need. A packet is memory of kern_alloc(), of which nothing but its place in a queue is known here;
// so one that is forgotten is reported as memory that is left.
#include <kern/abi/memory.h>
#include <kern/abi/netdev.h>

struct sk_buff {
	sk_buff *next;
};

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
	kern_free(skb);
}
}
