// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Resolves IP addresses to GIDs, and GIDs to paths, for which it queries the SA. */
#include "manager.hpp"

#include <rdma/ib_cache.h>

namespace rdma_cm
{

/*
 * Binds the ID to the device of the interface that has the address. The "any" and loopback
 * addresses have no such device.
 */
kern::Result<> Id::bind_host(const Address &address)
{
	Manager &manager = Manager::get();
	if (is_any(address) || is_loopback(address))
		return {};
	if (address.family == RDMA_AF_IB)
		return manager.attach(*this, address.ib.addr, pkey_of(address));
	const Interface own = KERN_TRY(manager.resolver().owner(net().native(), address));
	KERN_TRY(manager.attach(*this, own.gid, 0));
	interface = own;
	route.addr.pkey = own.pkey;
	return {};
}

kern::Result<> Id::bind(const Address &address)
{
	KERN_TRY(permit(Event::bind));
	if (!is_family(address.family) || (is_link_local(address) && address.in6.scope_id == 0))
		return kern::Error{-EINVAL};
	port_space = KERN_TRY(space_of(ps, address));
	Manager &manager = Manager::get();
	if (!has_afonly_)
		afonly = address.family == RDMA_AF_INET ||
			 (address.family == RDMA_AF_INET6 &&
			  manager.resolver().v6only(net().native()));
	const auto bound = [&]() -> kern::Result<> {
		KERN_TRY(bind_host(address));
		route.addr.src_addr = address;
		return manager.bind(*this);
	}();
	if (!bound.ok()) {
		manager.detach(*this);
		interface = {};
		route.addr = {};
		return bound;
	}
	change(Event::bind);
	return {};
}

/*
 * Refuses service IDs that a program must not use. A program may only use ports; other service IDs
 * belong to the kernel, such as IPoIB's. The whole service ID is checked, regardless of its mask.
 */
kern::Result<> Id::permit_service(const Address &destination) const
{
	Address whole = destination;
	if (whole.family == RDMA_AF_IB)
		whole.ib.sid_mask = ~u64{0};
	KERN_TRY(space_of(ps, whole));
	return {};
}

kern::Result<> Id::resolve_addr(const Address *source, const Address &destination,
				unsigned long timeout_ms)
{
	if (!is_family(destination.family) || timeout_ms == 0)
		return kern::Error{-EINVAL};
	if (state_ == State::idle) {
		const bool given = source && source->family != 0;
		if (given && source->family != destination.family)
			return kern::Error{-EINVAL};
		Address any = any_of(destination.family);
		any.ib.pkey = destination.family == RDMA_AF_IB ? destination.ib.pkey : any.ib.pkey;
		if (!given && is_link_local(destination))
			any.in6.scope_id = destination.in6.scope_id;
		KERN_TRY(bind(given ? *source : any));
	}
	KERN_TRY(permit(Event::resolve_addr));
	if (this->source().family != destination.family)
		return kern::Error{-EINVAL};
	if (creator->process)
		KERN_TRY(permit_service(destination));
	route.addr.dst_addr = destination;
	/* Discard the result of an earlier resolution that failed. */
	route_.reset();
	/* The functions below make all checks before they change the state. */
	if (is_any(destination) || is_loopback(destination))
		return resolve_loopback();
	if (destination.family == RDMA_AF_IB)
		return resolve_gid();
	return resolve_ip(timeout_ms);
}

/* The route to an address of this host may use any port. */
kern::Result<> Id::resolve_loopback()
{
	if (!device)
		KERN_TRY(Manager::get().attach_any(*this, pkey_of(destination())));
	if (is_any(destination()))
		set_loopback(route.addr.dst_addr);
	Address self = destination();
	set_port(self, port_space, port_of(source()));
	if (is_any(source()))
		route.addr.src_addr = self;
	route.addr.dgid = route.addr.sgid;
	change(Event::resolve_addr);
	post(resolved_, Event::addr_found, 0);
	return {};
}

kern::Result<> Id::resolve_gid()
{
	if (!device)
		KERN_TRY(Manager::get().attach_towards(*this, destination().ib.addr,
						       pkey_of(destination())));
	if (is_any(source()))
		route.addr.src_addr.ib.addr = route.addr.sgid;
	route.addr.dgid = destination().ib.addr;
	change(Event::resolve_addr);
	post(resolved_, Event::addr_found, 0);
	return {};
}

kern::Result<> Id::resolve_ip(unsigned long timeout_ms)
{
	Manager &manager = Manager::get();
	Address from = source();
	const Interface outgoing =
		KERN_TRY(manager.resolver().route(net().native(), destination(), from));
	/* The ID is bound to one interface, and the route leads through another. */
	if (device && outgoing.gid != route.addr.sgid)
		return kern::Error{-EHOSTUNREACH};
	/* An Ethernet interface without an RNIC is an ordinary interface. */
	if (outgoing.ethernet && !manager.has(net().number, outgoing.gid))
		return kern::Error{-ENODEV};
	auto neighbour = manager.resolver().neighbour(net().native(), destination(), outgoing);
	if (!neighbour.ok() && neighbour.error() != -EAGAIN)
		return kern::Error{neighbour.error()};
	route_ = KERN_TRY(kern::make<Route>(kern::Gfp::kernel, outgoing, from));
	change(Event::resolve_addr);
	if (neighbour.ok()) {
		find_neighbour(neighbour.value());
		return {};
	}
	constexpr unsigned long longest = 3'600'000;
	const auto ms = static_cast<unsigned int>(timeout_ms < longest ? timeout_ms : longest);
	deadline_ = kern::now_ns() + u64{ms} * 1'000'000;
	manager.wait_for_neighbour(*this);
	/*
	 * The neighbour may have been resolved before the ID was added to the waiting ones, so
	 * check again immediately. The timer does this for this ID only: otherwise a program that
	 * creates and destroys IDs all the time would make all waiting IDs check each time.
	 */
	manager.queue().reschedule(timer_, 0);
	return {};
}

void Id::find_neighbour(const ib_gid &gid)
{
	route_->neighbour = gid;
	post(resolved_, Event::addr_found, 0);
}

kern::Result<> Id::apply_route()
{
	handler_lock_.assert_held();
	lock_.assert_held();
	const kern::Owned<Route> found = std::move(route_);
	if (!found)
		return {};
	if (!device)
		KERN_TRY(Manager::get().attach(*this, found->interface.gid, 0));
	interface = found->interface;
	route.addr.pkey = found->interface.pkey;
	route.addr.src_addr = found->source;
	route.addr.dgid = found->neighbour;
	return {};
}

void Id::retry()
{
	Manager &manager = Manager::get();
	kern::Guard guard(lock_);
	if (state_ != State::addr_query || resolved_.node.linked())
		return;
	auto neighbour =
		manager.resolver().neighbour(net().native(), destination(), route_->interface);
	if (neighbour.ok()) {
		find_neighbour(neighbour.value());
	} else if (neighbour.error() != -EAGAIN) {
		post(resolved_, Event::addr_failed, neighbour.error());
	} else if (kern::now_ns() >= deadline_) {
		post(resolved_, Event::addr_failed, -ETIMEDOUT);
	} else {
		manager.wait_for_neighbour(*this);
		/*
		 * The timer may have expired slightly before the deadline by the clock, and this
		 * may be the timer's call, so start it again.
		 */
		manager.queue().reschedule(timer_, kern::rest_ms(deadline_));
		return;
	}
	manager.stop_waiting(*this);
}

void Id::check_address()
{
	kern::Guard guard(lock_);
	if (interface.index == 0)
		return;
	auto own = Manager::get().resolver().owner(net().native(), source());
	if (own.ok() && own.value().gid != route.addr.sgid)
		post(changed_, Event::addr_changed, 0);
}

/* Queries the SA up to ten times within the timeout. */
kern::Result<> Id::resolve_route(unsigned long timeout_ms)
{
	constexpr int retries = 9;
	KERN_TRY(permit(Event::resolve_route));
	if (timeout_ms == 0)
		return kern::Error{-EINVAL};
	if (!Manager::get().transport_of(*device, port_num).has_paths()) {
		found_path_ = KERN_TRY(kern::make<sa_path_rec>(kern::Gfp::kernel));
		found_path_->sgid = route.addr.sgid;
		found_path_->dgid = route.addr.dgid;
		change(Event::resolve_route);
		post(resolved_, Event::route_found, 0);
		return {};
	}
	sa_path_rec wanted{};
	wanted.sgid = route.addr.sgid;
	wanted.dgid = route.addr.dgid;
	wanted.pkey = route.addr.pkey;
	wanted.numb_path = 1;
	wanted.reversible = 1;
	wanted.service_id = service_of(ps, destination());
	u64 mask = IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_PKEY |
		   IB_SA_PATH_REC_NUMB_PATH | IB_SA_PATH_REC_REVERSIBLE | IB_SA_PATH_REC_SERVICE_ID;
	if (destination().family == RDMA_AF_INET) {
		wanted.qos_class = u16{tos_};
		mask |= IB_SA_PATH_REC_QOS_CLASS;
	} else {
		const ib::be32 flow = destination().family == RDMA_AF_INET6
					      ? destination().in6.flowinfo
					      : destination().ib.flowinfo;
		wanted.traffic_class = static_cast<u8>(flow.value() >> 20);
		mask |= IB_SA_PATH_REC_TRAFFIC_CLASS;
	}
	auto found = KERN_TRY(kern::make<sa_path_rec>(kern::Gfp::kernel));
	const unsigned long each = timeout_ms / (retries + 1);
	auto self = kern::Ref<Id>::share(*this);
	const int id = ib_sa_path_rec_get(
		&Manager::get().sa(), device, port_num, &wanted, mask, each ? each : 1, retries,
		static_cast<unsigned int>(kern::Gfp::kernel),
		[](int status, sa_path_rec *path, void *context) {
			const auto asked = kern::Ref<Id>::adopt(static_cast<Id *>(context));
			asked->find_path(status, path);
		},
		this, &query_);
	if (id < 0)
		return kern::Error{id};
	/* The callback owns this reference. It may run already, but waits for the lock. */
	(void)self.release();
	query_id_ = id;
	found_path_ = std::move(found);
	change(Event::resolve_route);
	return {};
}

void Id::find_path(int status, const sa_path_rec *path)
{
	kern::Guard guard(lock_);
	query_ = nullptr;
	if (state_ != State::route_query)
		return;
	if (status == 0)
		*found_path_ = *path;
	post(resolved_, status == 0 ? Event::route_found : Event::route_failed, status);
}

void Id::take_path()
{
	handler_lock_.assert_held();
	lock_.assert_held();
	route.path_rec = *found_path_;
	route.num_paths = 1;
	found_path_.reset();
}

kern::Result<> Id::set_path(const sa_path_rec &path)
{
	KERN_TRY(permit(Event::set_path));
	route.path_rec = path;
	route.num_paths = 1;
	change(Event::set_path);
	return {};
}

} // namespace rdma_cm
