/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements the tracepoints of a device's data path. While tracing is disabled, the device has its
 * driver's own methods, and tracing costs no instruction. While it is enabled, the device has
 * wrappers that report the call and then call the driver's method.
 */
#pragma once
#include <kern/trace.hpp>
#include <rdma/ib_verbs.h>

namespace verbs
{

class DeviceTrace
{
public:
	/*
	 * Traces from construction to destruction. The object must be destroyed after the last use
	 * of the device. Context: process.
	 */
	explicit DeviceTrace(ib_device &device) : drivers_(device) {}
	DeviceTrace(const DeviceTrace &) = delete;
	DeviceTrace &operator=(const DeviceTrace &) = delete;

private:
	void watch_sends(bool watched);
	void watch_completions(bool watched);
	static int post_send(ib_qp *qp, const ib_send_wr *wr, const ib_send_wr **bad_wr);
	static int poll_cq(ib_cq *cq, int count, ib_wc *wcs);

	/*
	 * The driver's own methods. They are restored when tracing is disabled, because the device
	 * may be registered again.
	 */
	struct Drivers {
		explicit Drivers(ib_device &device);
		~Drivers();
		Drivers(const Drivers &) = delete;
		Drivers &operator=(const Drivers &) = delete;

		ib_device &device;
		decltype(ib_device_ops::post_send) const post_send;
		decltype(ib_device_ops::poll_cq) const poll_cq;
	};

	const Drivers drivers_;
	/* Declared last, because the constructors may call back immediately. */
	kern::TraceListener sends_{KERN_TRACE_POST_SEND, kern::method<&DeviceTrace::watch_sends>,
				   this};
	kern::TraceListener completions_{KERN_TRACE_COMPLETION,
					 kern::method<&DeviceTrace::watch_completions>, this};
};

} // namespace verbs
