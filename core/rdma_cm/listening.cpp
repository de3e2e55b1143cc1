// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements listening on a port of a port space, which is called a service (service.hpp). A device
 * may take long to respond. So while the device is called, only the service's listen lock is held
 * and not the manager's lock.
 */
#include "manager.hpp"

#include <kern/log.hpp>

namespace rdma_cm
{

/*
 * Moves the listener from its service to `doomed`. The caller destroys the listeners in `doomed`.
 */
void Manager::doom(Listener &listener, Listeners &doomed)
{
	listener.doomed = true;
	listener.node.unlink();
	doomed.push_back(listener);
}

/*
 * Creates the listener of a service on a device and adds it to `beginning`. begin() starts it
 * later, without the manager's lock.
 */
kern::Result<> Manager::listen_on(Device &device, Service &service, BeginningListeners &beginning)
{
	/* All ports of a device use the same transport. */
	Transport &transport = transport_of(device.ib(), rdma_start_port(&device.ib()));
	bool connecting = false;
	for (u32 port = rdma_start_port(&device.ib()); port <= rdma_end_port(&device.ib()); port++)
		connecting = connecting || rdma_port_has(&device.ib(), port, connects);
	if (!connecting || !transport.serves(service.space))
		return {};
	auto listener = KERN_TRY(kern::make<Listener>(kern::Gfp::kernel, device.ib(), service));
	listener->listening = KERN_TRY(transport.create_listening(device.ib(), service));
	beginning.push_back(*listener);
	service.listeners.push_back(*listener.release());
	return {};
}

/*
 * Starts a listener. A listener that fails to start may still have delivered a request that is
 * being handled, so it is then added to `doomed`, unless another caller has it in its list. The
 * caller must not use the listener after the return.
 */
kern::Result<> Manager::begin(Listener &listener, Listeners &doomed)
{
	Service &service = *listener.service;
	unsigned int backlog;
	{
		kern::Guard guard(lock_);
		backlog = service.backlog;
	}
	const auto begun = listener.listening->begin(backlog);
	kern::Guard guard(lock_);
	if (!begun.ok()) {
		if (!listener.doomed)
			doom(listener, doomed);
	} else if (service.backlog != backlog) {
		listener.listening->set_backlog(service.backlog);
	}
	listener.settled.complete_all();
	return begun;
}

kern::Result<> Manager::begin_all(const Id &id, BeginningListeners &beginning, Listeners &doomed)
{
	kern::Result<> all;
	while (Listener *listener = beginning.pop_front()) {
		ib_device &device = listener->device;
		const auto begun = begin(*listener, doomed);
		if (begun.ok() || !all.ok())
			continue;
		/* The failure of a device does not prevent listening on the others. */
		if (begun.error() == -EIO && id.device != &device)
			kern_warning("a device that does not work does not listen\n");
		else
			all = begun;
	}
	return all;
}

kern::Result<> Manager::listen(Id &id, unsigned int backlog, Listeners &doomed)
{
	Service &service = *id.service;
	kern::Guard listening(service.listen_lock);
	BeginningListeners beginning;
	kern::Result<> made;
	bool shared;
	{
		kern::Guard guard(lock_);
		KERN_TRY(service.admit(id, true));
		if (service.backlog < backlog)
			service.backlog = backlog;
		/*
		 * Requests may arrive from now on. Until the ID's state is "listen", take_request()
		 * does not accept them.
		 */
		id.listening = true;
		shared = std::exchange(id.reuse, false);
		if (service.listening++ == 0) {
			for (Device &device : devices_)
				if (made.ok())
					made = listen_on(device, service, beginning);
		} else {
			for (Listener &listener : service.listeners)
				listener.listening->set_backlog(service.backlog);
		}
	}
	const auto begun = begin_all(id, beginning, doomed);
	if (made.ok() && begun.ok())
		return {};
	{
		kern::Guard guard(lock_);
		stop_listening(id, doomed);
		id.reuse = shared;
	}
	stop_all(doomed);
	return made.ok() ? begun : made;
}

/*
 * Ends the listening of an ID. If no other ID listens on the service, its listeners are added to
 * `doomed`, and the caller must call stop_all().
 */
void Manager::stop_listening(Id &id, Listeners &doomed)
{
	lock_.assert_held();
	Service &service = *id.service;
	id.listening = false;
	if (--service.listening != 0)
		return;
	while (Listener *listener = service.listeners.front())
		doom(*listener, doomed);
	service.backlog = 0;
}

/*
 * Stops listeners on their devices. Their services are then free, so the next ID that listens need
 * not wait for requests that are being handled.
 */
void Manager::stop_all(Listeners &doomed)
{
	for (Listener &listener : doomed) {
		listener.settled.wait();
		listener.listening->stop();
	}
}

void Manager::unlisten(Id &id)
{
	{
		kern::Guard guard(lock_);
		if (!id.listening)
			return;
	}
	Listeners doomed;
	{
		kern::Guard ending(id.service->listen_lock);
		{
			kern::Guard guard(lock_);
			stop_listening(id, doomed);
		}
		stop_all(doomed);
	}
	destroy_listeners(doomed);
}

void Manager::destroy_listeners(Listeners &doomed)
{
	while (Listener *listener = doomed.pop_front()) {
		listener->settled.wait();
		kern::destroy(listener);
	}
}

kern::Ref<Id> Manager::find_listener(Service &service, const Ends &ends, const Interface &interface,
				     ib_device &device, ib_qp_type type)
{
	kern::Guard guard(lock_);
	Id *found = service.find(ends, interface, device, type);
	return found ? kern::Ref<Id>::share(*found) : kern::Ref<Id>();
}

} // namespace rdma_cm
