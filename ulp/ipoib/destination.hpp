/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the destinations of packets: hardware addresses and their address handles. The lookup for
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
 * An address handle that is or was in use by a destination. It must outlive all requests that use
 * it (rdma_destroy_ah()), so the table keeps a replaced handle until they have completed.
 */
struct Handle {
	/*
	 * Returns an empty owner if memory allocation or the creation of the address handle fails.
	 * Context: any.
	 */
	static kern::Owned<Handle> create(ib_pd *pd, rdma_ah_attr &where);

	explicit Handle(ib_ah *made) : ah(made) {}
	~Handle() { rdma_destroy_ah(ah, 0); }
	Handle(const Handle &) = delete;
	Handle &operator=(const Handle &) = delete;

	ib_ah *const ah;
	/* Used while the handle is retired. */
	kern::ListNode node;
	unsigned rounds = 0;

private:
	friend class DestinationTable;
	/* Set when the handle is replaced, and used after the last RCU reader. */
	class DestinationTable *table_ = nullptr;
	kern::rcu::Deferred deferred_;

	void retire();
};

/* One peer or multicast group. The table and the code that resolves it each hold a reference. */
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
	/*
	 * Returns the address handle, or nullptr until the address is resolved. Context: RCU
	 * reader.
	 */
	ib_ah *ah() const { return kern::rcu::dereference(ah_); }

	/* Returns true if the destination was removed from the table. Context: any. */
	bool is_removed() const { return __atomic_load_n(&removed_, __ATOMIC_RELAXED); }

	/*
	 * Marks the destination as used. remove_unused() counts the rounds in which a destination
	 * was not marked.
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
	ib_ah *ah_ = nullptr; /* handle_'s address handle, for RCU readers */

	/* Protected by the table's lock. */
	kern::Owned<Handle> handle_;
	Destination *next_ = nullptr; /* next in its bucket; RCU readers also follow it */
	/* in the list of destinations whose GIDs have the same hash */
	kern::ListNode of_gid_;
	kern::ListNode unresolved_; /* in the list of destinations that could not be resolved */
	kern_skb_queue waiting_{};
	bool resolving_ = false;
	bool touched_ = true;
	u8 idle_rounds_ = 0;
	bool stale_ = false; /* it has a valid handle, but its path must be queried again */
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
	 * Maximum number of destinations; more indicate a flood. At the limit, a new destination
	 * replaces one that could not be resolved. If there is none, packets to additional
	 * destinations are dropped.
	 */
	static constexpr u32 capacity = 16384;
	/*
	 * The destinations with one GID may use 1/share of the free entries, which is 256 in an
	 * empty table. A port may have many interfaces in a partition, each with its own QP number.
	 * With this limit a malicious peer leaves space for others, however many GIDs it can use.
	 */
	static constexpr u32 share = 64;
	/* Maximum numbers of packets that wait for one address, and for all. */
	static constexpr u32 waiting_max = 64;
	static constexpr u32 waiting_of_all_max = 1024;

	/*
	 * Secret key of the hash. Peers choose their addresses, and must not be able to choose
	 * buckets.
	 */
	struct Secret {
		u64 prefix, interface_id;
		u64 qpn; /* odd */
		static Secret draw();
	};

	explicit DestinationTable(const Secret &secret = Secret::draw()) : secret_(secret) {}
	~DestinationTable();

	/*
	 * Returns the destination, or nullptr. Context: RCU reader; the result is valid until the
	 * end of the read-side critical section.
	 */
	Destination *find(const HardwareAddress &address) const;
	/*
	 * Returns a reference to the destination, or an empty one. Context: any but hard interrupt.
	 */
	kern::Ref<Destination> get(const HardwareAddress &address);

	enum class Action : u8 {
		/*
		 * the address has been resolved in the meantime: the caller must send the packet
		 * now
		 */
		send,
		wait,    /* queued; the address is already being resolved */
		resolve, /* queued; the caller must resolve the address */
		/*
		 * refused: too many packets wait, or the last attempt was too recent; the caller
		 * drops it
		 */
		drop,
		/*
		 * refused because too many packets wait for other addresses; the caller drops the
		 * packet and must resolve this address
		 */
		drop_and_resolve,
	};
	/*
	 * Finds or creates the destination of a packet whose address is not resolved, and queues
	 * the packet there. If the packet is refused, the caller still owns it. Context: softirq.
	 */
	Action wait(const HardwareAddress &address, sk_buff *skb,
		    kern::Ref<Destination> &destination);
	/* Returns true if the caller must query the path again. Context: any but hard interrupt. */
	bool begin_refresh(Destination &destination);

	/*
	 * Stores the result of a resolution: a handle, or an empty owner if it failed. Returns the
	 * waiting packets, which the caller sends or drops. Does not sleep, because one work item
	 * per port delivers all responses of the SA. Context: any but hard interrupt.
	 */
	kern_skb_queue resolved(Destination &destination, kern::Owned<Handle> handle,
				kern::Owned<sa_path_rec> path = {});
	/*
	 * Copies the path of a resolved destination. Returns false if the path was not stored.
	 * Context: any but hard interrupt.
	 */
	bool path_of(const Destination &destination, sa_path_rec &path);
	/*
	 * Remove one destination, all of them, or those that were not used for @rounds calls. The
	 * packets that wait for them are dropped. Return the number of dropped packets. Context:
	 * process.
	 */
	u32 remove(const HardwareAddress &address);
	u32 remove_all();
	u32 remove_unused(unsigned rounds);
	/*
	 * Keeps a handle that no reader can find any more until its requests have completed.
	 * Context: any but hard interrupt.
	 */
	void retire(kern::Owned<Handle> handle);
	/*
	 * Like retire(), for a handle that current RCU readers may have found: waits for them
	 * first. Context: any but hard interrupt.
	 */
	void retire_after_readers(kern::Owned<Handle> handle);
	/*
	 * Destroys the handles that were retired more than @rounds calls ago; with 0, all of them,
	 * because no requests are outstanding. Context: any but hard interrupt.
	 */
	void destroy_retired(unsigned rounds);
	/*
	 * Marks all destinations that have a path, which excludes groups, as stale. They remain
	 * usable until the path has been queried again.
	 */
	void mark_stale();
	/* Marks one destination as stale. Context: any but hard interrupt. */
	void mark_stale(Destination &destination);
	/*
	 * Returns true if the path of a resolved destination should be queried again and its next
	 * attempt is due.
	 */
	static bool is_stale(const Destination &destination)
	{
		return __atomic_load_n(&destination.stale_, __ATOMIC_RELAXED) &&
		       kern::now_ns() >= __atomic_load_n(&destination.retry_at_, __ATOMIC_RELAXED);
	}

	/*
	 * Returns the length of the longest hash chain, for tests. Context: any but hard interrupt.
	 */
	u32 longest();

