// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates the class /sys/class/infiniband when the module is loaded, adds each registered device to
// it, and removes the class when the module is unloaded.
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <rdma/ib_device_name.h>
#include <rdma/ib_sysfs.h>
#include "device.hpp"

using namespace ib_sysfs;

namespace
{

constinit kern::Static<kern::DeviceClass> device_class;

/*
 * All devices, and the port counters that another module provides. The mutex serialises the
 * functions that combine them. Devices are added and removed with the mutex held, so that rename()
 * finds every device that has an entry. No file operation takes the mutex, because the removal of
 * an entry waits for readers of its files.
 */
struct Shown {
	kern::Mutex lock{KERN_LOCK_CLASS("sysfs.shown")};
	kern::List<Device, &Device::node> devices KERN_GUARDED_BY(lock);
	const ib_port_counters *counters KERN_GUARDED_BY(lock) = nullptr;
};
constinit kern::Static<Shown> all;

void show_counters(const ib_port_counters *counters)
{
	kern::Guard guard(all->lock);
	all->counters = counters;
	for (Device &device : all->devices)
		device.show(counters);
}

constexpr ib_port_counters_notifier notifier = {.show = show_counters};

int rename(ib_device *device, const char *name)
{
	kern::Guard guard(all->lock);
	for (Device &shown : all->devices)
		if (shown.is(*device))
			return shown.rename(name).error();
	return 0;
}

constexpr ib_rename_notifier rename_notifier = {.rename = rename};

int add(ib_device *device);

void remove(ib_device *, void *shown)
{
	auto *device = static_cast<Device *>(shown);

	/* After show(nullptr), the module that provides the counters may be unloaded. */
	kern::Guard guard(all->lock);
	device->node.unlink();
	device->show(nullptr);
	kern::destroy(device);
}

constinit ib_client client = {.name = "sysfs", .add = add, .remove = remove, .registry = nullptr};

int add(ib_device *device)
{
	kern::Guard guard(all->lock);
	auto shown = Device::create(*device_class, *device);
	if (!shown)
		return shown.error();
	Device *made = shown.take().release();
	ib_set_client_data(device, &client, made);
	all->devices.push_back(*made);
	made->show(all->counters);
	return 0;
}

kern::Result<> start()
{
	auto made = kern::DeviceClass::create(
		"infiniband", {.abi_version = nullptr, .node_mode = 0, .reports_name = true});
	if (!made) {
		kern_error("class infiniband cannot be made: %d\n", made.error());
		return kern::Error{made.error()};
	}
	device_class.construct(made.take());
	all.construct();
	const auto begun = [&]() -> kern::Result<> {
		KERN_TRY_ERRNO(ib_set_port_counters_notifier(&notifier));
		auto registered = kern::check(ib_set_rename_notifier(&rename_notifier));
		if (registered) {
			registered = kern::check(ib_register_client(&client));
			if (!registered)
				(void)ib_set_rename_notifier(nullptr);
		}
		if (!registered)
			(void)ib_set_port_counters_notifier(nullptr);
		return registered;
	}();
	if (!begun) {
		all.destruct();
		device_class.destruct();
	}
	return begun;
}

} // namespace

extern "C" bool ib_sysfs_shows(ib_device *device)
{
	return ib_get_client_data(device, &client) != nullptr;
}

extern "C" int weft_sysfs_init()
{
	return start().error();
}

extern "C" void weft_sysfs_exit()
{
	ib_unregister_client(&client);
	(void)ib_set_rename_notifier(nullptr);
	(void)ib_set_port_counters_notifier(nullptr);
	all.destruct();
	device_class.destruct();
}
