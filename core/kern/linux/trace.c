// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements weft's tracepoints, and notifies C++ code when a tracepoint is enabled or disabled
// (include/kern/abi/trace.h).
#include <linux/container_of.h>
#include <linux/export.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <kern/abi/trace.h>

#define CREATE_TRACE_POINTS
#include "trace_points.h"

static_assert(sizeof(struct list_head) == sizeof(((struct kern_trace_listener *)0)->links));

static DEFINE_MUTEX(lock);
static LIST_HEAD(listeners);
/* Number of tracepoints of each kind that are enabled. There are two for MADs. */
static unsigned int watched[KERN_TRACE_POINT_COUNT];

static struct list_head *links_of(struct kern_trace_listener *listener)
{
	return (struct list_head *)&listener->links;
}

static void notify(enum kern_trace_point point, bool is_watched)
{
	struct kern_trace_listener *listener;
	struct list_head *at;

	list_for_each(at, &listeners)
	{
		listener = container_of((void *)at, struct kern_trace_listener, links);
		if (listener->point == point)
			listener->changed(listener, is_watched);
	}
}

static int begin(enum kern_trace_point point)
{
	mutex_lock(&lock);
	if (watched[point]++ == 0)
		notify(point, true);
	mutex_unlock(&lock);
	return 0;
}

static void end(enum kern_trace_point point)
{
	mutex_lock(&lock);
	if (--watched[point] == 0)
		notify(point, false);
	mutex_unlock(&lock);
}

int kern_trace_post_send_on(void)
{
	return begin(KERN_TRACE_POST_SEND);
}

void kern_trace_post_send_off(void)
{
	end(KERN_TRACE_POST_SEND);
}

int kern_trace_doorbell_on(void)
{
	return begin(KERN_TRACE_DOORBELL);
}

void kern_trace_doorbell_off(void)
{
	end(KERN_TRACE_DOORBELL);
}

int kern_trace_completion_on(void)
{
	return begin(KERN_TRACE_COMPLETION);
}

void kern_trace_completion_off(void)
{
	end(KERN_TRACE_COMPLETION);
}

int kern_trace_mad_on(void)
{
	return begin(KERN_TRACE_MAD);
}

void kern_trace_mad_off(void)
{
	end(KERN_TRACE_MAD);
}

void kern_trace_listen(struct kern_trace_listener *listener)
{
	mutex_lock(&lock);
	list_add_tail(links_of(listener), &listeners);
	if (watched[listener->point])
		listener->changed(listener, true);
	mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(kern_trace_listen);

void kern_trace_unlisten(struct kern_trace_listener *listener)
{
	mutex_lock(&lock);
	list_del(links_of(listener));
	mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(kern_trace_unlisten);

void kern_trace_post_send(const char *device, u32 qpn, u32 opcode, u32 bytes)
{
	trace_post_send(device, qpn, opcode, bytes);
}
EXPORT_SYMBOL_GPL(kern_trace_post_send);

void kern_trace_doorbell(const char *device, u32 qpn)
{
	trace_doorbell(device, qpn);
}
EXPORT_SYMBOL_GPL(kern_trace_doorbell);

void kern_trace_completion(const char *device, u32 qpn, u32 opcode, u32 status, u32 bytes)
{
	trace_completion(device, qpn, opcode, status, bytes);
}
EXPORT_SYMBOL_GPL(kern_trace_completion);

void kern_trace_mad_sent(const char *device, const struct kern_trace_mad *mad)
{
	trace_mad_sent(device, mad);
}
EXPORT_SYMBOL_GPL(kern_trace_mad_sent);

void kern_trace_mad_received(const char *device, const struct kern_trace_mad *mad)
{
	trace_mad_received(device, mad);
}
EXPORT_SYMBOL_GPL(kern_trace_mad_received);

void kern_trace_async_event(const char *device, u32 type, const char *name, u32 number)
{
	trace_async_event(device, type, name, number);
}
EXPORT_SYMBOL_GPL(kern_trace_async_event);
