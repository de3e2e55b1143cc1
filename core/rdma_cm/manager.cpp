// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "manager.hpp"

#include <kern/log.hpp>
#include <rdma/ib_cache.h>
#include <rdma/ib_namespaces.h>

namespace rdma_cm
{
namespace
{

constinit kern::Static<Manager> instance;

int add_device(ib_device *ib)
{
	return instance->add(*ib).error();
}

void remove_device(ib_device *ib, void *)
{
	instance->remove(*ib);
}

u32 count_ids(ib_device *ib)
{
	return instance->count(*ib);
}

int next_id(ib_device *ib, u32 number, ib_resource_info *info)
{
	return instance->show(*ib, number, *info).error();
}

constexpr ib_resource_source shown_ids = {.count = count_ids, .next = next_id};

constinit ib_client client = {
	.name = "rdma_cm", .add = add_device, .remove = remove_device, .registry = nullptr};

std::size_t index_of(rdma_ucm_port_space space)
{
	switch (space) {
	case RDMA_PS_TCP:
		return 0;
	case RDMA_PS_UDP:
		return 1;
	case RDMA_PS_IPOIB:
		return 2;
	default:
		return 3;
	}
}

} // namespace

Manager &Manager::get()
{
	return *instance;
}

kern::Result<> Manager::start(Resolver &resolver, Transport &infiniband, Transport &iwarp)
{
	Manager &made = instance.construct(resolver, infiniband, iwarp);
	const auto begun = made.open();
	if (!begun.ok())
		instance.destruct();
	return begun;
}

kern::Result<> Manager::open()
{
	queue_ = KERN_TRY(kern::WorkQueue::create("weft_rdma_cm", kern::WorkQueue::Kind::per_cpu));
	ib_sa_register_client(&sa_);
	const auto registered = kern::check(ib_register_client(&client));
	if (!registered.ok()) {
		ib_sa_unregister_client(&sa_);
		return registered;
	}
	const auto shown = kern::check(ib_set_resource_source(IB_RESOURCE_CM_ID, &shown_ids));
	if (!shown.ok())
		close();
	return shown;
}

void Manager::stop()
{
	/* Removing the source cannot fail. */
	(void)ib_set_resource_source(IB_RESOURCE_CM_ID, nullptr);
	instance->close();
	instance.destruct();
}

void Manager::close()
{
	/* Destroy the IDs that handlers have released. */
	queue_.flush();
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_);
	queue_.flush();
}

/* Devices. */

Device *Manager::find(ib_device &ib)
{
	for (Device &device : devices_)
		if (&device.ib() == &ib)
			return &device;
	return nullptr;
}

kern::Result<> Manager::add(ib_device &ib)
{
	auto device = KERN_TRY(kern::make_ref<Device>(kern::Gfp::kernel, ib));
	Listeners doomed;
	BeginningListeners beginning;
	const auto warn = [](const Service &service) {
		kern_warning("no listener for service %lx on a new device\n",
			     service_of(service.space, service.port));
	};
	{
		kern::Guard guard(lock_);
		devices_.push_back(*device);
		for_each_service([&](Service &service) {
			lock_.assert_held();
			if (service.listening && !listen_on(*device, service, beginning).ok())
				warn(service);
		});
	}
	while (Listener *listener = beginning.pop_front()) {
		const auto service = listener->service;
		if (!begin(*listener, doomed).ok())
			warn(*service);
	}
	destroy_listeners(doomed);
	(void)device.release();
	return {};
}

