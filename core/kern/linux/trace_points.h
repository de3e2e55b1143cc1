/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines weft's tracepoints, which tracefs shows as events/weft/NAME. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM weft

#if !defined(WEFT_TRACE_POINTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define WEFT_TRACE_POINTS_H

#include <linux/tracepoint.h>
#include <kern/abi/trace.h>

#define WEFT_TRACE_NAME 16

/* These functions are called when a tracepoint is enabled or disabled. */
int kern_trace_post_send_on(void);
void kern_trace_post_send_off(void);
int kern_trace_doorbell_on(void);
void kern_trace_doorbell_off(void);
int kern_trace_completion_on(void);
void kern_trace_completion_off(void);
int kern_trace_mad_on(void);
void kern_trace_mad_off(void);

/* clang-format would format these macros like function calls. */
// clang-format off
TRACE_EVENT_FN(post_send,
	TP_PROTO(const char *device, u32 qpn, u32 opcode, u32 bytes),
	TP_ARGS(device, qpn, opcode, bytes),
	TP_STRUCT__entry(
		__array(char, device, WEFT_TRACE_NAME)
		__field(u32, qpn)
		__field(u32, opcode)
		__field(u32, bytes)),
	TP_fast_assign(
		strscpy(__entry->device, device, WEFT_TRACE_NAME);
		__entry->qpn = qpn;
		__entry->opcode = opcode;
		__entry->bytes = bytes;),
	TP_printk("%s QP %#x opcode %u, %u bytes", __entry->device, __entry->qpn, __entry->opcode, __entry->bytes),
	kern_trace_post_send_on, kern_trace_post_send_off);

TRACE_EVENT_FN(doorbell,
	TP_PROTO(const char *device, u32 qpn),
	TP_ARGS(device, qpn),
	TP_STRUCT__entry(
		__array(char, device, WEFT_TRACE_NAME)
		__field(u32, qpn)),
	TP_fast_assign(
		strscpy(__entry->device, device, WEFT_TRACE_NAME);
		__entry->qpn = qpn;),
	TP_printk("%s QP %#x", __entry->device, __entry->qpn),
	kern_trace_doorbell_on, kern_trace_doorbell_off);

TRACE_EVENT_FN(completion,
	TP_PROTO(const char *device, u32 qpn, u32 opcode, u32 status, u32 bytes),
	TP_ARGS(device, qpn, opcode, status, bytes),
	TP_STRUCT__entry(
		__array(char, device, WEFT_TRACE_NAME)
		__field(u32, qpn)
		__field(u32, opcode)
		__field(u32, status)
		__field(u32, bytes)),
	TP_fast_assign(
		strscpy(__entry->device, device, WEFT_TRACE_NAME);
		__entry->qpn = qpn;
		__entry->opcode = opcode;
		__entry->status = status;
		__entry->bytes = bytes;),
	TP_printk("%s QP %#x opcode %u status %u, %u bytes", __entry->device, __entry->qpn, __entry->opcode, __entry->status, __entry->bytes),
	kern_trace_completion_on, kern_trace_completion_off);

DECLARE_EVENT_CLASS(mad,
	TP_PROTO(const char *device, const struct kern_trace_mad *mad),
	TP_ARGS(device, mad),
	TP_STRUCT__entry(
		__array(char, device, WEFT_TRACE_NAME)
		__field(u32, port)
		__field(u32, qpn)
		__field(u8, mgmt_class)
		__field(u8, method)
		__field(u16, attribute)
		__field(u64, transaction)
		__field(u32, status)
		__field(u32, lid)),
	TP_fast_assign(
		strscpy(__entry->device, device, WEFT_TRACE_NAME);
		__entry->port = mad->port;
		__entry->qpn = mad->qpn;
		__entry->mgmt_class = mad->mgmt_class;
		__entry->method = mad->method;
		__entry->attribute = mad->attribute;
		__entry->transaction = mad->transaction;
		__entry->status = mad->status;
		__entry->lid = mad->lid;),
	TP_printk("%s port %u QP %u class %#x method %#x attribute %#x transaction %#llx status %u LID %u", __entry->device, __entry->port,
		  __entry->qpn, __entry->mgmt_class, __entry->method, __entry->attribute, __entry->transaction, __entry->status, __entry->lid));

DEFINE_EVENT_FN(mad, mad_sent, TP_PROTO(const char *device, const struct kern_trace_mad *mad), TP_ARGS(device, mad),
	kern_trace_mad_on, kern_trace_mad_off);

DEFINE_EVENT_FN(mad, mad_received, TP_PROTO(const char *device, const struct kern_trace_mad *mad), TP_ARGS(device, mad),
	kern_trace_mad_on, kern_trace_mad_off);

TRACE_EVENT(async_event,
	TP_PROTO(const char *device, u32 type, const char *name, u32 number),
	TP_ARGS(device, type, name, number),
	TP_STRUCT__entry(
		__array(char, device, WEFT_TRACE_NAME)
		__field(u32, type)
		__array(char, name, 32)
		__field(u32, number)),
	TP_fast_assign(
		strscpy(__entry->device, device, WEFT_TRACE_NAME);
		__entry->type = type;
		strscpy(__entry->name, name, 32);
		__entry->number = number;),
	TP_printk("%s event %u (%s) of %#x", __entry->device, __entry->type, __entry->name, __entry->number));
// clang-format on

#endif

// A path, not an expression.
// clang-format off
#undef TRACE_INCLUDE_PATH
/* The compiler defines linux, which is a part of the path. */
#undef linux
#define TRACE_INCLUDE_PATH ../core/kern/linux
// clang-format on
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace_points
#include <trace/define_trace.h>
