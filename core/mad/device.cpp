// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"

#include <kern/log.hpp>
#include <rdma/objects.hpp>

namespace mad
{
namespace
{

int add_device(ib_device *device);
void remove_device(ib_device *device, void *client_data);

constinit ib_client mad_client{"mad", add_device, remove_device, nullptr};

bool speaks_mads(const ib_device &device)
{
	u32 port_num;

	rdma_for_each_port(&device, port_num) if (rdma_cap_ib_mad(&device, port_num)) return true;
	return false;
}

int add_device(ib_device *device)
{
	if (!speaks_mads(*device))
		return -EOPNOTSUPP;
	auto created = Device::create(device);
	if (!created.ok()) {
		kern_error("%s: no management: %d\n", device->name, created.error());
		return created.error();
	}
	ib_set_client_data(device, &mad_client, created.take().release());
	return 0;
}

void remove_device(ib_device *, void *client_data)
{
	kern::destroy(static_cast<Device *>(client_data));
}

} // namespace

Device::Device(ib_device *device) : device_(device), first_port_(rdma_start_port(device)) {}

kern::Result<kern::Owned<Device>> Device::create(ib_device *device)
{
	auto created = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Device(device)));
	KERN_TRY(created->open());
	return created;
}

kern::Result<> Device::open()
{
	const u32 count = rdma_end_port(device_) - first_port_ + 1;
	ports_ = KERN_TRY(kern::make_array<Port>(kern::Gfp::kernel, count));
	pd_ = KERN_TRY(rdma::check(ib_alloc_pd(device_, 0)));

	u32 port_num;
	rdma_for_each_port(device_, port_num)
	{
		Port &port = ports_[port_num - first_port_];
		if (!rdma_cap_ib_mad(device_, port_num))
			continue;
		if (rdma_cap_ib_smi(device_, port_num))
			port.smi = KERN_TRY(SpecialQp::create(device_, port_num, pd_, IB_QPT_SMI));
		port.gsi = KERN_TRY(SpecialQp::create(device_, port_num, pd_, IB_QPT_GSI));
		if (rdma_cap_ib_sa(device_, port_num))
			port.sa = KERN_TRY(sa::Port::create(*port.gsi));
	}

	event_handler_.owner = this;
	INIT_IB_EVENT_HANDLER(&event_handler_, device_,
			      [](ib_event_handler *handler, ib_event *event) {
				      static_cast<EventHandler *>(handler)->owner->on_event(*event);
			      });
	ib_register_event_handler(&event_handler_);
	handles_events_ = true;
	return {};
}

Device::~Device()
{
	if (handles_events_)
		ib_unregister_event_handler(&event_handler_);
	for (Port &port : ports_) {
		port.sa.reset();
		port.gsi.reset();
		port.smi.reset();
	}
	if (pd_)
		ib_dealloc_pd(pd_);
}

Device *Device::of(ib_device *device)
{
	return static_cast<Device *>(ib_get_client_data(device, &mad_client));
}

Port *Device::port(u32 port_num)
{
	return rdma_is_port_valid(device_, port_num) ? &ports_[port_num - first_port_] : nullptr;
}

SpecialQp *Device::qp(u32 port_num, ib_qp_type type)
{
	Port *found = port(port_num);
	if (!found)
		return nullptr;
	return type == IB_QPT_SMI   ? found->smi.get()
	       : type == IB_QPT_GSI ? found->gsi.get()
				    : nullptr;
}

sa::Port *Device::sa(u32 port_num)
{
	Port *found = port(port_num);
	return found ? found->sa.get() : nullptr;
}

void Device::on_event(const ib_event &event)
{
	switch (event.event) {
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_GID_CHANGE:
		if (sa::Port *port = sa(event.element.port_num))
			port->on_event(event.event);
		return;
	default:
		return;
	}
}

int start()
{
	return ib_register_client(&mad_client);
}

void stop()
{
	ib_unregister_client(&mad_client);
}

} // namespace mad
