// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Makes the connections of a device's ids: InfiniBand's communication manager (ib_transport.cpp),
 * or a device that connects by TCP itself (iw_transport.cpp). No other file of this module uses
 * functions of ib_cm.h and iw_cm.h.
 */
#pragma once

#include <kern/memory.hpp>
#include <kern/result.hpp>
#include <rdma/rdma_cm.h>

#include "states.hpp"

namespace rdma_cm
{

class Id;
class Service;

/* An event of the transport for an id: Event::responded to ::waited_enough, with its parameters. */
struct TransportEvent {
	Event event;
	rdma_cm_event_type type;
	int status = 0;
	decltype(rdma_cm_event::param) param{};
};

/*
 * An id's end of a connection, or of a resolution. Its functions are called with the ID's lock
 * held, except the destructor, which waits until no event is being delivered to the ID and is
 * called without it. Errors of all: EINVAL for the wrong moment or what does not fit; those of the
 * verbs and of the manager.
 */
class Connection
{
public:
	virtual ~Connection() = default;
	virtual kern::Result<> connect(const rdma_conn_param &param) = 0;
	virtual kern::Result<> accept(const rdma_conn_param *param) = 0;
	virtual kern::Result<> reject(const void *data, u8 length, u8 reason) = 0;
	virtual kern::Result<> disconnect() = 0;
	virtual kern::Result<> notify(ib_event_type event) = 0;
	virtual kern::Result<> qp_attributes(ib_qp_attr &attr, int &mask) = 0;
	/*
	 * True if the connection moves a QP to RTS, and out of it, so that the id only follows;
	 * otherwise the id moves it there before it connects, and to the error state when it
	 * ends.
	 */
	virtual bool leads_qp() const { return false; }
};

/*
 * Has new ids made for requests for a service on a device; see Service. The destructor waits for
 * requests that are being delivered, so it is called without locks.
 */
class Listening
{
public:
	virtual ~Listening() = default;
	/*
	 * Requests may be delivered from now on, even before this returns, and even if it fails.
	 * After a failure only stop() and the destructor are allowed. It may wait for the device,
	 * as stop() and the destructor may: none of the three is called with a lock that ids of
	 * other services need. Errors: those of the manager; EIO of a device that does not work any
	 * more.
	 */
	virtual kern::Result<> begin(unsigned int backlog) = 0;
	virtual void set_backlog(unsigned int backlog) = 0;
	/*
	 * The service is free for the next listener; deliveries in progress are completed.
	 * Afterwards only the destructor is allowed.
	 */
	virtual void stop() = 0;
};

class Transport
{
public:
	/* Errors: ENOMEM, ENODEV. Context: process. */
	virtual kern::Result<kern::Owned<Connection>> create_connection(Id &id) = 0;
	/* Creates a listener that is not started. */
	virtual kern::Result<kern::Owned<Listening>> create_listening(ib_device &device,
								      Service &service) = 0;
	/* Attributes to move a QP to INIT while there is no connection yet. */
	virtual kern::Result<> idle_attributes(const Id &id, ib_qp_attr &attr, int &mask) = 0;
	/* True if a route is a path that has to be queried from the subnet administration. */
	virtual bool has_paths() const = 0;
	/* True if it can listen on ports of that space. */
	virtual bool serves(rdma_ucm_port_space space) const = 0;

protected:
	~Transport() = default;
};

} // namespace rdma_cm
