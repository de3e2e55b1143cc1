/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The multicast groups of an interface: the broadcast group, without which it cannot work (RFC 4391
 * section 5), those that the stack listens to, and those that are only sent to (section 10).
 */
#pragma once

#include "wire.hpp"

#include <kern/hash_table.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/work.hpp>
#include <rdma/ib_sa.h>

namespace ipoib
{

class Interface;

/*
 * One group. Under Multicast::lock_ but for what only run() and stop() touch, which exclude each
 * other.
 */
struct Group {
	/* Use that the interface makes of it. */
	enum class Use : u8 {
		none, /* to be left */
		send, /* somebody sends to it: a member who never receives from it and does not keep it alive, until two minutes after the last packet */
		listen, /* the stack wants to receive from it: a full member, who may send as well */
	};
	enum class State : u8 {
		idle,    /* to be joined, when its time has come */
		joining, /* the SA client is at it; it calls back */
		joined,
	};

	Group(class Multicast &owner, const HardwareAddress &where, Use what_for)
	    : multicast(owner), address(where), use(what_for)
	{
	}

	Multicast &multicast;
	const HardwareAddress address;
	kern::ListNode hash_node; /* in Multicast::table_, until run() ends it */
	kern::ListNode use_node;  /* in Multicast::senders_ or listened_, as its use says */
	kern::ListNode due_node;  /* in due_, held_ or one of retries_ */
	State state = State::idle;
	Use use;
	Use joined_for = Use::none; /* while it is joining or joined: what it asked the SA for */
	u32 collected = 0; /* the last collect_listened() that found it in the stack's list */
	bool has_outcome = false;
	int outcome = 0;
	ib_sa_mcmember_rec record{};
	u64 retry_at = 0; /* ns */
	unsigned failures = 0;
	unsigned retry_step = 0; /* of Multicast::retries_ */
	/* Accessed by run() and stop() only. */
	ib_sa_multicast *membership = nullptr;
	bool attached = false;
	bool was_joined = false; /* and so may have a destination that is resolved */
};

class Multicast
{
public:
	/*
	 * Groups that an interface is in only because a program sends to them, which needs no
	 * privilege. Packets to further ones are dropped.
	 */
	static constexpr unsigned send_only_max = 256;
	/*
	 * Groups that an interface receives, in addition to its broadcast group. Programs can join
	 * groups without a privilege. Of a longer list, only the first ones are joined; packets to
	 * the others are not received, which is logged.
	 */
	static constexpr unsigned listened_max = 8192;

	explicit Multicast(Interface &interface);
	~Multicast() { kern_assert(table_.count() == 0); }

	/*
	 * Takes up membership of the broadcast group and, once in, of all others that are wanted.
	 * Context: process.
	 */
	void start();
	/* Leaves all groups. Context: process. */
	void stop();
	/* The stack's list of addresses has changed. Context: any but hard interrupt. */
	void list_changed();
	/*
	 * A packet is sent to a group: it is joined, and Interface::resolved() gets the result.
	 * Context: softirq or process.
	 */
	void want_to_send(const HardwareAddress &address);
	/*
	 * Leaves send-only groups that are not used any more: their destinations have been removed.
	 * Context: any but hard interrupt.
	 */
	void leave_unused();
	/* The broadcast group's record, if the interface is in it. Context: any. */
	bool broadcast_record(ib_sa_mcmember_rec &record);

	/*
	 * For tests: the groups that run() has handled, the existing groups, and the length of the
	 * longest lookup.
	 */
	u64 served() const { return __atomic_load_n(&served_, __ATOMIC_RELAXED); }
	std::size_t groups();
	std::size_t longest();

private:
	/* After a join that failed: one second, doubling to sixteen. */
	static constexpr unsigned retry_steps = 5;
	/* The addresses of a list of the stack's, as far as they are groups of the interface. */
	struct Collection;

	void run();
	bool is_users(const HardwareAddress &address);
	void collect_listened();
	bool copy_list(Collection &collection);
	bool listen_to(const HardwareAddress &address);
	void forget_unlistened();
	Group *next_due();
	void serve(Group &group);
	bool leave_unwanted(Group &group);
	void join_if_due(Group &group);
	void settle(Group &group, int outcome);
	void watch_deletions();
	bool begin_join(Group &group);
	void end_membership(Group &group);
	void end(Group &group);
	void schedule_next_run();
	static int on_join(int status, ib_sa_multicast *multicast);
	static int on_deletion(int status, ib_inform_info *info, ib_sa_notice *notice);
	u64 hash_of(const ib::Gid &gid) const;
	Group *find_locked(const HardwareAddress &address) KERN_REQUIRES(lock_);
	Group *find_locked(const ib::Gid &gid) KERN_REQUIRES(lock_);
	void add_locked(Group &group) KERN_REQUIRES(lock_);
	void set_use_locked(Group &group, Group::Use use) KERN_REQUIRES(lock_);
	void queue_locked(Group &group) KERN_REQUIRES(lock_);
	void fail(Group &group);
	void put_off_locked(Group &group) KERN_REQUIRES(lock_);

	Interface &interface_;
	const kern::SecretHash hash_;
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.multicast")};
	kern::HashTable<Group, &Group::hash_node, 512> table_ KERN_GUARDED_BY(lock_);
	kern::List<Group, &Group::use_node> senders_ KERN_GUARDED_BY(lock_);
	/* Without the broadcast group; the latest collected last. */
	kern::List<Group, &Group::use_node> listened_ KERN_GUARDED_BY(lock_);
	u32 sender_count_ KERN_GUARDED_BY(lock_) = 0;
	/* Something has happened to them. */
	kern::List<Group, &Group::due_node> due_ KERN_GUARDED_BY(lock_);
	/* To be joined as soon as the broadcast group is. */
	kern::List<Group, &Group::due_node> held_ KERN_GUARDED_BY(lock_);
	/* To be joined later: a list for each delay, and so each in the order of the times. */
	kern::List<Group, &Group::due_node> retries_[retry_steps] KERN_GUARDED_BY(lock_);
	Group broadcast_; /* in the table from start() to stop(); of the object, so that there is always memory for it */
	bool running_ KERN_GUARDED_BY(lock_) = false;
	bool list_changed_ KERN_GUARDED_BY(lock_) = false;
	ib_inform_info *deletions_ KERN_GUARDED_BY(lock_) =
		nullptr; /* the subscription to what the SA says of groups that end */
	u64 subscribe_at_ KERN_GUARDED_BY(lock_) = 0; /* ns; not before */
	const ib_inform_info *refused_ KERN_GUARDED_BY(lock_) =
		nullptr;      /* one that ended before it was known to be */
	u32 collections_ = 0; /* run()'s: calls of collect_listened() that looked */
	u64 served_ = 0;      /* written by run() only */
	kern::DelayedWork work_{kern::method<&Multicast::run>, this};
};

} // namespace ipoib
