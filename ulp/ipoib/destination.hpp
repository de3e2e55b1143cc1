/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Destinations of packets: hardware addresses, and the address handles for them. The lookup for
 * each packet takes no lock; creation, resolution and removal take one.
 */
#pragma once

#include "wire.hpp"

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/netdev.hpp>
#include <kern/rcu.hpp>
#include <kern/ref.hpp>
#include <kern/time.hpp>
#include <rdma/ib_sa.h>

namespace ipoib
{

/*
 * An address handle that a destination has or had. It must outlive all requests that use it
 * (rdma_destroy_ah()), so a replaced handle stays in its table until they have completed.
 */
struct Handle {
	/* Returns an empty owner if there is no memory or no address handle. Context: any. */
	static kern::Owned<Handle> create(ib_pd *pd, rdma_ah_attr &where);

	explicit Handle(ib_ah *made) : ah(made) {}
	~Handle() { rdma_destroy_ah(ah, 0); }
	Handle(const Handle &) = delete;
	Handle &operator=(const Handle &) = delete;

	ib_ah *const ah;
	/* Used while it rests in the table. */
	kern::ListNode node;
	unsigned rounds = 0;

private:
	friend class DestinationTable;
	/* Valid until its readers have finished. */
	class DestinationTable *table_ = nullptr;
	kern::rcu::Deferred deferred_;

	void rest();
};

/* One peer or group. The table has a reference, and so has the code that resolves it. */
class Destination : public kern::RefCounted<Destination>
{
public:
	Destination(class DestinationTable &table, const HardwareAddress &address)
	    : table_(table), address_(address)
	{
	}
	~Destination();

	const HardwareAddress &address() const { return address_; }
	u32 qpn() const { return address_.is_multicast() ? ib::qpn_multicast : address_.qpn(); }
	/* Returns nullptr until it is resolved. For RCU readers. */
	ib_ah *ah() const { return kern::rcu::dereference(ah_); }

	/* Returns true if it was removed from the table. Context: any. */
	bool is_removed() const { return __atomic_load_n(&removed_, __ATOMIC_RELAXED); }

	/*
	 * Marks the destination as used. A destination that was not marked between two rounds is
	 * unused.
	 */
	void touch()
	{
		if (!__atomic_load_n(&touched_, __ATOMIC_RELAXED))
			__atomic_store_n(&touched_, true, __ATOMIC_RELAXED);
	}

private:
	friend class DestinationTable;
	friend class ActiveConnections;

	DestinationTable &table_;
	const HardwareAddress address_;
	ib_ah *ah_ = nullptr; /* that of handle_, for readers */

	/* Protected by the table's lock. */
	kern::Owned<Handle> handle_;
	Destination *next_ = nullptr; /* next in its bucket; also followed by readers */
	/* in the list of destinations whose GIDs have the same hash */
	kern::ListNode of_gid_;
	kern::ListNode unresolved_; /* in the list of destinations that could not be resolved */
	kern_skb_queue waiting_{};
	bool resolving_ = false;
	bool touched_ = true;
	u8 idle_rounds_ = 0;
	bool stale_ = false; /* usable, but must be resolved again */
	bool removed_ = false;
	kern::Owned<sa_path_rec> path_; /* in connected mode: the path of handle_ */
	u64 retry_at_ = 0;              /* earliest time of the next attempt, in ns */
	kern::rcu::Deferred deferred_;

	/* Owned by ActiveConnections, under its lock. */
	class Connection *connection_ = nullptr;
	u64 connect_at_ = 0; /* earliest time of the next attempt, in ns */

	void drop_reference();
};

class DestinationTable
{
public:
	static constexpr u32 buckets = 1024, gid_buckets = 256;
	/*
	 * More destinations than this indicate a flood. A destination that could not be resolved is
	 * replaced by a new one; if there is none, packets to further destinations are dropped.
	 */
	static constexpr u32 capacity = 16384;
	/*
	 * One GID may use this fraction of the free entries, which is 256 of an empty table (a port
	 * may have many interfaces in a partition, each with its own QP number). So a malicious
	 * peer leaves space for others, however many GIDs it can use.
	 */
	static constexpr u32 share = 64;
	/* Packets that wait for one address, and for all. */
	static constexpr u32 waiting_max = 64;
	static constexpr u32 waiting_of_all_max = 1024;

	/* Secret key of the hash, as peers choose the addresses and must not choose buckets. */
	struct Secret {
		u64 prefix, interface_id;
		u64 qpn; /* odd */
		static Secret draw();
	};