private:
	u32 bucket_of(const HardwareAddress &address) const;
	u32 gid_bucket_of(const ib::Gid &gid) const;
	Destination *find_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	Destination *create_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	bool make_space_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	u32 take_out_locked(Destination **place) KERN_REQUIRES(lock_);
	void remove_unresolved_locked(Destination &destination) KERN_REQUIRES(lock_);
	void set_unresolved_locked(Destination &destination, bool unresolved) KERN_REQUIRES(lock_);
	template<class Condition>
	u32 remove_if(Condition condition);

	const Secret secret_;
	Destination *heads_[buckets]{};
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.destinations")};
	kern::List<Destination, &Destination::of_gid_> of_gid_[gid_buckets] KERN_GUARDED_BY(lock_);
	kern::List<Destination, &Destination::unresolved_>
		unresolved_ KERN_GUARDED_BY(lock_); /* in the order of failure, the oldest first */
	u32 count_ KERN_GUARDED_BY(lock_) = 0;
	u32 unresolved_count_ KERN_GUARDED_BY(lock_) = 0;
	/* number of packets that wait, for all destinations */
	u32 waiting_ KERN_GUARDED_BY(lock_) = 0;
	/* in the order of retirement, the oldest first */
	kern::List<Handle, &Handle::node> retired_ KERN_GUARDED_BY(lock_);
};

} // namespace ipoib
