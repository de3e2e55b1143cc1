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
 * A multicast group. Protected by Multicast::lock_, except for the members that only run() and
 * stop() access, which exclude each other.
 */
struct Group {
	/* The interface's use of the group. */
	enum class Use : u8 {
		none, /* the group must be left */
		/*
		 * packets are sent to it: send-only membership, which does not keep the group
		 * alive, until two minutes after the last packet
		 */
		send,
		/*
		 * the network stack receives from it: full membership, which also permits sending
		 */
		listen,
	};
	enum class State : u8 {
		idle,    /* will be joined when it is due */
		joining, /* the SA client is joining it, and calls back */
		joined,
	};

	Group(class Multicast &owner, const HardwareAddress &where, Use what_for)
	    : multicast(owner), address(where), use(what_for)
	{
	}

	Multicast &multicast;
	const HardwareAddress address;
	kern::ListNode hash_node; /* in Multicast::table_, until run() frees it */
	kern::ListNode use_node;  /* in Multicast::senders_ or listened_, according to its use */
	kern::ListNode due_node;  /* in due_, held_ or one of retries_ */
	State state = State::idle;
	Use use;
	Use joined_for = Use::none; /* while it is joining or joined: the requested membership */
	u32 collected = 0; /* the last collect_listened() that found it in the stack's list */
	bool has_outcome = false;
	int outcome = 0;
	ib_sa_mcmember_rec record{};
	u64 retry_at = 0; /* ns */
	unsigned failures = 0;
	unsigned retry_step = 0; /* index of its list in Multicast::retries_ */
	/* Accessed by run() and stop() only. */
	ib_sa_multicast *membership = nullptr;
	bool attached = false;
	bool was_joined = false; /* so a resolved destination may exist */
};

class Multicast
{
public:
	/*
	 * Maximum number of groups that are joined only because a program sends to them, which
	 * needs no privilege. Packets to further groups are dropped.
	 */
	static constexpr unsigned send_only_max = 256;
	/*
	 * Maximum number of groups that an interface receives, in addition to its broadcast group.
	 * Programs can join groups without a privilege. Of a longer list, only the first ones are
	 * joined; packets to the others are not received, which is logged.
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
	/* Number of delays after a failed join: one second, doubling to sixteen. */
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
	/* Without the broadcast group; the most recently collected ones are last. */
	kern::List<Group, &Group::use_node> listened_ KERN_GUARDED_BY(lock_);
	u32 sender_count_ KERN_GUARDED_BY(lock_) = 0;
	/* Groups that run() must examine. */
	kern::List<Group, &Group::due_node> due_ KERN_GUARDED_BY(lock_);
	/* Groups that will be joined as soon as the broadcast group is. */
	kern::List<Group, &Group::due_node> held_ KERN_GUARDED_BY(lock_);
	/*
	 * Groups that will be joined later. There is a list for each delay, so that each list is
	 * ordered by time.
	 */
	kern::List<Group, &Group::due_node> retries_[retry_steps] KERN_GUARDED_BY(lock_);
	/* in the table from start() to stop(); a member, so that it needs no allocation */
	Group broadcast_;
	bool running_ KERN_GUARDED_BY(lock_) = false;
	bool list_changed_ KERN_GUARDED_BY(lock_) = false;
	ib_inform_info *deletions_ KERN_GUARDED_BY(lock_) =
		nullptr; /* the subscription to traps about deleted groups */
	u64 subscribe_at_ KERN_GUARDED_BY(lock_) = 0; /* earliest time of the next attempt, in ns */
	const ib_inform_info *refused_ KERN_GUARDED_BY(lock_) =
		nullptr; /* a subscription that was refused before deletions_ was set */
	/* used by run() only: number of completed calls of collect_listened() */
	u32 collections_ = 0;
	u64 served_ = 0; /* written by run() only */
	kern::DelayedWork work_{kern::method<&Multicast::run>, this};
};

} // namespace ipoib
