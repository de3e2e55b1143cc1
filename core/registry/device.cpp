// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the functions that drivers call: the life cycle of a device from allocation to
// release.
#include <kern/log.hpp>
#include <kern/rcu.hpp>
#include <rdma/ib_resources.h>
#include "../verbs/verbs.hpp"
#include "registry.hpp"

namespace
{

/* The number of ports in NodeInfo has 8 bits, and port number 255 is reserved (IBA 14.2.5.3). */
constexpr u32 max_ports = 254;

void end_device(ib_device &device)
{
	if (registry::instance->remove_device(*device.registry))
		verbs::detach_device(device);
	else
		verbs::refuse_from_callback(device.name, "unregister this device");
}

kern::Result<> add_device(ib_device &device, const char *name)
{
	if (!registry::valid_name(name, 1) || device.phys_port_cnt > max_ports)
		return kern::Error{-EINVAL};
	auto state = KERN_TRY(kern::make<ib_device_registry>(kern::Gfp::kernel, device));
	KERN_TRY(state->events.create_reserve(device.phys_port_cnt));
	// Enlist the device before filling its cache, so that no event between the two is lost.
	KERN_TRY(registry::instance->enlist(std::move(state), name));
	if (auto attached = verbs::attach_device(device); !attached.ok()) {
		(void)registry::instance->remove_device(*device.registry);
		return kern::Error{attached.error()};
	}
	device.registry->events.start();
	const auto added = registry::instance->add_client_contexts(*device.registry);
	if (!added)
		end_device(device);
	return added;
}

} // namespace

extern "C" {

ib_device *_ib_alloc_device(size_t size)
{
	KERN_MIGHT_SLEEP();
	if (size < sizeof(ib_device))
		return nullptr;
	return static_cast<ib_device *>(
		kern_alloc(size, static_cast<unsigned int>(kern::Gfp::kernel | kern::Gfp::zero)));
}

void ib_dealloc_device(ib_device *device)
{
	KERN_MIGHT_SLEEP();
	// Leak the device rather than free it while clients still use it.
	if (device && !KERN_WARN_ON(device->registry))
		kern_free(device);
}

void ib_set_device_ops(ib_device *device, const ib_device_ops *ops)
{
	// All members are one word: pointers or sizes.
	using Word = unsigned long;
	static_assert(sizeof(ib_device_ops) % sizeof(Word) == 0);
	const auto *from = reinterpret_cast<const Word *>(ops);
	auto *to = reinterpret_cast<Word *>(&device->ops);

	for (size_t i = 0; i < sizeof(ib_device_ops) / sizeof(Word); i++)
		if (from[i])
			to[i] = from[i];
}

int ib_register_device(ib_device *device, const char *name, struct device *dma_device)
{
	KERN_MIGHT_SLEEP();
	if (device->registry)
		return -EEXIST;
	device->dma_device = dma_device;
	return add_device(*device, name).error();
}

void ib_unregister_device(ib_device *device)
{
	KERN_MIGHT_SLEEP();
	if (KERN_WARN_ON(!device->registry))
		return;
	end_device(*device);
}

bool ib_device_try_get(ib_device *device)
{
	/* The state is freed after a grace period; see remove_device(). */
	kern::rcu::ReadGuard reading;
	ib_device_registry *const state = kern::rcu::dereference(device->registry);
	if (!state)
		return false;
	unsigned int users = state->users.load_relaxed();

	do {
		if (users == 0 || kern::read_once(state->leaving))
			return false;
	} while (!state->users.compare_exchange(users, users + 1));
	return true;
}

void ib_device_put(ib_device *device)
{
	registry::instance->put_device(*device->registry);
}

ib_device *ib_device_get_by_name(const char *name)
{
	KERN_MIGHT_SLEEP();
	return registry::instance->find_device([=](const ib_device_registry &state) {
		return __builtin_strcmp(state.device.name, name) == 0;
	});
}

u32 ib_device_index(const ib_device *device)
{
	return device->registry->index;
}

ib_device *ib_device_get_from(u32 index, u64 net)
{
	KERN_MIGHT_SLEEP();
	return registry::instance->find_device([=](const ib_device_registry &state) {
		return state.index >= index && registry::instance->accessible(state, net);
	});
}

} // extern "C"
