// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/log.hpp>
#include <kern/rcu.hpp>
#include "registry.hpp"

namespace registry
{

constinit kern::Static<Registry> instance;

/* Returns true if called from a client's add or remove. */
bool Registry::inside_callback()
{
	for (ib_device_registry &device : devices_)
		if (device.worker == kern_context())
			return true;
	return false;
}

/*
 * Called by the device's worker: calls add of all clients that have not been added to the device,
 * and then gives up the role of the worker. The last check and giving up the role are one locked
 * step, so that no client is missed.
 */
kern::Result<> Registry::add_client_contexts(ib_device_registry &device)
{
	while (true) {
		ib_client_registry *next = nullptr;
		int status = 0;
		{
			kern::Guard guard(lock_);
			if (!device.leaving)
				for (ib_client_registry &client : clients_)
					if (client.number > device.last_client && !client.leaving) {
						next = &client;
						break;
					}
			device.usable = !device.leaving;
			if (next) {
				device.last_client = next->number;
				next->calls++;
			} else {
				status = std::exchange(device.status, 0);
				device.registering = false;
				device.worker = 0;
			}
		}
		if (!next) {
			workers_.release();
			changed_.wake_all();
			return kern::check(status);
		}
		const kern::Result<> added = call_add(device, *next);
		{
			kern::Guard guard(lock_);
			next->calls--;
			if (!added)
				note_failure(device, *next, added.error());
		}
		changed_.wake_all();
	}
}

/*
 * Records that memory ran out for a client and a device. The error is returned by the registration
 * of the client or, if that has returned already, of the device. If both have returned, it is only
 * logged.
 */
void Registry::note_failure(ib_device_registry &device, ib_client_registry &client, int status)
{
	if (client.registering)
		client.status = status;
	else if (device.registering)
		device.status = status;
	else
		kern_error("%s: no memory to add it to %s\n", device.device.name,
			   client.client.name);
}

/*
 * Errors: ENOMEM; add has not been called in this case. An error that add itself returns is only
 * logged.
 */
kern::Result<> Registry::call_add(ib_device_registry &device, ib_client_registry &client)
{
	const char *name = client.client.name;
	Pair *pair = KERN_TRY(kern::make<Pair>(kern::Gfp::kernel, device, client)).release();
	if (auto inserted = device.by_client.insert(client.number, pair); !inserted.ok()) {
		kern::destroy(pair);
		return kern::Error{inserted.error()};
	}
	{
		kern::Guard guard(lock_);
		device.pairs.push_back(*pair);
		client.pairs.push_back(*pair);
	}
	const int status = client.client.add(&device.device);
	if (status == 0)
		return {};

	if (status != -EOPNOTSUPP)
		kern_warning("%s: %s does not take it: %d\n", device.device.name, name, status);
	{
		kern::Guard guard(lock_);
		pair->device_node.unlink();
		pair->client_node.unlink();
	}
	device.by_client.erase(client.number);
	kern::destroy(pair);
	return {};
}

/* Called by the device's worker. */
void Registry::call_remove(Pair &pair)
{
	pair.client.client.remove(&pair.device.device, pair.data.load_relaxed());
	pair.device.by_client.erase(pair.client.number);
	{
		kern::Guard guard(lock_);
		pair.device_node.unlink();
		pair.client_node.unlink();
	}
	kern::destroy(&pair);
}

/* Removes the clients in the reverse order of add. Called by the device's worker. */
void Registry::remove_clients(ib_device_registry &device)
{
	while (true) {
		Pair *last;
		{
			kern::Guard guard(lock_);
			last = device.pairs.back();
		}
		if (!last)
			return;
		call_remove(*last);
		changed_.wake_all();
	}
}

kern::Result<> Registry::enlist(kern::Owned<ib_device_registry> owned, const char *name)
{
	ib_device_registry &device = *owned;

	kern::Guard guard(lock_);
	if (!choose_name(device.device, name))
		return kern::Error{-EEXIST};
	device.worker = kern_context();
	workers_.acquired();
	device.index = next_index_++;
	devices_.push_back(device);
	// Events are accepted from now on; see ib_dispatch_event().
	kern::rcu::assign(device.device.registry, owned.release());
	return {};
}

bool Registry::remove_device(ib_device_registry &device)
{
	const unsigned long self = kern_context();
	bool owned;
	{
		kern::Guard guard(lock_);
		// If a registration fails before any client was called, the caller is still the
		// worker.
		owned = device.worker == self && device.registering && !device.usable &&
			!device.leaving;
		if (!owned && device.worker == self)
			return false;
		device.leaving = true;
		device.usable = false;
	}
	if (!owned) {
		workers_.acquire();
		wait([&] {
			if (device.worker != 0)
				return false;
			device.worker = self;
			return true;
		});
	}
	remove_clients(device);
	workers_.release();
	put_device(device);
	changed_.wait([&] { return device.users.load_acquire() == 0; });

	kern::rcu::assign(device.device.registry, nullptr);
	kern::rcu::synchronize();
	device.events.stop();
	{
		kern::Guard guard(lock_);
		device.node.unlink();
	}
	changed_.wake_all();
	kern::destroy(&device);
	return true;
}

/*
 * The waiting task may free the device as soon as the count is 0, so do not access it after the
 * decrement.
 */
void Registry::put_device(ib_device_registry &device)
{
	if (device.users.fetch_sub(1) == 1)
		changed_.wake_all();
}

kern::Result<> Registry::add_client(kern::Owned<ib_client_registry> owned)
{
	ib_client_registry &client = *owned;
	bool nested;
	{
		kern::Guard guard(lock_);
		nested = inside_callback();
		client.number = ++last_number_;
		client.registering = !nested;
		client.client.registry = owned.release();
		clients_.push_back(client);
	}
	while (true) {
		ib_device_registry *idle = nullptr;
		{
			kern::Guard guard(lock_);
			for (ib_device_registry &device : devices_)
				if (device.last_client < client.number && !device.leaving &&
				    device.worker == 0) {
					device.worker = kern_context();
					workers_.acquired();
					idle = &device;
					break;
				}
		}
		if (!idle)
			break;
		// The device is registered, so a failure concerns this registration, or that of
		// another client that is being registered.
		(void)add_client_contexts(*idle);
	}
	// A nested registration must not wait: two registrations from callbacks that wait for each
	// other's devices would never return.
	if (nested)
		return {};
	int status = 0;
	workers_.wait();
	wait([&]() KERN_REQUIRES(lock_) {
		for (ib_device_registry &device : devices_)
			if (device.last_client < client.number && !device.leaving)
				return false;
		if (client.calls > 0)
			return false;
		client.registering = false;
		status = client.status;
		return true;
	});
	if (status)
		end_client(client);
	return kern::check(status);
}

bool Registry::remove_client(ib_client_registry &client)
{
	{
		kern::Guard guard(lock_);
		if (inside_callback())
			return false;
	}
	end_client(client);
	return true;
}

void Registry::end_client(ib_client_registry &client)
{
	{
		kern::Guard guard(lock_);
		client.leaving = true;
	}
	while (true) {
		Pair *last;
		workers_.acquire();
		wait([&] {
			last = client.pairs.back();
			if (!last)
				return client.calls == 0;
			if (last->device.worker != 0)
				return false;
			last->device.worker = kern_context();
			return true;
		});
		if (!last) {
			workers_.release();
			break;
		}
		ib_device_registry &device = last->device;
		call_remove(*last);
		// See add_client() for the ignored result.
		(void)add_client_contexts(device);
	}
	{
		kern::Guard guard(lock_);
		client.node.unlink();
		client.client.registry = nullptr;
	}
	kern::destroy(&client);
}

} // namespace registry
