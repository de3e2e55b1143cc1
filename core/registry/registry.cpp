// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/log.hpp>
#include <kern/rcu.hpp>
#include "registry.hpp"

namespace registry
{

constinit kern::Static<Registry> instance;

/*
 * Waits until the condition, which is looked at under the lock and may change things when it holds.
 */
template<class Condition>
void Registry::wait(Condition condition)
{
	changed_.wait([&] {
		kern::Guard guard(lock_);
		return condition();
	});
}

/* Is this a call from within a client's add or remove? */
bool Registry::inside_callback()
{
	for (ib_device_registry &device : devices_)
		if (device.worker == kern_context())
			return true;
	return false;
}

/*
 * Calls add of all clients that the device has not met, as its worker, and is its worker no more.
 * The last look and the end of the office are one step, so that no client is left to nobody.
 */
void Registry::introduce(ib_device_registry &device)
{
	while (true) {
		ib_client_registry *next = nullptr;
		{
			kern::Guard guard(lock_);
			if (!device.leaving)
				for (ib_client_registry &client : clients_)
					if (client.number > device.introduced && !client.leaving) {
						next = &client;
						break;
					}
			device.usable = !device.leaving;
			if (next) {
				device.introduced = next->number;
				next->calls++;
			} else {
				device.worker = 0;
			}
		}
		if (!next) {
			changed_.wake_all();
			return;
		}
		call_add(device, *next);
		{
			kern::Guard guard(lock_);
			next->calls--;
		}
		changed_.wake_all();
	}
}

void Registry::call_add(ib_device_registry &device, ib_client_registry &client)
{
	const char *name = client.client.name;
	auto made = kern::make<Pair>(kern::Gfp::kernel, device, client);
	if (!made.ok()) {
		kern_error("%s: no memory to add it to %s\n", device.device.name, name);
		return;
	}
	Pair *pair = made.take().release();
	if (auto inserted = device.by_client.insert(client.number, pair); !inserted.ok()) {
		kern_error("%s: no memory to add it to %s\n", device.device.name, name);
		kern::destroy(pair);
		return;
	}
	{
		kern::Guard guard(lock_);
		device.pairs.push_back(*pair);
		client.pairs.push_back(*pair);
	}
	const int status = client.client.add(&device.device);
	if (status == 0)
		return;

	if (status != -EOPNOTSUPP)
		kern_warning("%s: %s does not take it: %d\n", device.device.name, name, status);
	{
		kern::Guard guard(lock_);
		pair->device_node.unlink();
		pair->client_node.unlink();
	}
	device.by_client.erase(client.number);
	kern::destroy(pair);
}

/* As the device's worker. */
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

kern::Result<> Registry::enlist(kern::Owned<ib_device_registry> owned, const char *name)
{
	ib_device_registry &device = *owned;

	kern::Guard guard(lock_);
	if (!choose_name(device.device, name))
		return kern::Error{-EEXIST};
	device.worker = kern_context();
	device.index = next_index_++;
	devices_.push_back(device);
	// From here on events come in; see ib_dispatch_event().
	__atomic_store_n(&device.device.registry, owned.release(), __ATOMIC_RELEASE);
	return {};
}

void Registry::remove_device(ib_device_registry &device)
{
	const unsigned long self = kern_context();
	{
		kern::Guard guard(lock_);
		// From within a callback it would wait for itself; a registration that fails has
		// made no call yet.
		KERN_WARN_ON(device.usable && inside_callback());
		if (!device.usable)
			device.worker = 0;
		device.leaving = true;
		device.usable = false;
	}
	wait([&] {
		if (device.worker != 0)
			return false;
		device.worker = self;
		return true;
	});
	while (true) {
		Pair *last;
		{
			kern::Guard guard(lock_);
			last = device.pairs.back();
		}
		if (!last)
			break;
		call_remove(*last);
		changed_.wake_all();
	}
	put_device(device);
	changed_.wait([&] { return device.users.load_acquire() == 0; });

	__atomic_store_n(&device.device.registry, nullptr, __ATOMIC_RELEASE);
	kern::rcu::synchronize();
	device.events.stop();
	{
		kern::Guard guard(lock_);
		device.node.unlink();
	}
	changed_.wake_all();
	kern::destroy(&device);
}

/* Who waits for zero frees the device at once, so nothing of it is touched after the decrement. */
void Registry::put_device(ib_device_registry &device)
{
	if (device.users.fetch_sub(1) == 1)
		changed_.wake_all();
}

void Registry::add_client(kern::Owned<ib_client_registry> owned)
{
	ib_client_registry &client = *owned;
	bool nested;
	{
		kern::Guard guard(lock_);
		client.number = ++last_number_;
		client.client.registry = owned.release();
		clients_.push_back(client);
		nested = inside_callback();
	}
	while (true) {
		ib_device_registry *idle = nullptr;
		{
			kern::Guard guard(lock_);
			for (ib_device_registry &device : devices_)
				if (device.introduced < client.number && !device.leaving &&
				    device.worker == 0) {
					device.worker = kern_context();
					idle = &device;
					break;
				}
		}
		if (!idle)
			break;
		introduce(*idle);
	}
	// Two registrations from within callbacks that wait for each other's devices would never
	// end; workers do not wait.
	if (nested)
		return;
	wait([&]() REQUIRES(lock_) {
		for (ib_device_registry &device : devices_)
			if (device.introduced < client.number && !device.leaving)
				return false;
		return client.calls == 0;
	});
}

void Registry::remove_client(ib_client_registry &client)
{
	{
		kern::Guard guard(lock_);
		// It may wait for itself.
		KERN_WARN_ON(inside_callback());
		client.leaving = true;
	}
	while (true) {
		Pair *last;
		wait([&] {
			last = client.pairs.back();
			if (!last)
				return client.calls == 0;
			if (last->device.worker != 0)
				return false;
			last->device.worker = kern_context();
			return true;
		});
		if (!last)
			break;
		ib_device_registry &device = last->device;
		call_remove(*last);
		introduce(device);
	}
	{
		kern::Guard guard(lock_);
		client.node.unlink();
		client.client.registry = nullptr;
	}
	kern::destroy(&client);
}

} // namespace registry
