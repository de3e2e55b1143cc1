// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the tracepoints of include/kern/abi/trace.h. Tracing is never enabled, so listeners
// are never called.
#include <kern/abi/trace.h>

extern "C" {

void kern_trace_listen(struct kern_trace_listener *) {}

void kern_trace_unlisten(struct kern_trace_listener *) {}

void kern_trace_post_send(const char *, u32, u32, u32) {}

void kern_trace_doorbell(const char *, u32) {}

void kern_trace_completion(const char *, u32, u32, u32, u32) {}

void kern_trace_mad_sent(const char *, const struct kern_trace_mad *) {}

void kern_trace_mad_received(const char *, const struct kern_trace_mad *) {}

void kern_trace_async_event(const char *, u32, const char *, u32) {}
}