void Manager::remove(ib_device &ib)
{
	kern::Ref<Device> device;
	Listeners doomed;
	{
		kern::Guard guard(lock_);
		Device *found = find(ib);
		if (!found)
			return;
		device = kern::Ref<Device>::adopt(found);
		device->node.unlink();
		for_each_service([&](Service &service) {
			lock_.assert_held();
			for (Listener &listener : service.listeners) {
				if (&listener.device == &ib)
					doom(listener, doomed);
			}
		});
	}
	/* Destroy the listeners first, so that no new IDs are created on the device. */
	destroy_listeners(doomed);
	for (;;) {
		kern::Ref<Id> id;
		{
			kern::Guard guard(lock_);
			Id *next = device->ids.pop_front();
			if (!next)
				break;
			device->notified_ids.push_back(*next);
			id = kern::Ref<Id>::share(*next);
		}
		id->lose_device();
	}
	ids_gone_.wait([&] { return device->bound.load_acquire() == 0; });
	/* The last ID to be detached may still hold the lock, so wait for that. */
	kern::Guard guard(lock_);
}

kern::Result<> Manager::attach_locked(Id &id, Device &device, u32 port_num)
{
	lock_.assert_held();
	ib_gid gid;
	KERN_TRY_ERRNO(rdma_query_gid(&device.ib(), port_num, 0, &gid));
	KERN_TRY_ERRNO(kern_xa_alloc_cyclic(&device.numbers, &id.number, &id, 0, ~u32{0} - 1,
					    &device.next_number,
					    static_cast<unsigned int>(kern::Gfp::kernel)));
	id.device = &device.ib();
	id.port_num = port_num;
	id.route.addr.sgid = gid;
	id.bound_device = kern::Ref<Device>::share(device);
	device.ids.push_back(id);
	device.bound.fetch_add(1);
	return {};
}

/*
 * Finds the first device with a port that has one of the capabilities `caps`, the P_Key, and for
 * which suits() is true, and which tasks of `net` may use.
 */
template<class Suits>
Device *Manager::find_port(u64 net, u32 caps, u16 pkey, u32 &port, Suits suits)
{
	const auto has_pkey = [&](ib_device &ib) {
		u16 index;
		return pkey == 0 || ib_find_cached_pkey(&ib, port, pkey, &index) == 0;
	};
	for (Device &device : devices_) {
		if (!ib_device_in_net(&device.ib(), net))
			continue;
		for (port = rdma_start_port(&device.ib()); port <= rdma_end_port(&device.ib());
		     port++)
			if (rdma_port_has(&device.ib(), port, caps) && suits(device.ib(), port) &&
			    has_pkey(device.ib()))
				return &device;
	}
	return nullptr;
}

template<class Suits>
kern::Result<> Manager::attach_port(Id &id, u32 caps, u16 pkey, Suits suits)
{
	u32 port;
	kern::Guard guard(lock_);
	Device *const device = find_port(id.net().number, caps, pkey, port, suits);
	if (!device)
		return kern::Error{-ENODEV};
	if (pkey == 0 && device->ib().port_immutable[port].pkey_tbl_len > 0)
		KERN_TRY_ERRNO(ib_get_cached_pkey(&device->ib(), port, 0, &pkey));
	KERN_TRY(attach_locked(id, *device, port));
	id.route.addr.pkey = pkey;
	return {};
}

namespace
{

/* Returns a predicate for find_port() that is true for the port that has this GID. */
auto owner_of(const ib_gid &gid)
{
	return [&gid](ib_device &ib, u32 port) {
		u16 index;
		return ib_find_cached_gid_by_port(&ib, &gid, port, &index) == 0;
	};
}

} // namespace

bool Manager::has(u64 net, const ib_gid &gid)
{
	u32 port;
	kern::Guard guard(lock_);
	return find_port(net, connects, 0, port, owner_of(gid)) != nullptr;
}

kern::Result<> Manager::attach(Id &id, const ib_gid &gid, u16 pkey)
{
	KERN_TRY(attach_port(id, connects, pkey, owner_of(gid)));
	id.route.addr.sgid = gid;
	return {};
}

kern::Result<> Manager::attach_any(Id &id, u16 pkey)
{
	const auto is_active = [](ib_device &ib, u32 port) {
		ib_port_state state;
		return ib_get_cached_port_state(&ib, port, &state) == 0 && state == IB_PORT_ACTIVE;
	};
	if (attach_port(id, RDMA_CORE_CAP_IB_CM, pkey, is_active).ok())
		return {};
	return attach_port(id, RDMA_CORE_CAP_IB_CM, pkey, [](ib_device &, u32) { return true; });
}

