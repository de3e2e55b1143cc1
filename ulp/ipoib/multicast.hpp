/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The groups that an interface is in: the broadcast group, which makes it an interface at all (RFC
 * 4391 section 5), those that the stack listens to, and those that somebody only sends to (section
 * 10).
 */
#pragma once

#include "wire.hpp"

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
	/* What the interface is in it for. */
	enum class Use : u8 {
		none, /* to be left */
		send, /* somebody sends to it: a member who never hears it and does not keep it alive, until two minutes after the last packet */
		listen, /* the stack wants to hear it: a full member, who may send as well */
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
	kern::ListNode node;
	State state = State::idle;
	Use use;
	Use joined_for = Use::none; /* while it is joining or joined: what it asked the SA for */
	bool in_list = false;       /* of what the stack listens to; collect_listened()'s */
	bool has_outcome = false;
	int outcome = 0;
	ib_sa_mcmember_rec record{};
	u64 retry_at = 0; /* ns */
	unsigned failures = 0;
	/* Of run() and stop(). */
	ib_sa_multicast *membership = nullptr;
	bool attached = false;
	bool was_joined = false; /* and so may have a destination that is resolved */
};

class Multicast
{
public:
	/*
	 * Groups that an interface is in because somebody sends to them, which takes no privilege.
	 * Packets to further ones are dropped.
	 */
	static constexpr unsigned send_only_max = 256;

	explicit Multicast(Interface &interface);
	~Multicast() { kern_assert(groups_.empty()); }

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
	 * Someone sends to a group: it is joined, and Interface::resolved() hears how that went.
	 * Context: softirq or process.
	 */
	void want_to_send(const HardwareAddress &address);
	/*
	 * Leaves the groups that somebody sent to and nobody does any more: their destinations are
	 * gone. Context: any but hard interrupt.
	 */
	void leave_unused();
	/* The broadcast group's record, if the interface is in it. Context: any. */
	bool broadcast_record(ib_sa_mcmember_rec &record);

private:
	void run();
	bool is_users(const HardwareAddress &address);
	void collect_listened();
	void settle_outcomes();
	void settle(Group &group, int outcome);
	void leave_unwanted();
	void hear_of_deletions();
	void join_due();
	bool begin_join(Group &group);
	void end_membership(Group &group);
	void wake_at(u64 time_ns) { next_run_ = time_ns < next_run_ ? time_ns : next_run_; }
	static int on_join(int status, ib_sa_multicast *multicast);
	static int on_deletion(int status, ib_inform_info *info, ib_sa_notice *notice);
	Group *find_locked(const HardwareAddress &address) REQUIRES(lock_);
	Group *add_locked(const HardwareAddress &address, Group::Use use, kern::Gfp gfp)
		REQUIRES(lock_);
	unsigned senders_locked() const REQUIRES(lock_);
	void fail(Group &group);
	void put_off_locked(Group &group) REQUIRES(lock_);

	Interface &interface_;
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.multicast")};
	kern::List<Group, &Group::node> groups_ GUARDED_BY(lock_);
	Group broadcast_; /* in the list from start() to stop(); of the object, so that there is always memory for it */
	bool running_ GUARDED_BY(lock_) = false;
	bool list_changed_ GUARDED_BY(lock_) = false;
	ib_inform_info *deletions_ GUARDED_BY(lock_) =
		nullptr; /* the subscription to what the SA says of groups that end */
	u64 subscribe_at_ GUARDED_BY(lock_) = 0; /* ns; not before */
	const ib_inform_info *
		refused_ GUARDED_BY(lock_) = nullptr; /* one that ended before it was known to be */
	u64 next_run_ = 0;                            /* run()'s: when there is more to do, in ns */
	kern::DelayedWork work_{kern::method<&Multicast::run>, this};
};

} // namespace ipoib
