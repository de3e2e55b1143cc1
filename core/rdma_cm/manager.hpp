// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Holds state that all IDs share: the devices, the ports that IDs are bound to, and the addresses
 * that are being resolved.
 *
 * Locks, outermost first: an ID's handler lock (a listener's before its new ID's); an ID's own
 * lock; a service's listen lock; the manager's lock; then locks that the CM and the midlayer take
 * in their functions. No function that waits for a handler is called with an ID's own lock or the
 * manager's lock held. No function that waits for a device is called with the manager's lock held,
 * so an unresponsive device delays only the IDs that use it.
 */
#pragma once

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/reaper.hpp>
#include <kern/ref.hpp>
#include <kern/time.hpp>
#include <kern/wait_queue.hpp>
#include <kern/work.hpp>

#include "resolver.hpp"
#include "service.hpp"

namespace rdma_cm
{

/* A device and the IDs that are bound to it. All IDs must be destroyed before the device. */
class Device : public kern::RefCounted<Device>
{
public:
	explicit Device(ib_device &ib) : ib_(ib) { kern_xa_init(&numbers); }
	~Device() { kern_xa_destroy(&numbers); }
	ib_device &ib() const { return ib_; }

	/* All members are protected by the manager's lock. */
	kern::ListNode node;
	kern::List<Id, &Id::device_node> ids;
	/* IDs that were notified of the device's removal */
	kern::List<Id, &Id::device_node> notified_ids;
	/* The IDs of both lists, by number. The highest number is never assigned. */
	kern_xarray numbers;
	u32 next_number = 0;
	/* The number of IDs in both lists. When it becomes 0, Manager::remove() is woken. */
	kern::Atomic<unsigned int> bound{0};

private:
	ib_device &ib_;
};

/* A port with one of these capabilities has a connection manager. */
inline constexpr u32 connects = RDMA_CORE_CAP_IB_CM | RDMA_CORE_CAP_IW_CM;

class Manager
{
public:
	/* Errors: ENOMEM. Context: process, as for all functions of this class. */
	static kern::Result<> start(Resolver &resolver, Transport &infiniband, Transport &iwarp);
	/* There must be no IDs. */
	static void stop();
	static Manager &get();

	Resolver &resolver() const { return resolver_; }
	NetNamespaces &namespaces() { return namespaces_; }
	Transport &transport_of(const ib_device &device, u32 port_num) const
	{
		return rdma_port_has(&device, port_num, RDMA_CORE_CAP_IW_CM) ? iwarp_ : infiniband_;
	}
	ib_sa_client &sa() { return sa_; }
	kern::WorkQueue &queue() { return queue_; }

	kern::Result<> add(ib_device &ib);
	/* Returns when all IDs of the device have been destroyed. */
	void remove(ib_device &ib);

	/*
	 * Binds an ID to the device that has a port with this GID and P_Key; a P_Key of 0 selects
	 * the port's first one. Errors: ENODEV. The caller holds the ID's lock.
	 */
	kern::Result<> attach(Id &id, const ib_gid &gid, u16 pkey);
	/*
	 * Like attach(), but prefers an active port to other ports. The ID gets the GID with index
	 * 0 of the port.
	 */
	kern::Result<> attach_any(Id &id, u16 pkey);
	/* Returns true if attach() would find a port for an ID of this network namespace. */
	bool has(u64 net, const ib_gid &gid);
	/*
	 * Like attach(), but with a port in the subnet of that GID, or the port that has the GID.
	 */
	kern::Result<> attach_towards(Id &id, const ib_gid &gid, u16 pkey);
	/* Like attach(), but with a given port, for an ID that was created for a request. */
	kern::Result<> attach_to(Id &id, ib_device &ib, u32 port_num);
	void detach(Id &id);

	/*
	 * Binds the ID to the port in its address, or to a free port if that is 0. Errors:
	 * EADDRINUSE, EADDRNOTAVAIL, ENOMEM, EACCES. The caller holds the ID's lock.
	 */
	kern::Result<> bind(Id &id);
	/*
	 * Sets whether the ID shares its port with other IDs that do. A listener does not share its
	 * port. The caller holds the ID's lock.
	 */
	void share_port(Id &id, bool wanted);
	/*
	 * Errors: EADDRINUSE; those of Listening::begin(), after which the listeners that have been
	 * started are in @doomed. The caller holds the ID's lock.
	 */
	kern::Result<> listen(Id &id, unsigned int backlog, Listeners &doomed);
	/*
	 * Destroys the listeners, and waits for requests that are being handled. The caller holds
	 * no lock.
	 */
	static void destroy_listeners(Listeners &doomed);
	/*
	 * Undoes listen(), and waits for requests that are being handled. The caller holds no lock.
	 */
	void unlisten(Id &id);
	/* Undoes bind(). */
	void release(Id &id);
	/* Returns the ID that listens for a request; empty if there is none. */
	kern::Ref<Id> find_listener(Service &service, const Ends &ends, const Interface &interface,
				    ib_device &device, ib_qp_type type);

