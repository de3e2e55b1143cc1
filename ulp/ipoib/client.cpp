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
 * The interfaces of one port. They change with both the rtnl lock and the port's lock held, so
 * either lock is enough to read them.
 */
struct Port {
	kern::List<Interface, &Interface::port_node> interfaces;
	kern::IrqSpinLock lock{KERN_LOCK_CLASS("ipoib.port")};
};

/* All ports of one device, and the handler of its events. */
class DeviceInterfaces
{
public:
	/* Creates the ports, without interfaces. Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<DeviceInterfaces>> create(ib_device *device);
	explicit DeviceInterfaces(ib_device *device);
	~DeviceInterfaces();
	DeviceInterfaces(const DeviceInterfaces &) = delete;
	DeviceInterfaces &operator=(const DeviceInterfaces &) = delete;

	/*
	 * Creates the interface of each port. User space may open an interface as soon as it
	 * exists. So the event handler and the client data, which is needed to add children, must
	 * be registered before. Context: process.
	 */
	void begin();
	/*
	 * Creates an interface, and adds it to its port. Context: rtnl lock held. Errors: those of
	 * Interface::create().
	 */
	kern::Result<> add(u32 port_num, u16 pkey, Interface *parent, net_device *dev);
	/* Removes an interface from its port. Context: rtnl lock held. */
	void remove(Interface &interface);
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
constinit ib_sa_client sa_registration{};

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
 * Creates a port's own interface. Its partition is the first one in the port's P_Key table, as a
 * full member (RFC 4391 section 4.1).
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
		/* The port's own interface is the first one. It must outlive its children. */
		while (Interface *interface = port->interfaces.back()) {
			remove(*interface);
			interface->remove();
		}
	}
	/*
	 * The unlock runs the destructors of the network devices, so they have run when this
	 * returns.
	 */
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

void DeviceInterfaces::remove(Interface &interface)
{
	kern::Guard guard(port(interface.port_num())->lock);
	interface.port_node.unlink();
}

/* Context: event handler. */
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
	ib_sa_register_client(&sa_registration);
	if (const int status = ib_register_client(&ipoib_client)) {
		ib_sa_unregister_client(&sa_registration);
		return kern::Error{status};
	}
	return {};
}

void stop_client()
{
	ib_unregister_client(&ipoib_client);
	ib_sa_unregister_client(&sa_registration);
}

ib_sa_client &sa_client()
{
	return sa_registration;
}

kern::Result<> add_child(Interface &parent, net_device *dev, u16 pkey)
{
	if (parent.parent() || ib::pkey_base(pkey) == 0)
		return kern::Error{-EINVAL};
	DeviceInterfaces *all = of(parent.device());
	if (!all)
		return kern::Error{-ENODEV};
	/* The P_Key must identify this child, which is deleted by its P_Key. */
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

void remove_child(Interface &child)
{
	if (DeviceInterfaces *all = of(child.device()))
		all->remove(child);
}

} // namespace ipoib
