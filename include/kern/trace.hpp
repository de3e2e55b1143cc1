// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines tracepoints, which tracefs shows as events/weft/NAME. Code that reports by
// kern_trace_NAME() is notified when tracing is enabled or disabled.
//
//	kern::TraceListener watched_{KERN_TRACE_MAD, kern::method<&Port::watch>, this};	// void watch(bool)
#pragma once
#include <kern/abi/trace.h>
#include <kern/method.hpp>

namespace kern
{

class TraceListener
{
public:
	/* Calls the member immediately if the tracepoint is enabled. Context: process. */
	template<auto Member, class T>
	TraceListener(kern_trace_point point, Method<Member>, T *object)
	{
		listener_.point = point;
		listener_.changed = [](kern_trace_listener *listener, bool watched) {
			(static_cast<T *>(listener->context)->*Member)(watched);
		};
		listener_.context = object;
		kern_trace_listen(&listener_);
	}
	~TraceListener() { kern_trace_unlisten(&listener_); }
	TraceListener(const TraceListener &) = delete;
	TraceListener &operator=(const TraceListener &) = delete;

private:
	kern_trace_listener listener_;
};

} // namespace kern
