// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the numbers of umad and issm nodes when the module is loaded, and creates the nodes of
// each registered device. They are removed when the module is unloaded.
#include <kern/log.hpp>
#include <rdma/ib_sysfs.h>
#include "abi.hpp"
#include "port.hpp"

using namespace umad;

namespace
{

/* The numbers that Linux assigns to umad and issm (Documentation/admin-guide/devices.txt). */
constexpr unsigned int major = 231;
constexpr unsigned int first_umad = 0;
constexpr unsigned int first_issm = 64;

/* State that exists while the module is loaded. */
class Service : public Names
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
		KERN_TRY(manager_kind().create());
		KERN_TRY(service->umad.create(major, first_umad, "infiniband_mad"));
		KERN_TRY(service->issm.create(major, first_issm, "infiniband_mad"));
		service->mad_class = KERN_TRY(kern::DeviceClass::create(
			"infiniband_mad",
			{.abi_version = abi::version, .node_mode = 0600, .reports_name = false}));
		return service;
	}
	~Service()
	{
		manager_kind().destroy();
		file_kind().destroy();
	}
};

constinit kern::Static<kern::Owned<Service>> service;

/* The ports of a device that support MADs. */
class Ports
{
public:
	static kern::Result<kern::Owned<Ports>> create(ib_device &device)
	{
		auto ports = KERN_TRY(kern::make<Ports>(kern::Gfp::kernel));
		const u32 first = rdma_start_port(&device), last = rdma_end_port(&device);
		ports->all_ = KERN_TRY(
			kern::make_array<kern::Ref<Port>>(kern::Gfp::kernel, last - first + 1));
		for (u32 number = first; number <= last; number++)
			if (rdma_cap_ib_mad(&device, number))
				ports->all_[number - first] =
					KERN_TRY(Port::create(device, number));
		return ports;
	}
	~Ports()
	{
		for (const kern::Ref<Port> &port : all_)
			if (port)
				port->leave_device();
	}

private:
	kern::OwnedArray<kern::Ref<Port>> all_;
};

int add(ib_device *device);

void remove(ib_device *, void *data)
{
	kern::destroy(static_cast<Ports *>(data));
}

constinit ib_client client = {.name = "umad", .add = add, .remove = remove, .registry = nullptr};

int add(ib_device *device)
{
	/* Libraries find a port through sysfs, so a node without an entry there is useless. */
	if (!ib_sysfs_shows(device))
		return -EOPNOTSUPP;
	auto made = Ports::create(*device);
	if (!made)
		return made.error();
	ib_set_client_data(device, &client, made.take().release());
	return 0;
}

kern::Result<> start()
{
	auto made = Service::create();
	if (!made) {
		kern_error("no class infiniband_mad, or no device numbers from %u:%u: %d\n", major,
			   first_umad, made.error());
		return kern::Error{made.error()};
	}
	service.construct(made.take());
	const int status = ib_register_client(&client);
	if (status)
		service.destruct();
	return kern::check(status);
}

} // namespace

Names &umad::names()
{
	return **service;
}

extern "C" int weft_umad_init()
{
	return start().error();
}

extern "C" void weft_umad_exit()
{
	ib_unregister_client(&client);
	service.destruct();
}
