// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the communication manager of one device: its ports, and its IDs, indexed by every
 * identifier that a peer can use for them.
 *
 * Locks: one mutex per device protects its tables, the states of all its IDs and the counters of
 * its ports. With the mutex held, only the locks of midlayer functions are taken, and no handler is
 * called. The list of objects to free has its own lock, which nests inside the mutex.
 */
#pragma once

#include <kern/lock.hpp>
#include <kern/wait_queue.hpp>
#include <kern/work.hpp>
#include <kern/xarray.hpp>
#include <rdma/ib_sa.h>

#include "id.hpp"
#include "listeners.hpp"
#include "pair_table.hpp"
#include "port.hpp"

namespace cm
{

class Device : public kern::RefCounted<Device>
{
public:
	/*
	 * Context: process. Errors: EOPNOTSUPP for a device without a port that the CM can serve;
	 * ENOMEM; those of the verbs.
	 */
	static kern::Result<kern::Ref<Device>> create(ib_device &ib);
	~Device();

	/*
	 * Called when the device is removed: all IDs are closed and notified. After the return, no
	 * ID uses the device. Context: process.
	 */
	void leave();

	ib_device &ib() const { return ib_; }
	kern::ListNode node; /* in the list of all devices (init.cpp) */
	kern::NoIoMutex &lock() KERN_RETURN_CAPABILITY(lock_) { return lock_; }

	/* The caller holds the lock, which gone(), pd() and port() assert. */
	bool gone();
	kern::Ref<rdma::Pd> pd();
	/* Returns nullptr for a port without a CM. */
	Port *port(u32 number);

	/*
	 * Handles a received message, for which the ID is looked up. Context: process, without the
	 * lock.
	 */
	void receive(Port &port, Received received) KERN_EXCLUDES(lock_);

	/* Assigns an ID its local communication ID. Errors: ENOMEM, EBUSY. */
	kern::Result<> add(Id &id);
	void remove(u32 local_id);

	/* Replies to messages that belong to no ID (receive.cpp). */
	void reject(Port &port, const Received &received, ib_cm_rej_reason reason,
		    kern::ConstBytes info = {});
	void answer_unknown_dreq(Port &port, const Received &received);
	/* Closes a connection after its peer has used the same QP for a new connection. */
	void end_stale(Id &old, const Received &received);

	/*
	 * Called when the SA has returned a path to the peer of an ID, or has failed (@status); see
	 * moved.cpp. Called without the lock.
	 */
	struct PeerPathQuery;
	void peer_path_found(const PeerPathQuery &asked, int status, const sa_path_rec *path)
		KERN_EXCLUDES(lock_);

	/* All tables are protected by the lock. */
	PairTable<Id> remote_ids;  /* connections by the peer's communication ID */
	PairTable<Id> remote_qpns; /* live connections by the peer's QP */
	PairTable<Id> resolutions; /* SIDR requests by request ID and source LID */
	Listeners<Id> listeners;
	u64 next_service_id = IB_CM_ASSIGN_SERVICE_ID_HOST + 1;
	/* Tasks that wait for the handlers of new IDs to return. */
	kern::WaitQueue handlers_done{KERN_LOCK_CLASS("cm.handlers")};

private:
	explicit Device(ib_device &ib) : ib_(ib), next_id_(kern::random_u32() | 1) {}
	kern::Result<> open();
	Id *find(u32 local_id) KERN_REQUIRES(lock_);
	Id *find(const ib::CmPair &pair) KERN_REQUIRES(lock_);
	Id *find_rejected(const ib::CmRej &rej) KERN_REQUIRES(lock_);
	void take(Port &port, Received received) KERN_REQUIRES(lock_);
	kern::Result<> take_req(Port &port, Received received) KERN_REQUIRES(lock_);
	kern::Result<> take_sidr_req(Port &port, Received received) KERN_REQUIRES(lock_);
	kern::Result<> begin(kern::Owned<Id> id, Port &port, Received received,
			     kern::Ref<Address> address, Id &listener, Event event)
		KERN_REQUIRES(lock_);
	void answer_by_itself(Port &port, const Received &received, ib::Mad &mad,
			      ib::CmAttribute attribute) KERN_REQUIRES(lock_);
	void query_peer_path(Id &id, const Received &received, bool ends) KERN_REQUIRES(lock_);
	static void count_failure(Port &port, int error);
	kern::Result<kern::Ref<Address>> address_of_sender(const Port &port,
							   const Received &received)
		KERN_REQUIRES(lock_);

	ib_device &ib_;
	kern::NoIoMutex lock_{KERN_LOCK_CLASS("cm.device")};
	bool gone_ KERN_GUARDED_BY(lock_) = false;
	/* a path query for a peer is pending */
	bool peer_query_pending_ KERN_GUARDED_BY(lock_) = false;
	kern::Ref<rdma::Pd> pd_;
	kern::OwnedArray<kern::Owned<Port>> ports_;
	kern::XArray<Id> ids_;
	u32 next_id_ KERN_GUARDED_BY(lock_);
};

/* The work queue of all devices. Context: process. */
kern::WorkQueue &work_queue();
/*
 * A work queue that runs only the timers of IDs, so that they are not delayed by handlers. Like
 * work_queue(), it has WQ_MEM_RECLAIM, because memory reclaim may wait for it.
 */
kern::WorkQueue &timer_queue();
/* The CM's client of the subnet administrator. */
ib_sa_client &sa_client();
/*
 * Frees an ID after finish(). This is deferred, because it may be called from a handler of the ID.
 */
void reap(kern::Owned<Id> id);

} // namespace cm
