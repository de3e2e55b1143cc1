// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the interface to the connection managers: the manager for InfiniBand (ib_transport.cpp),
 * and the manager for devices that connect by TCP themselves (iw_transport.cpp). No other file of
 * this module uses functions of ib_cm.h and iw_cm.h.
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

/* An event of the transport for an id: Event::responded to ::timewait_exit, with its parameters. */
struct TransportEvent {
	Event event;
	rdma_cm_event_type type;
	int status = 0;
	decltype(rdma_cm_event::param) param{};
};

/*
 * The connection of an ID, or its service ID resolution (SIDR). The functions are called with the
 * ID's lock held. The destructor is called without it, because it waits until no event is being
 * delivered to the ID. Errors of all functions: EINVAL in the wrong state or for invalid
 * parameters; those of the verbs and of the connection manager.
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
	 * Returns true if the transport itself moves the QP to RTS and out of it, and the ID only
	 * follows. Otherwise, the ID moves the QP to RTS when it connects, and to ERR when the
	 * connection ends.
	 */
	virtual bool controls_qp() const { return false; }
};

/*
 * Listens for requests for a service on a device and creates IDs for them; see Service. The
 * destructor waits for requests that are being delivered, so it is called without locks.
 */
class Listening
{
public:
	virtual ~Listening() = default;
	/*
	 * Starts listening. Requests may be delivered from now on, even before this function
	 * returns, and even if it fails. After a failure, only stop() and the destructor may be
	 * called. All three may wait for the device, so they are not called with a lock that IDs of
	 * other services need. Errors: those of the connection manager; EIO if the device has
	 * failed.
	 */
	virtual kern::Result<> begin(unsigned int backlog) = 0;
	virtual void set_backlog(unsigned int backlog) = 0;
	/*
	 * Stops listening, so that the service is free for the next listener. Requests that are
	 * being delivered are completed. Afterwards, only the destructor may be called.
	 */
	virtual void stop() = 0;
};

class Transport
{
public:
	/* Errors: ENOMEM, ENODEV. Context: process. */
	virtual kern::Result<kern::Owned<Connection>> create_connection(Id &id) = 0;
	/* Creates a listener without starting it. */
	virtual kern::Result<kern::Owned<Listening>> create_listening(ib_device &device,
								      Service &service) = 0;
	/* Returns the attributes for moving a QP to INIT while there is no connection yet. */
	virtual kern::Result<> idle_attributes(const Id &id, ib_qp_attr &attr, int &mask) = 0;
	/* Returns true if a route is a path record, which must be queried from the SA. */
	virtual bool has_paths() const = 0;
	/* Returns true if the transport can listen on ports of this space. */
	virtual bool serves(rdma_ucm_port_space space) const = 0;

protected:
	~Transport() = default;
};

} // namespace rdma_cm
