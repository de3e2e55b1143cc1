// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/log.hpp>
#include <rdma/ib_sysfs.h>
#include "device.hpp"

using namespace ib_sysfs;

namespace
{

constinit kern::Static<kern::DeviceClass> device_class;

int add(ib_device *device);

void remove(ib_device *, void *shown)
{
	kern::destroy(static_cast<Device *>(shown));
}

constinit ib_client client = {.name = "sysfs", .add = add, .remove = remove, .registry = nullptr};

int add(ib_device *device)
{
	auto shown = Device::create(*device_class, *device);
	if (!shown)
		return shown.error();
	ib_set_client_data(device, &client, shown.take().release());
	return 0;
}

kern::Result<> start()
{
	auto made = kern::DeviceClass::create("infiniband", {.abi_version = nullptr, .node_mode = 0, .tells_name = true});
	if (!made) {
		kern_error("class infiniband cannot be made: %d\n", made.error());
		return kern::Error{made.error()};
	}
	device_class.construct(made.take());
	const int status = ib_register_client(&client);
	if (status)
		device_class.destruct();
	return kern::check(status);
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
	device_class.destruct();
}
