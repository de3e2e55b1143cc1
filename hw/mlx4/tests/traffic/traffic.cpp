// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements weft_traffic.ko, a module that guest tests control.
// /sys/kernel/debug/weft_traffic/control executes one command line for each write, and returns its
// output when read:
//
//	open id=0 type=rc depth=64 size=65536 srq=0	->  qpn=… lid=… addr=… rkey=…
//	connect id=0 lid=… qpn=…
//	post id=0 count=16 size=4096
//	send id=0 op=write count=8 size=4096 addr=… rkey=…	->  done=8 failed=0 …
//	receive id=0 count=16 size=4096 seed=0		->  good=16 failed=0
//
// The status of the write is that of the command. The module uses only the verbs, so it works with
// any device: dev= is its index in the order of registration.
#include <kern/debugfs.hpp>
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include "drain.hpp"
#include "endpoint.hpp"
#include "sharing.hpp"

namespace traffic
{

constinit kern::Atomic<u32> removals{0};

namespace
{

constexpr unsigned int max_endpoints = 64;
constexpr unsigned int max_devices = 8;

class Control
{
public:
	Control() : lock_(KERN_LOCK_CLASS("traffic.control")) { file_.add("control", directory_); }

	int add_device(ib_device *device)
	{
		kern::Guard guard(lock_);
		for (ib_device *&place : devices_) {
			if (!place) {
				place = device;
				ib_event_handler &handler = handlers_[&place - devices_];
				INIT_IB_EVENT_HANDLER(&handler, device, handle_event);
				ib_register_event_handler(&handler);
				return 0;
			}
		}
		return -ENOSPC;
	}
	/* Destroys the endpoints on the device (LOCK-10). */
	void remove_device(ib_device *device)
	{
		removals.fetch_add(1);
		kern::Guard guard(lock_);
		removals.fetch_sub(1);
		for (unsigned int i = 0; i < max_endpoints; i++)
			if (endpoints_[i] && owners_[i] == device)
				endpoints_[i].reset();
		for (ib_device *&place : devices_) {
			if (place != device)
				continue;
			ib_unregister_event_handler(&handlers_[&place - devices_]);
			place = nullptr;
		}
	}

private:
	static void handle_event(ib_event_handler *, ib_event *event);
	int write(const char *text, size_t size)
	{
		kern::Guard guard(lock_);
		answer_.used = 0;
		answer_.text[0] = 0;
		const auto done = execute(Arguments(text));
		return done.error();
	}
	void show(kern::debugfs::Output &out)
	{
		kern::Guard guard(lock_);
		out.print("%s\n", answer_.text);
	}

	kern::Result<> execute(const Arguments &arguments)
	{
		const u64 id = arguments.number("id");
		const u64 device = arguments.number("dev");
		if (id >= max_endpoints || device >= max_devices)
			return kern::Error{-EINVAL};
		kern::Owned<Endpoint> &endpoint = endpoints_[id];
		if (arguments.command("open")) {
			if (endpoint || !devices_[device])
				return kern::Error{-EBUSY};
			endpoint = KERN_TRY(Endpoint::create(devices_[device], arguments, answer_));
			owners_[id] = devices_[device];
			return {};
		}
		if (arguments.command("events")) {
			events_.describe(answer_);
			return {};
		}
		if (arguments.command("drain"))
			return devices_[device] ? drain(devices_[device], arguments, answer_)
						: kern::Result<>(kern::Error{-ENODEV});
		if (arguments.command("share"))
			return devices_[device] ? share(devices_[device], arguments, answer_)
						: kern::Result<>(kern::Error{-ENODEV});
		if (!endpoint)
			return kern::Error{-ENOENT};
		if (arguments.command("close")) {
			endpoint.reset();
			return {};
		}
		if (arguments.command("connect"))
			return endpoint->connect(arguments);
		if (arguments.command("post"))
			return endpoint->post_receives(arguments);
		if (arguments.command("send"))
			return endpoint->send(arguments, answer_);
		if (arguments.command("receive"))
			return endpoint->receive(arguments, answer_);
		if (arguments.command("verify"))
			return endpoint->verify(arguments, answer_);
		if (arguments.command("word"))
			return endpoint->read_word(arguments, answer_);
		if (arguments.command("state"))
			return endpoint->state(arguments, answer_);
		if (arguments.command("limit"))
			return endpoint->limit(arguments);
		if (arguments.command("resize"))
			return endpoint->resize(arguments);
		if (arguments.command("register"))
			return endpoint->register_fast(arguments, answer_);
		if (arguments.command("invalidate"))
			return endpoint->invalidate(arguments, answer_);
		if (arguments.command("bind"))
			return endpoint->bind(arguments, answer_);
		if (arguments.command("moderate"))
			return endpoint->moderate(arguments);
		if (arguments.command("burst"))
			return endpoint->burst(arguments, answer_);
		if (arguments.command("notify"))
			return endpoint->notify(arguments, answer_);
		if (arguments.command("arm"))
			return endpoint->arm(arguments);
		if (arguments.command("delay"))
			return endpoint->delay(arguments, answer_);
		return kern::Error{-EINVAL};
	}

	kern::Mutex lock_;
	Answer answer_;
	ib_device *devices_[max_devices] = {};
	ib_event_handler handlers_[max_devices] = {};
	/*
	 * Events of devices and ports, including devices that are gone, because the removal of a
	 * device is among them.
	 */
	EventCounts events_;
	kern::Owned<Endpoint> endpoints_[max_endpoints];
	ib_device *owners_[max_endpoints] = {};
	kern::debugfs::Directory directory_{"weft_traffic"};
	kern::debugfs::File file_{kern::method<&Control::show>, kern::method<&Control::write>,
				  this};
};

constinit kern::Static<Control> control;

void Control::handle_event(ib_event_handler *, ib_event *event)
{
	control->events_.add(event->event);
}

constinit ib_client client = {
	.name = "weft_traffic",
	.add = [](ib_device *device) { return control->add_device(device); },
	.remove = [](ib_device *device, void *) { control->remove_device(device); },
	.registry = nullptr,
};

} // namespace
} // namespace traffic

extern "C" int weft_traffic_init()
{
	traffic::control.construct();
	const int registered = ib_register_client(&traffic::client);
	if (registered)
		traffic::control.destruct();
	return registered;
}

extern "C" void weft_traffic_exit()
{
	ib_unregister_client(&traffic::client);
	traffic::control.destruct();
}
