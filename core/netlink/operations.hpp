// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the table of requests: the required privilege, whether a request addresses one object or
 * all of them, and the function that answers it. Attributes that a request must have are checked by
 * the function that answers it; all others are ignored.
 *
 * While a response is built, its device stays registered, and each object is held only while it is
 * read. Between the parts of a dump nothing is held, and only the position is remembered. So
 * unregistering a device or destroying an object never waits for a program that does not read.
 */
#pragma once
#include <kern/netlink.hpp>
#include <rdma/ib_resources.h>
#include "abi.hpp"

namespace nldev
{

using kern::netlink::Message;
using kern::netlink::Nest;
using kern::netlink::Request;

/* The operations of NETLINK_RDMA sockets. */
extern const kern_netlink_ops operations;

/* A reference to a device, which stays registered as long as the reference exists. */
class Device
{
public:
	/*
	 * Returns the device of a request. Errors: EINVAL if the request specifies no existing
	 * device.
	 */
	static kern::Result<Device> of(const Request &request);
	/*
	 * Returns the first device, beginning with this index, that the requester may use; empty if
	 * there is none.
	 */
	static Device from(u32 index, const Request &request)
	{
		return Device(ib_device_get_from(index, request.net()));
	}

	Device(Device &&other) noexcept : native_(other.native_) { other.native_ = nullptr; }
	Device &operator=(Device &&) = delete;
	~Device()
	{
		if (native_)
			ib_device_put(native_);
	}

	explicit operator bool() const { return native_; }
	ib_device &operator*() const { return *native_; }
	ib_device *operator->() const { return native_; }

	/*
	 * Returns the port of a request. Errors: EINVAL if the request specifies no existing port.
	 */
	kern::Result<u32> port(const Request &request) const;
	/* Writes the attributes that begin each response about the device. */
	void name(Message &message) const;

private:
	explicit Device(ib_device *native) : native_(native) {}

	ib_device *native_;
};

/* Position at which a dump continues. Everything before it has been sent. */
struct Place {
	unsigned long device;
	unsigned long number;
};

/* The result of a dump: complete, or more to report. */
enum class Rest { none, more };

/*
 * Adds as many messages, or entries of one message, as fit. one(number, last) adds the first object
 * with at least this number, stores its number in last, and returns whether there was one. Errors:
 * EMSGSIZE if not even one object fits.
 */
template<class One>
kern::Result<Rest> fill(Message &message, unsigned long &number, One one)
{
	for (bool first = true;; first = false) {
		const void *before = message.mark();
		u32 found = 0;
		if (!one(static_cast<u32>(number), found)) {
			message.rewind(before);
			return Rest::none;
		}
		if (message.full()) {
			message.rewind(before);
			if (first)
				return kern::Error{-EMSGSIZE};
			return Rest::more;
		}
		number = u64{found} + 1;
		/* No object has the greatest number. */
		if (number > ~u32{0})
			return Rest::none;
	}
}

using Answer = kern::Result<> (*)(const Request &request, Message &message);
/* Checks whether a dump request can be answered at all. */
using Check = kern::Result<> (*)(const Request &request);
using Dump = kern::Result<Rest> (*)(const Request &request, Message &message, Place &place);

kern::Result<> get_device(const Request &request, Message &message);
kern::Result<Rest> dump_devices(const Request &request, Message &message, Place &place);
kern::Result<> set_device(const Request &request, Message &message);
kern::Result<> get_port(const Request &request, Message &message);
kern::Result<> check_device(const Request &request);
kern::Result<Rest> dump_ports(const Request &request, Message &message, Place &place);
kern::Result<> get_system(const Request &request, Message &message);
kern::Result<> set_system(const Request &request, Message &message);
kern::Result<> get_node(const Request &request, Message &message);
kern::Result<> get_statistics(const Request &request, Message &message);
kern::Result<> get_statistics_status(const Request &request, Message &message);

kern::Result<> get_summary(const Request &request, Message &message);
kern::Result<Rest> dump_summaries(const Request &request, Message &message, Place &place);
template<ib_resource_kind kind>
kern::Result<> get_resource(const Request &request, Message &message);
template<ib_resource_kind kind>
kern::Result<Rest> dump_resources(const Request &request, Message &message, Place &place);

} // namespace nldev
