/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares tracepoints of weft's modules. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* Tracepoints in tracefs, each as events/weft/NAME. */
enum kern_trace_point {
	KERN_TRACE_POST_SEND,
	KERN_TRACE_DOORBELL,
	KERN_TRACE_COMPLETION,
	KERN_TRACE_MAD,
	KERN_TRACE_POINT_COUNT,
};

/*
 * A listener is called when the first user enables a tracepoint and when the last one disables it,
 * and at registration if it is enabled. So a disabled tracepoint costs nothing: the owner of the
 * listener inserts the reporting code into the data path, and removes it again.
 */
struct kern_trace_listener {
	struct {
		void *next, *prev;
	} links;
	enum kern_trace_point point;
	void (*changed)(struct kern_trace_listener *listener, bool watched);
	void *context;
};

/*
 * Context: process. After kern_trace_unlisten() has returned, the listener is not called any more.
 */
void kern_trace_listen(struct kern_trace_listener *listener);
void kern_trace_unlisten(struct kern_trace_listener *listener);

/* Report to a tracepoint. Context: any. */
void kern_trace_post_send(const char *device, u32 qpn, u32 opcode, u32 bytes);
void kern_trace_doorbell(const char *device, u32 qpn);
void kern_trace_completion(const char *device, u32 qpn, u32 opcode, u32 status, u32 bytes);

struct kern_trace_mad {
	u32 port;
	u32 qpn;
	u8 mgmt_class;
	u8 method;
	u16 attribute;
	u64 transaction;
	/* For a sent MAD, its status (enum ib_wc_status); for a received MAD, the source LID. */
	u32 status;
	u32 lid;
};
void kern_trace_mad_sent(const char *device, const struct kern_trace_mad *mad);
void kern_trace_mad_received(const char *device, const struct kern_trace_mad *mad);

/*
 * Reports an asynchronous event: its type and name, and the number of the port or object that it
 * concerns.
 */
void kern_trace_async_event(const char *device, u32 type, const char *name, u32 number);

KERN_C_END