	/*
	 * Adds the ID to those that wait for a neighbour: Id::retry() is called when it may have
	 * been resolved. The caller holds the ID's lock.
	 */
	void wait_for_neighbour(Id &id);
	void stop_waiting(Id &id);
	void retry(u64 net)
	{
		if (namespaces_.request_retry(net))
			queue_.queue(retry_work_);
	}
	/* Calls Id::check_address() for all IDs that are bound to an interface. */
	void check_interfaces() { queue_.queue(check_work_); }

	/*
	 * For resource tracking (rdma/ib_resources.h). count(): the number of IDs that are bound to
	 * a device. show(): the first ID with at least this number. Errors: ENOENT.
	 */
	u32 count(ib_device &ib);
	kern::Result<> show(ib_device &ib, u32 number, ib_resource_info &info);

	/*
	 * Destroys an ID that its handler has released; this is deferred, because a handler cannot
	 * wait for itself.
	 */
	void reap(Id &id) { reaper_.add(id); }

private:
	Manager(Resolver &resolver, Transport &infiniband, Transport &iwarp)
	    : resolver_(resolver), infiniband_(infiniband), iwarp_(iwarp), namespaces_(resolver)
	{
	}
	~Manager() = default;
	friend class kern::Static<Manager>;

	kern::Result<> open();
	void close();
	Device *find(ib_device &ib) KERN_REQUIRES(lock_);
	kern::Ref<Id> find_id(ib_device &ib, u32 number, ib_resource_info &info);
	kern::Result<> attach_locked(Id &id, Device &device, u32 port_num) KERN_REQUIRES(lock_);
	template<class Suits>
	Device *find_port(u64 net, u32 caps, u16 pkey, u32 &port, Suits suits) KERN_REQUIRES(lock_);
	template<class Suits>
	kern::Result<> attach_port(Id &id, u32 caps, u16 pkey, Suits suits);
	kern::XArray<Service> &services_of(rdma_ucm_port_space space);
	kern::Result<> choose_port(Id &id) KERN_REQUIRES(lock_);
	kern::Result<> bind_to(Id &id, u16 port) KERN_REQUIRES(lock_);
	kern::Result<> listen_on(Device &device, Service &service, BeginningListeners &beginning)
		KERN_REQUIRES(lock_);
	kern::Result<> begin(Listener &listener, Listeners &doomed);
	kern::Result<> begin_all(const Id &id, BeginningListeners &beginning, Listeners &doomed);
	void stop_listening(Id &id, Listeners &doomed) KERN_REQUIRES(lock_);
	void doom(Listener &listener, Listeners &doomed) KERN_REQUIRES(lock_);
	static void stop_all(Listeners &doomed);
	template<class Body>
	void for_each_service(Body body);
	void retry_all();
	void check_all();
	kern::Ref<Id> next_to_check() KERN_REQUIRES(lock_);

	Resolver &resolver_;
	Transport &infiniband_, &iwarp_;
	NetNamespaces namespaces_;
	ib_sa_client sa_{};
	kern::WorkQueue queue_;
	kern::NoIoMutex lock_{KERN_LOCK_CLASS("rdma_cm.manager")};
	kern::WaitQueue ids_gone_{KERN_LOCK_CLASS("rdma_cm.ids_gone")};
	kern::List<Device, &Device::node> devices_ KERN_GUARDED_BY(lock_);
	kern::XArray<Service> services_[4];
	/*
	 * Waiting IDs that retry_all() has taken from the lists of their namespaces, and will call.
	 */
	kern::List<NeighbourWaiter, &NeighbourWaiter::waiting_node>
		retrying_ KERN_GUARDED_BY(lock_);
	u32 check_ KERN_GUARDED_BY(lock_) = 0; /* number of the current check of all interfaces */
	kern::Work retry_work_{kern::method<&Manager::retry_all>, this};
	kern::Work check_work_{kern::method<&Manager::check_all>, this};
	kern::Reaper<Id, &Id::reap_node, &Id::end> reaper_{KERN_LOCK_CLASS("rdma_cm.reaper"),
							   queue_};
};

} // namespace rdma_cm
