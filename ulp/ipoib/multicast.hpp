/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The groups that an interface is in: the broadcast group, which makes it an interface at all, those that the stack listens to, and
 * those that it only sends to (RFC 4391 sections 5 and 7).
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

/* One group. Under Multicast::lock_ but for what only run() and stop() touch, which exclude each other. */
struct Group {
	enum class State : u8 {
		idle,	 /* to be joined, when its time has come */
		joining, /* the SA client is at it; it calls back */
		joined,
	};

	Group(class Multicast &owner, const HardwareAddress &where) : multicast(owner), address(where) {}

	Multicast &multicast;
	const HardwareAddress address;
	kern::ListNode node;
	State state = State::idle;
	bool listened = false; /* the stack wants to hear it */
	bool sent_to = false;  /* somebody sends to it */
	bool has_outcome = false;
	int outcome = 0;
	ib_sa_mcmember_rec record{};
	u64 retry_at = 0; /* ns */
	unsigned failures = 0;
	/* Of run() and stop(). */
	ib_sa_multicast *membership = nullptr;
	bool attached = false;

	bool wanted() const { return listened || sent_to; }
};

class Multicast
{
public:
	explicit Multicast(Interface &interface) : interface_(interface) {}
	~Multicast() { kern_assert(groups_.empty()); }

	/* Takes up membership of the broadcast group and, once in, of all others that are wanted. Context: process. */
	void start();
	/* Leaves all groups. Context: process. */
	void stop();
	/* The stack's list of addresses has changed. Context: any but hard interrupt. */
	void list_changed();
	/* Someone sends to a group: it is joined, and Interface::resolved() hears how that went. Context: softirq or process. */
	void want_to_send(const HardwareAddress &address);
	/* The broadcast group's record, if the interface is in it. Context: any. */
	bool broadcast_record(ib_sa_mcmember_rec &record);

private:
	void run();
	void collect_listened();
	void leave_unwanted();
	void settle_outcomes();
	void settle(Group &group, int outcome);
	void join_due();
	bool begin_join(Group &group);
	void end_membership(Group &group);
	static int on_join(int status, ib_sa_multicast *multicast);
	Group *find_locked(const HardwareAddress &address) REQUIRES(lock_);
	Group *add_locked(const HardwareAddress &address, kern::Gfp gfp) REQUIRES(lock_);
	void fail_locked(Group &group) REQUIRES(lock_);

	Interface &interface_;
	kern::BhSpinLock lock_{KERN_LOCK_CLASS("ipoib.multicast")};
	kern::List<Group, &Group::node> groups_ GUARDED_BY(lock_);
	Group *broadcast_ GUARDED_BY(lock_) = nullptr;
	bool running_ GUARDED_BY(lock_) = false;
	bool list_changed_ GUARDED_BY(lock_) = false;
	kern::DelayedWork work_{kern::method<&Multicast::run>, this};
};

} // namespace ipoib