	explicit DestinationTable(const Secret &secret = Secret::draw()) : secret_(secret) {}
	~DestinationTable();

	/* Context: under rcu::ReadGuard, which the result must not outlive. */
	Destination *find(const HardwareAddress &address) const;
	/* Does the same, and returns a reference. Context: any but hard interrupt. */
	kern::Ref<Destination> get(const HardwareAddress &address);

	enum class Action : u8 {
		send,    /* it has been resolved meanwhile: send the packet now */
		wait,    /* queued; the address is already being resolved */
		resolve, /* queued; the caller must resolve the address */
		drop,    /* refused: too many packets wait, or the last attempt was too recent */
		/*
		 * refused, because too many packets wait for other addresses; the caller must
		 * resolve this one
		 */
		drop_and_resolve,
	};
	/*
	 * Finds or creates the destination of a packet whose address is not resolved, and queues
	 * the packet there. A refused packet stays with the caller. Context: softirq.
	 */
	Action wait(const HardwareAddress &address, sk_buff *skb,
		    kern::Ref<Destination> &destination);
	/* Returns true for the caller that has to query again. Context: any but hard interrupt. */
	bool begin_refresh(Destination &destination);

	/*
	 * Stores the result of a resolution: a handle, or none. Returns the waiting packets, which
	 * the caller sends or drops. Does not wait, because one work item per port delivers all
	 * responses of the SA. Context: any but hard interrupt.
	 */
	kern_skb_queue resolved(Destination &destination, kern::Owned<Handle> handle,
				kern::Owned<sa_path_rec> path = {});
	/*
	 * Gets the path of a resolved destination; returns false if it was not kept. Context: any
	 * but hard interrupt.
	 */
	bool path_of(const Destination &destination, sa_path_rec &path);
	/*
	 * Remove a destination, all, or those that were unused for @rounds calls. Waiting packets
	 * are dropped; returns their number. Context: process.
	 */
	u32 remove(const HardwareAddress &address);
	u32 remove_all();
	u32 remove_unused(unsigned rounds);
	/*
	 * Keeps a handle that readers can no longer find until its requests have completed.
	 * Context: any but hard interrupt.
	 */
	void rest(kern::Owned<Handle> handle);
	/*
	 * Does the same for a handle that current readers may have found. Context: any but hard
	 * interrupt.
	 */
	void rest_after_readers(kern::Owned<Handle> handle);
	/*
	 * Destroys handles that have rested for @rounds calls; 0: all, because there are no
	 * requests. Context: any but hard interrupt.
	 */
	void end_rested(unsigned rounds);
	/*
	 * Marks all destinations with a path, but not groups. They stay usable until the path has
	 * been queried again.
	 */
	void mark_stale();
	/* Marks one of them. Context: any but hard interrupt. */
	void doubt(Destination &destination);
	/*
	 * Returns true if a resolved destination should be queried again, and its next attempt is
	 * due.
	 */
	static bool is_stale(const Destination &destination)
	{
		return __atomic_load_n(&destination.stale_, __ATOMIC_RELAXED) &&
		       kern::now_ns() >= __atomic_load_n(&destination.retry_at_, __ATOMIC_RELAXED);
	}

	/*
	 * Returns the number of entries that the longest lookup compares. For tests. Context: any
	 * but hard interrupt.
	 */
	u32 longest();

private:
	u32 bucket_of(const HardwareAddress &address) const;
	u32 gid_bucket_of(const ib::Gid &gid) const;
	Destination *find_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	Destination *create_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	bool make_room_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	u32 take_out_locked(Destination **place) KERN_REQUIRES(lock_);
	void forget_locked(Destination &destination) KERN_REQUIRES(lock_);
	void set_unresolved_locked(Destination &destination, bool unresolved) KERN_REQUIRES(lock_);
	template<class Condition>
	u32 remove_if(Condition condition);

	const Secret secret_;
	Destination *heads_[buckets]{};
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.destinations")};
	kern::List<Destination, &Destination::of_gid_> of_gid_[gid_buckets] KERN_GUARDED_BY(lock_);
	kern::List<Destination, &Destination::unresolved_>
		unresolved_ KERN_GUARDED_BY(lock_); /* the longest first */
	u32 count_ KERN_GUARDED_BY(lock_) = 0;
	u32 unresolved_count_ KERN_GUARDED_BY(lock_) = 0;
	u32 waiting_ KERN_GUARDED_BY(lock_) = 0;                           /* packets, for all */
	kern::List<Handle, &Handle::node> resting_ KERN_GUARDED_BY(lock_); /* the longest first */
};

} // namespace ipoib
