// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the numbers of uverbs nodes when the module is loaded, and creates the node of each
// registered device. They are removed when the module is unloaded.
#include <kern/log.hpp>
#include <kern/xarray.hpp>
#include <rdma/ib_sysfs.h>
#include "abi.hpp"
#include "device.hpp"

using namespace uverbs;

namespace
{

/* The numbers that Linux assigns to uverbs (Documentation/admin-guide/devices.txt). */
constexpr unsigned int major = 231;
constexpr unsigned int first_minor = 192;

/* State that exists while the module is loaded. */
class Service
{
public:
	/*
	 * Context: process. Errors: EBUSY or EEXIST if another module uses the numbers or the
	 * class; ENOMEM.
	 */
	static kern::Result<kern::Owned<Service>> create()
	{
		auto service = KERN_TRY(kern::make<Service>(kern::Gfp::kernel));
		KERN_TRY(file_kind().create());
		KERN_TRY(event_file_kind().create());
		KERN_TRY(service->region.create(major, first_minor, "infiniband_verbs"));
		service->verbs_class = KERN_TRY(kern::DeviceClass::create(
			"infiniband_verbs",
			{.abi_version = abi::version, .node_mode = 0666, .reports_name = false}));
		return service;
	}
	~Service()
	{
		event_file_kind().destroy();
		file_kind().destroy();
	}

	kern::IdAllocator numbers;
	kern::NodeRegion region;
	kern::DeviceClass verbs_class;
};

constinit kern::Static<kern::Owned<Service>> service;

int add(ib_device *device);

void remove(ib_device *, void *data)
{
	const auto device = kern::Ref<Device>::adopt(static_cast<Device *>(data));
	device->remove();
}

constinit ib_client client = {.name = "uverbs", .add = add, .remove = remove, .registry = nullptr};

int add(ib_device *device)
{
	/* Libraries find a device through sysfs, so a node without an entry there is useless. */
	if (!ib_sysfs_shows(device))
		return -EOPNOTSUPP;
	auto made = Device::create(*device, (*service)->verbs_class, (*service)->region);
	if (!made)
		return made.error();
	ib_set_client_data(device, &client, made.take().release());
	return 0;
}

kern::Result<> start()
{
	auto made = Service::create();
	if (!made) {
		kern_error("no class infiniband_verbs, or no device numbers from %u:%u: %d\n",
			   major, first_minor, made.error());
		return kern::Error{made.error()};
	}
	service.construct(made.take());
	const int status = ib_register_client(&client);
	if (status)
		service.destruct();
	return kern::check(status);
}

} // namespace

kern::IdAllocator &uverbs::numbers()
{
	return (*service)->numbers;
}

extern "C" int weft_uverbs_init()
{
	return start().error();
}

extern "C" void weft_uverbs_exit()
{
	ib_unregister_client(&client);
	service.destruct();
}