kern::Result<> Manager::attach_towards(Id &id, const ib_gid &gid, u16 pkey)
{
	return attach_port(id, RDMA_CORE_CAP_IB_CM, pkey, [&](ib_device &ib, u32 port) {
		ib_port_state state;
		ib_gid own;
		u16 index;
		if (ib_find_cached_gid_by_port(&ib, &gid, port, &index) == 0)
			return true;
		return rdma_query_gid(&ib, port, 0, &own) == 0 &&
		       __builtin_memcmp(own.raw, gid.raw, 8) == 0 &&
		       ib_get_cached_port_state(&ib, port, &state) == 0 && state == IB_PORT_ACTIVE;
	});
}

kern::Result<> Manager::attach_to(Id &id, ib_device &ib, u32 port_num)
{
	kern::Guard guard(lock_);
	Device *device = find(ib);
	return device ? attach_locked(id, *device, port_num) : kern::Error{-ENODEV};
}

void Manager::detach(Id &id)
{
	kern::Guard guard(lock_);
	if (!id.bound_device)
		return;
	id.device_node.unlink();
	kern_xa_erase(&id.bound_device->numbers, id.number);
	id.device = nullptr;
	id.port_num = 0;
	const auto device = std::move(id.bound_device);
	if (device->bound.fetch_sub(1) == 1)
		ids_gone_.wake_all();
}

u32 Manager::count(ib_device &ib)
{
	kern::Guard guard(lock_);
	Device *device = find(ib);
	return device ? device->bound.load_acquire() : 0;
}

kern::Ref<Id> Manager::find_id(ib_device &ib, u32 number, ib_resource_info &info)
{
	kern::Guard guard(lock_);
	Device *device = find(ib);
	unsigned long at = number;
	auto *id = device ? static_cast<Id *>(kern_xa_find(&device->numbers, &at)) : nullptr;
	if (!id)
		return {};
	info.number = id->number;
	info.context = info.pd = IB_NO_RESOURCE;
	info.process = id->creator->process ? kern_process_number(id->creator->process) : 0;
	kern_format(info.owner, sizeof(info.owner), "%s", id->creator->module);
	return kern::Ref<Id>::share(*id);
}

kern::Result<> Manager::show(ib_device &ib, u32 number, ib_resource_info &info)
{
	while (const auto id = find_id(ib, number, info)) {
		if (id->show(info))
			return {};
		number = info.number + 1;
	}
	return kern::Error{-ENOENT};
}

/* Ports. */

kern::XArray<Service> &Manager::services_of(rdma_ucm_port_space space)
{
	return services_[index_of(space)];
}

template<class Body>
void Manager::for_each_service(Body body)
{
	for (auto &services : services_)
		services.for_each([&](unsigned long, Service &service) { body(service); });
}

kern::Result<> Manager::bind_to(Id &id, u16 port)
{
	auto &services = services_of(id.port_space);
	u32 &of_programs = id.net().ports_of_programs[index_of(id.port_space)];
	Service *service = services.load(port);
	bool counts = false;
	if (service && service->find_in(id.net())) {
		KERN_TRY(service->admit(id, false));
	} else {
		u16 first, last;
		resolver_.local_ports(id.net().native(), first, last);
		const u32 choices = last - first + 1u;
		counts = id.creator->process && port >= first && port <= last;
		/*
		 * A sixteenth of the ephemeral ports is reserved for IDs of the kernel's modules.
		 */
		if (counts && of_programs >= choices - choices / 16)
			return kern::Error{-EADDRNOTAVAIL};
	}
	if (!service) {
		auto made =
			KERN_TRY(kern::make_ref<Service>(kern::Gfp::kernel, id.port_space, port));
		KERN_TRY(services.insert(port, made.get()));
		service = made.release();
	}
	id.counts_port = counts;
	of_programs += counts;
	service->ids.push_back(id);
	id.service = service;
	set_port(id.route.addr.src_addr, id.port_space, port);
	return {};
}

