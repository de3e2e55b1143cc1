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

/* All ports of one device, and the handler of its events. */
class DeviceInterfaces
{
public:
	/* Creates it with ports, but without interfaces. Errors: ENOMEM. Context: process. */
	static kern::Result<kern::Owned<DeviceInterfaces>> create(ib_device *device);
	explicit DeviceInterfaces(ib_device *device);
	~DeviceInterfaces();
	DeviceInterfaces(const DeviceInterfaces &) = delete;
	DeviceInterfaces &operator=(const DeviceInterfaces &) = delete;

	/*
	 * Makes the interface of each port. User space may open an interface as soon as it is made,
	 * so what an open interface needs is there before: the handler of events, and the client
	 * data, by which children are added. Context: process.
	 */
	void begin();
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
	void add_own(u32 port_num);
	static void on_event(ib_event_handler *handler, ib_event *event);

	ib_device *const device_;
	kern::OwnedArray<kern::Owned<Port>> ports_;
	Handler handler_{};
	bool handles_events_ = false;
};

int add_device(ib_device *device);
void remove_device(ib_device *device, void *client_data);

constinit ib_client ipoib_client{"ipoib", add_device, remove_device, nullptr};
constinit ib_sa_client at_sa{};

DeviceInterfaces::DeviceInterfaces(ib_device *device) : device_(device)
{
	handler_.owner = this;
	INIT_IB_EVENT_HANDLER(&handler_, device, on_event);
}

kern::Result<kern::Owned<DeviceInterfaces>> DeviceInterfaces::create(ib_device *device)
{
	auto all = KERN_TRY(kern::make<DeviceInterfaces>(kern::Gfp::kernel, device));
	all->ports_ = KERN_TRY(
		kern::make_array<kern::Owned<Port>>(kern::Gfp::kernel, device->phys_port_cnt));
	for (kern::Owned<Port> &port : all->ports_)
		port = KERN_TRY(kern::make<Port>(kern::Gfp::kernel));
	return all;
}

void DeviceInterfaces::begin()
{
	ib_register_event_handler(&handler_);
	handles_events_ = true;
	for (u32 port_num = 1; port_num <= ports_.size(); port_num++)
		if (rdma_protocol_ib(device_, port_num))
			add_own(port_num);
}

/*
 * The interface of a port: that of its first partition, as a full member (RFC 4391 section 4.1).
 */
void DeviceInterfaces::add_own(u32 port_num)
{
	u16 pkey = 0;
	if (ib_get_cached_pkey(device_, port_num, 0, &pkey) || ib::pkey_base(pkey) == 0)
		pkey = default_pkey;
	kern::RtnlGuard rtnl;
	if (auto added = add(port_num, pkey | ib::pkey_full_bit, nullptr, nullptr); !added.ok())
		kern_warning("%s port %u: no interface: %d\n", device_->name, port_num,
			     added.error());
}

DeviceInterfaces::~DeviceInterfaces()
{
	if (handles_events_)
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
	Interface *interface = KERN_TRY(Interface::create(device_, port_num, pkey, parent, dev));
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
	DeviceInterfaces *all = created.take().release();
	ib_set_client_data(device, &ipoib_client, all);
	all->begin();
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
	/* An interface that was created by its P_Key is deleted by it, too. */
	if (!dev &&
	    (ib::pkey_base(parent.pkey()) == ib::pkey_base(pkey) || find_child(parent, pkey)))
		return kern::Error{-ENOTUNIQ};
	return all->add(parent.port_num(), pkey | ib::pkey_full_bit, &parent, dev);
}

Interface *own_interface(ib_device *device, u32 port_num)
{
	DeviceInterfaces *all = of(device);
	Port *port = all ? all->port(port_num) : nullptr;
	return port ? port->interfaces.front() : nullptr;
}

Interface *find_child(Interface &parent, u16 pkey)
{
	DeviceInterfaces *all = of(parent.device());
	if (!all)
		return nullptr;
	for (Interface &other : all->port(parent.port_num())->interfaces)
		if (other.parent() == &parent && other.is_made_by_pkey() &&
		    ib::pkey_base(other.pkey()) == ib::pkey_base(pkey))
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
