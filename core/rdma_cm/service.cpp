// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "manager.hpp"

#include <rdma/ib_namespaces.h>

namespace rdma_cm
{
namespace
{

/* Checks whether two IDs may have the same port. */
kern::Result<> check_sharing(const Id &id, const Id &other, bool to_listen)
{
	const Address &mine = id.source(), &theirs = other.source();
	/*
	 * A listener has cleared `reuse`. An ID that is about to listen clears it after this check
	 * has succeeded.
	 */
	if (!to_listen && id.reuse && other.reuse)
		return {};
	if (mine.family != theirs.family && id.afonly && other.afonly)
		return {};
	if (is_any(mine) || is_any(theirs))
		return kern::Error{to_listen ? -EADDRINUSE : -EADDRNOTAVAIL};
	return kern::check(same_host(mine, theirs) ? -EADDRINUSE : 0);
}

bool suits(const Id &id, const Ends &ends)
{
	const Address &at = id.source();
	if (is_any(at))
		return !id.afonly || ends.local.family == at.family;
	return same_host(at, ends.local);
}

} // namespace

kern::Result<> Service::admit(const Id &id, bool to_listen) const
{
	for (const Id &other : ids)
		if (&other != &id && &other.net() == &id.net())
			KERN_TRY(check_sharing(id, other, to_listen));
	return {};
}

Id *Service::find_in(const NetNamespace &net) const
{
	for (Id &id : ids)
		if (&id.net() == &net)
			return &id;
	return nullptr;
}

Id *Service::find(const Ends &ends, const Interface &interface, ib_device &device,
		  ib_qp_type type) const
{
	/* The interface may be in a different network namespace from its device. */
	if (!ib_device_in_net(&device, interface.net))
		return nullptr;
	for (Id &id : ids) {
		if (id.net().number != interface.net)
			continue;
		if (!id.listening || !suits(id, ends) || (id.device && id.device != &device))
			continue;
		if (is_link_local(id.source()) && id.source().in6.scope_id != interface.index)
			continue;
		if (id.qp_type == type)
			return &id;
	}
	return nullptr;
}

kern::Result<> Request::check_ends(const Ends &ends)
{
	for (const Address *end : {&ends.local, &ends.peer})
		if (is_any(*end) || is_loopback(*end) || is_group_or_broadcast(*end))
			return kern::Error{-EHOSTUNREACH};
	return {};
}

/*
 * Determines the addresses of a request from the header of IBA A11.4.3. Without the header, the
 * addresses are GIDs, and the listener must belong to the initial namespace, because a GID belongs
 * to no interface.
 */
kern::Result<Ends> Request::arrive(const Service &service, Resolver &resolver, Interface &interface)
{
	Ends ends = KERN_TRY(read_header(private_data, service.space, service.port));
	if (ends.local.family == 0) {
		ends.local = ends.peer = any_of(RDMA_AF_IB);
		ends.local.ib.addr = sgid;
		ends.local.ib.pkey = ends.peer.ib.pkey = pkey;
		if (path)
			ends.peer.ib.addr = path->dgid;
		set_port(ends.local, service.space, service.port);
		return ends;
	}
	KERN_TRY(check_ends(ends));
	interface = KERN_TRY(resolver.incoming(sgid, pkey, ends.local, ends.peer));
	if (is_link_local(ends.local))
		ends.local.in6.scope_id = ends.peer.in6.scope_id = interface.index;
	return ends;
}

int take_request(Service &service, Request &request)
{
	Manager &manager = Manager::get();
	const auto taken = [&]() -> kern::Result<> {
		Interface interface;
		const Ends ends = KERN_TRY(request.arrive(service, manager.resolver(), interface));
		const auto listener = manager.find_listener(service, ends, interface,
							    *request.device, request.qp_type);
		if (!listener)
			return kern::Error{-EINVAL};

		kern::Guard handling(listener->handler_lock());
		/*
		 * The listener is still starting and may fail to. On InfiniBand, the peer repeats
		 * its request. On iWARP, the peer is refused and has to connect again.
		 */
		if (listener->state() == State::addr_bound)
			return kern::Error{-ENOMEM};
		if (listener->state() != State::listen)
			return kern::Error{-EINVAL};
		const auto fresh = KERN_TRY(Id::create_for(*listener, request.qp_type));
		/* This reference belongs to the consumer, if it accepts the new ID. */
		(void)kern::Ref<Id>(fresh).release();
		rdma_cm_event event{};
		event.event = RDMA_CM_EVENT_CONNECT_REQUEST;
		const auto *data = static_cast<const u8 *>(request.private_data) + ends.header;
		const u8 length = request.private_data_len - ends.header;
		if (request.qp_type == IB_QPT_UD) {
			event.param.ud.private_data = data;
			event.param.ud.private_data_len = length;
		} else {
			event.param.conn = request.conn;
			event.param.conn.private_data = data;
			event.param.conn.private_data_len = length;
		}
		/*
		 * With the handler lock held, the new ID reports no event about its interface
		 * before the request has been reported, and none at all if it is refused.
		 */
		kern::Guard handling_fresh(fresh->handler_lock());
		const auto begun = fresh->begin(ends, interface, request);
		const int result = begun.ok() ? listener->offer(*fresh, event) : begun.error();
		if (result == 0) {
			request.kept();
			return {};
		}
		request.not_accepted();
		if (fresh->begin_end())
			manager.reap(*fresh);
		return kern::Error{result};
	}();
	return taken.error();
}

} // namespace rdma_cm
