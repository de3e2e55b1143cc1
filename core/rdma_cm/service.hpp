// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines a service, which is a port of a port space: the IDs that are bound to it, in all network
 * namespaces, and a listener on each device that receives the requests for those IDs that listen.
 * The namespaces share a device's listener, because a device has only one for each service. IDs of
 * different namespaces share nothing except these listeners.
 */
#pragma once

#include <kern/completion.hpp>
#include <kern/xarray.hpp>

#include "id.hpp"

namespace rdma_cm
{

/*
 * A service on one device. It exists until its last request has been handled, even if its IDs are
 * destroyed before that.
 */
struct Listener {
	Listener(ib_device &on, Service &of);

	kern::ListNode node;
	/* In the list of the task that starts this listener. */
	kern::ListNode beginning_node;
	ib_device &device;
	const kern::Ref<Service> service;
	/*
	 * Protected by the manager's lock: the listener has been removed from its service and must
	 * be destroyed.
	 */
	bool doomed = false;
	/*
	 * Completed when Manager::begin() has returned and the task that started the listener no
	 * longer uses it. Must be awaited before the listener is stopped or destroyed.
	 */
	kern::Completion settled;
	kern::Owned<Listening> listening; /* destroyed first, because this waits for requests */
};
struct Listeners : kern::List<Listener, &Listener::node> {
};
using BeginningListeners = kern::List<Listener, &Listener::beginning_node>;

/*
 * Protected by the manager's lock, unless stated otherwise. All IDs of the service together hold
 * one reference.
 */
class Service : public kern::RefCounted<Service>
{
public:
	Service(rdma_ucm_port_space of, u16 number) : space(of), port(number) {}

	const rdma_ucm_port_space space;
	const u16 port;
	/*
	 * Held while an ID starts or stops to listen here, so that only the next such ID waits for
	 * the devices. Lock order: inside of an ID's own lock, outside of the manager's lock.
	 */
	kern::NoIoMutex listen_lock{KERN_LOCK_CLASS("rdma_cm.listen")};
	kern::List<Id, &Id::service_node> ids;
	unsigned int listening = 0; /* number of listening IDs */
	unsigned int backlog = 0;
	Listeners listeners;

	/*
	 * Checks whether an ID may be bound to this port in addition to the IDs that are bound to
	 * it already. Errors: EADDRINUSE, EADDRNOTAVAIL.
	 */
	kern::Result<> admit(const Id &id, bool to_listen) const;
	/* Returns an ID of the namespace that is bound to this port, or nullptr. */
	Id *find_in(const NetNamespace &net) const;
	/* Returns the ID that listens for a request, or nullptr. */
	Id *find(const Ends &ends, const Interface &interface, ib_device &device,
		 ib_qp_type type) const;
};

inline Listener::Listener(ib_device &on, Service &of)
    : device(on), service(kern::Ref<Service>::share(of))
{
}

/*
 * A request that has arrived at a listener. The transport implements it. take() creates the
 * connection of the new ID.
 */
class Request
{
public:
	virtual kern::Result<kern::Owned<Connection>> take(Id &id) = 0;
	/*
	 * Called if the consumer has accepted the new ID. Lets the peer wait for the consumer's
	 * reply.
	 */
	virtual void kept() = 0;
	/*
	 * Called if the consumer has not accepted the new ID. The connection manager owns the
	 * connection again.
	 */
	virtual void not_accepted() = 0;
	/*
	 * Returns the addresses of the request and, if they are IP addresses, the interface at
	 * which it arrived. The default implementation reads them from the private data, as
	 * InfiniBand does. Errors: EHOSTUNREACH, ENODEV, EINVAL.
	 */
	virtual kern::Result<Ends> arrive(const Service &service, Resolver &resolver,
					  Interface &interface);

	ib_device *device = nullptr;
	u32 port_num = 0;
	ib_qp_type qp_type{};
	u16 pkey = 0;
	ib_gid sgid{};                     /* local GID that the peer has used */
	const sa_path_rec *path = nullptr; /* set for connections only */
	const void *private_data = nullptr;
	u8 private_data_len = 0;
	rdma_conn_param conn{}; /* without private data; set for connections only */

protected:
	~Request() = default;
	/* Checks that both addresses are unicast addresses. Errors: EHOSTUNREACH. */
	static kern::Result<> check_ends(const Ends &ends);
};

/*
 * Handles a request. Returns 0 if a consumer has accepted it, -ENOMEM if the transport should not
 * answer, or another error if it should reject the request. Context: process, without locks.
 */
int take_request(Service &service, Request &request);

} // namespace rdma_cm
