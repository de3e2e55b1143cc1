// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "client.hpp"

#include "interface.hpp"

#include <kern/log.hpp>
#include <rdma/ib_cache.h>

namespace ipoib
{
namespace
{

constexpr u16 default_pkey = 0xffff;

/*
 * The interfaces of one port. Changed under the rtnl lock and the lock; either is enough to look.
 */
struct Port {
	kern::List<Interface, &Interface::port_node> interfaces;
	kern::IrqSpinLock lock{KERN_LOCK_CLASS("ipoib.port")};
};

/* All ports of one device, and the ear for its events. */
class DeviceInterfaces
{
public:
	static kern::Result<kern::Owned<DeviceInterfaces>> create(ib_device *device);
	explicit DeviceInterfaces(ib_device *device) : device_(device) {}
	~DeviceInterfaces();

	kern::Result<> add(u32 port_num, u16 pkey, Interface *parent, net_device *dev);
	void forget(Interface &interface);
	Port *port(u32 port_num)
	{
		return port_num >= 1 && port_num <= ports_.size() ? ports_[port_num - 1].get()
								  : nullptr;
	}

private:
	struct Handler : ib_event_handler {
		DeviceInterfaces *owner;
	};
	static void on_event(ib_event_handler *handler, ib_event *event);

	ib_device *const device_;
	kern::OwnedArray<kern::Owned<Port>> ports_;
	Handler handler_{};
	bool hears_ = false;
};

int add_device(ib_device *device);
void remove_device(ib_device *device, void *client_data);

constinit ib_client ipoib_client{"ipoib", add_device, remove_device, nullptr};
constinit ib_sa_client at_sa{};

kern::Result<kern::Owned<DeviceInterfaces>> DeviceInterfaces::create(ib_device *device)
{
	auto all = TRY(kern::make<DeviceInterfaces>(kern::Gfp::kernel, device));
	all->ports_ =
		TRY(kern::make_array<kern::Owned<Port>>(kern::Gfp::kernel, device->phys_port_cnt));
	for (kern::Owned<Port> &port : all->ports_)
		port = TRY(kern::make<Port>(kern::Gfp::kernel));

	for (u32 port_num = 1; port_num <= device->phys_port_cnt; port_num++) {
		if (!rdma_protocol_ib(device, port_num))
			continue;
		u16 pkey = 0;
		/*
		 * The interface is that of the port's first partition, as a full member (RFC 4391
		 * section 4.1).
		 */
		if (ib_get_cached_pkey(device, port_num, 0, &pkey) || ib::pkey_base(pkey) == 0)
			pkey = default_pkey;
		kern::RtnlGuard rtnl;
		if (auto added = all->add(port_num, pkey | ib::pkey_full_bit, nullptr, nullptr);
		    !added.ok())
			kern_warning("%s port %u: no interface: %d\n", device->name, port_num,
				     added.error());
	}
	all->handler_.owner = all.get();
	INIT_IB_EVENT_HANDLER(&all->handler_, device, on_event);
	ib_register_event_handler(&all->handler_);
	all->hears_ = true;
	return all;
}

DeviceInterfaces::~DeviceInterfaces()
{
	if (hears_)
		ib_unregister_event_handler(&handler_);
	kern_rtnl_lock();
	for (kern::Owned<Port> &port : ports_) {
		if (!port)
			continue;
		/* Children lie on the port's own interface, which is the first. */
		while (Interface *interface = port->interfaces.back()) {
			forget(*interface);
			interface->remove();
		}
	}
	/* The destructors of the devices run here, and have run when this returns. */
	kern_rtnl_unlock();
}

kern::Result<> DeviceInterfaces::add(u32 port_num, u16 pkey, Interface *parent, net_device *dev)
{
	Interface *interface = TRY(Interface::create(device_, port_num, pkey, parent, dev));
	Port &at = *port(port_num);
	kern::Guard guard(at.lock);
	at.interfaces.push_back(*interface);
	return {};
}

void DeviceInterfaces::forget(Interface &interface)
{
	kern::Guard guard(port(interface.port_num())->lock);
	interface.port_node.unlink();
}

/* Context: any that an event handler may have. */
void DeviceInterfaces::on_event(ib_event_handler *handler, ib_event *event)
{
	DeviceInterfaces &self = *static_cast<Handler *>(handler)->owner;
	if (event->event == IB_EVENT_DEVICE_FATAL) {
		for (kern::Owned<Port> &port : self.ports_) {
			kern::Guard guard(port->lock);
			for (Interface &interface : port->interfaces)
				interface.on_event(event->event);
		}
		return;
	}
	if (Port *port = self.port(event->element.port_num)) {
		kern::Guard guard(port->lock);
		for (Interface &interface : port->interfaces)
			interface.on_event(event->event);
	}
}

int add_device(ib_device *device)
{
	auto created = DeviceInterfaces::create(device);
	if (!created.ok())
		return created.error();
	ib_set_client_data(device, &ipoib_client, created.take().release());
	return 0;
}

void remove_device(ib_device *, void *client_data)
{
	kern::destroy(static_cast<DeviceInterfaces *>(client_data));
}

DeviceInterfaces *of(ib_device *device)
{
	return static_cast<DeviceInterfaces *>(ib_get_client_data(device, &ipoib_client));
}

} // namespace

kern::Result<> start_client()
{
	ib_sa_register_client(&at_sa);
	if (const int status = ib_register_client(&ipoib_client)) {
		ib_sa_unregister_client(&at_sa);
		return kern::Error{status};
	}
	return {};
}

void stop_client()
{
	ib_unregister_client(&ipoib_client);
	ib_sa_unregister_client(&at_sa);
}

ib_sa_client &sa_client()
{
	return at_sa;
}

kern::Result<> add_child(Interface &parent, net_device *dev, u16 pkey)
{
	if (parent.parent() || ib::pkey_base(pkey) == 0)
		return kern::Error{-EINVAL};
	DeviceInterfaces *all = of(parent.device());
	if (!all)
		return kern::Error{-ENODEV};
	for (const Interface &other : all->port(parent.port_num())->interfaces)
		if (ib::pkey_base(other.pkey()) == ib::pkey_base(pkey))
			return kern::Error{-EEXIST};
	return all->add(parent.port_num(), pkey | ib::pkey_full_bit, &parent, dev);
}

Interface *find_child(Interface &parent, u16 pkey)
{
	DeviceInterfaces *all = of(parent.device());
	if (!all)
		return nullptr;
	for (Interface &other : all->port(parent.port_num())->interfaces)
		if (other.parent() == &parent && ib::pkey_base(other.pkey()) == ib::pkey_base(pkey))
			return &other;
	return nullptr;
}

void each_child(Interface &parent, void (*call)(Interface &child))
{
	DeviceInterfaces *all = of(parent.device());
	if (!all)
		return;
	for (Interface &other : all->port(parent.port_num())->interfaces)
		if (other.parent() == &parent)
			call(other);
}

void forget_child(Interface &child)
{
	if (DeviceInterfaces *all = of(child.device()))
		all->forget(child);
}

} // namespace ipoib