/*
 * Binds the ID to the first free ephemeral port, starting from a random one. The port that was
 * allocated last is not used, because its peer may still know it.
 */
kern::Result<> Manager::choose_port(Id &id)
{
	u16 first, last;
	u16 &given = id.net().last_ports[index_of(id.port_space)];
	resolver_.local_ports(id.net().native(), first, last);
	if (first > last)
		return kern::Error{-EADDRNOTAVAIL};
	const u32 count = last - first + 1u, start = kern::random_u32() % count;
	for (u32 i = 0; i < count; i++) {
		const auto port = static_cast<u16>(first + (start + i) % count);
		const Service *const service = services_of(id.port_space).load(port);
		if ((service && service->find_in(id.net())) || (port == given && count > 1))
			continue;
		KERN_TRY(bind_to(id, port));
		given = port;
		return {};
	}
	return kern::Error{-EADDRNOTAVAIL};
}

kern::Result<> Manager::bind(Id &id)
{
	kern::Guard guard(lock_);
	const u16 port = port_of(id.source());
	if (port == 0)
		return choose_port(id);
	if (port < 1024 && !resolver_.may_use_low_ports(id.net().native()))
		return kern::Error{-EACCES};
	return bind_to(id, port);
}

void Manager::share_port(Id &id, bool wanted)
{
	kern::Guard guard(lock_);
	id.reuse = wanted;
}

void Manager::release(Id &id)
{
	kern::Guard guard(lock_);
	if (!id.service)
		return;
	id.service_node.unlink();
	Service *service = std::exchange(id.service, nullptr);
	if (std::exchange(id.counts_port, false)) {
		/* The port is counted until the last ID of the namespace is released. */
		if (Id *other = service->find_in(id.net()))
			other->counts_port = true;
		else
			id.net().ports_of_programs[index_of(service->space)]--;
	}
	if (!service->ids.empty())
		return;
	kern::Ref<Service>::adopt(services_of(service->space).erase(service->port)).reset();
}

/* Resolution of neighbours. */

void Manager::wait_for_neighbour(Id &id)
{
	kern::Guard guard(lock_);
	id.waiting_node.unlink();
	id.net().waiting.push_back(id);
}

void Manager::stop_waiting(Id &id)
{
	kern::Guard guard(lock_);
	id.waiting_node.unlink();
}

/*
 * Calls retry() of each waiting ID once. IDs that continue to wait are added to the list of their
 * namespace.
 */
void Manager::retry_all()
{
	{
		kern::Guard guard(lock_);
		namespaces_.take_retries([&](NetNamespace &net) {
			lock_.assert_held();
			retrying_.splice_back(net.waiting);
		});
	}
	for (;;) {
		kern::Ref<Id> id;
		{
			kern::Guard guard(lock_);
			NeighbourWaiter *next = retrying_.pop_front();
			if (!next)
				return;
			id = kern::Ref<Id>::share(static_cast<Id &>(*next));
		}
		id->retry();
	}
}

/*
 * Returns the next ID to check. An ID that has been returned is moved to the end of its device's
 * list. IDs that are bound later need no check, because they use the present state.
 */
kern::Ref<Id> Manager::next_to_check()
{
	for (Device &device : devices_) {
		Id *next = device.ids.front();
		if (!next || next->checked == check_)
			continue;
		next->checked = check_;
		next->device_node.unlink();
		device.ids.push_back(*next);
		return kern::Ref<Id>::share(*next);
	}
	return {};
}

void Manager::check_all()
{
	{
		kern::Guard guard(lock_);
		check_++;
	}
	for (;;) {
		kern::Ref<Id> id;
		{
			kern::Guard guard(lock_);
			id = next_to_check();
		}
		if (!id)
			return;
		id->check_address();
	}
}

void check_interfaces()
{
	Manager::get().check_interfaces();
}

void retry_resolutions(u64 net)
{
	Manager::get().retry(net);
}

} // namespace rdma_cm
