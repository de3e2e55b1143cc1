// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Moves devices between network namespaces, and shares them or assigns each to one.
#include <rdma/ib_namespaces.h>
#include "registry.hpp"

namespace registry
{

kern::Result<> Registry::move_device(ib_device_registry &device, u64 from, u64 to)
{
	const unsigned long self = kern_context();
	bool own = false;

	{
		kern::Guard guard(lock_);
		if (device.worker == self)
			return kern::Error{-EDEADLK};
	}
	workers_.acquire();
	wait([&] {
		if (device.leaving || device.net.load_relaxed() != from)
			return true;
		if (device.worker != 0)
			return false;
		device.worker = self;
		device.usable = false;
		return own = true;
	});
	if (!own) {
		workers_.release();
		return kern::Error{-ENODEV};
	}
	remove_clients(device);
	{
		kern::Guard guard(lock_);
		device.net.store_relaxed(to);
		device.last_client = 0;
	}
	// As after a registration: if there is no memory for a client, that is logged.
	return add_client_contexts(device);
}

kern::Result<> Registry::set_shared(bool shared)
{
	kern::Guard guard(lock_);
	if (shared == this->shared())
		return {};
	if (nets_ > 0)
		return kern::Error{-EBUSY};
	shared_.store_relaxed(shared);
	return {};
}

void Registry::net_begun()
{
	kern::Guard guard(lock_);
	nets_++;
}

/*
 * Moves the devices of a namespace that is being destroyed to the initial one. No device can be
 * moved into it any more, because that needs a reference to it. A device that is being removed is
 * not found.
 */
void Registry::net_ended(u64 net)
{
	while (ib_device *device = find_device([=](const ib_device_registry &state) {
		       return state.net.load_relaxed() == net;
	       })) {
		(void)move_device(*device->registry, net, KERN_NET_INITIAL);
		ib_device_put(device);
	}
	kern::Guard guard(lock_);
	nets_--;
}

} // namespace registry

extern "C" {

bool ib_devices_are_shared(void)
{
	return registry::instance->shared();
}

int ib_share_devices(bool shared)
{
	KERN_MIGHT_SLEEP();
	return registry::instance->set_shared(shared).error();
}

bool ib_device_in_net(const ib_device *device, u64 net)
{
	return registry::instance->accessible(*device->registry, net);
}

int ib_move_device(ib_device *device, u64 from, u64 to)
{
	KERN_MIGHT_SLEEP();
	if (ib_devices_are_shared())
		return -EOPNOTSUPP;
	return registry::instance->move_device(*device->registry, from, to).error();
}

} // extern "C"
