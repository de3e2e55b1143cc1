/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the multicast groups of an interface: the broadcast group, without which the interface
 * cannot work (RFC 4391 section 5), the groups that the network stack receives, and those to which
 * it only sends (section 10).
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
		 * packets are sent to it: a send-only membership, which does not keep the group
		 * alive, until two minutes after the last packet
		 */
		send,
		/*
		 * the network stack receives from it: a full membership, with which the interface
		 * may also send
		 */
		listen,
	};
	enum class State : u8 {
		idle,    /* not joined; joined when its retry time has come */
		joining, /* the SA client is joining it, and will call back */
		joined,
	};

	Group(class Multicast &owner, const HardwareAddress &where, Use what_for)
	    : multicast(owner), address(where), use(what_for)
	{
	}

	Multicast &multicast;
	const HardwareAddress address;
	kern::ListNode hash_node; /* in Multicast::table_, until run() or stop() removes it */
	kern::ListNode use_node;  /* in Multicast::senders_ or listened_, according to its use */
	kern::ListNode due_node;  /* in due_, held_ or one of the lists in retries_ */
	State state = State::idle;
	Use use;
	/* the membership that was requested; valid while joining or joined */
	Use joined_for = Use::none;
	/* value of Multicast::collections_ when it was last found in the stack's list */
	u32 collected = 0;
	bool has_outcome = false;
	int outcome = 0;
	ib_sa_mcmember_rec record{};
	u64 retry_at = 0; /* ns */
	unsigned failures = 0;
	unsigned retry_step = 0; /* index of its list in Multicast::retries_ */
	/* Accessed by run() and stop() only. */
	ib_sa_multicast *membership = nullptr;
	bool attached = false;
	bool was_joined = false; /* a destination with its address may exist */
};

class Multicast
{
public:
	/*
	 * Maximum number of groups that are joined only for sending. A program can cause such a
	 * join without a privilege. Packets to additional groups are dropped.
	 */
	static constexpr unsigned send_only_max = 256;
	/*
	 * Maximum number of groups that an interface receives, in addition to its broadcast group.
	 * Programs can join groups without a privilege. If the stack's list is longer, only its
	 * first groups are joined. Packets to the others are not received, which is logged.
	 */
	static constexpr unsigned listened_max = 8192;

	explicit Multicast(Interface &interface);
	~Multicast() { kern_assert(table_.count() == 0); }

	/*
	 * Joins the broadcast group and, when it is joined, all other groups that are in use.
	 * Context: process.
	 */
	void start();
	/* Leaves all groups. Context: process. */
	void stop();
	/*
	 * Called when the stack's list of addresses has changed. Context: any but hard interrupt.
	 */
	void list_changed();
	/*
	 * Called when a packet is sent to a group: joins the group, and calls Interface::resolved()
	 * with the result. Context: softirq or process.
	 */
	void want_to_send(const HardwareAddress &address);
	/*
	 * Leaves send-only groups that are not used any more, because their destinations have been
	 * removed. Context: any but hard interrupt.
	 */
	void leave_unused();
	/*
	 * Copies the broadcast group's record. Returns false if the interface has not joined the
	 * group. Context: any.
	 */
	bool broadcast_record(ib_sa_mcmember_rec &record);

	/*
	 * For tests: the number of times that run() has handled a group, the number of groups, and
	 * the length of the longest hash chain.
	 */
	u64 served() const { return __atomic_load_n(&served_, __ATOMIC_RELAXED); }
	std::size_t groups();
	std::size_t longest();

private:
	/* Number of delays after failed joins: one second, doubling up to sixteen. */
	static constexpr unsigned retry_steps = 5;
	/* The addresses in the stack's list that belong to groups of the interface. */
	struct Collection;

	void run();
	bool is_received_by_program(const HardwareAddress &address);
	void collect_listened();
	bool copy_list(Collection &collection);
	bool listen_to(const HardwareAddress &address);
	void leave_unlisted();
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
	/* Excludes the broadcast group. The groups that were collected most recently are last. */
	kern::List<Group, &Group::use_node> listened_ KERN_GUARDED_BY(lock_);
	u32 sender_count_ KERN_GUARDED_BY(lock_) = 0;
	/* Groups that run() must examine. */
	kern::List<Group, &Group::due_node> due_ KERN_GUARDED_BY(lock_);
	/* Groups that are joined as soon as the broadcast group is. */
	kern::List<Group, &Group::due_node> held_ KERN_GUARDED_BY(lock_);
	/*
	 * Groups that are joined later. There is one list for each delay, so each list is in order
	 * of time.
	 */
	kern::List<Group, &Group::due_node> retries_[retry_steps] KERN_GUARDED_BY(lock_);
	/*
	 * Member of the table from start() to stop(). It is not allocated, so start() cannot fail.
	 */
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
