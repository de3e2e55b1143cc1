/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Multicast memberships of a port, shared between consumers: the SA hears of the first member of a
 * kind and of the last, and of all again when it may have forgotten.
 */
#pragma once

#include "query.hpp"
#include "told.hpp"

#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/ref.hpp>
#include <kern/work.hpp>

namespace mgmt::sa
{

struct Group;
class Groups;
class Port;

/* One consumer's membership. Its state is under Groups::lock_. */
class Member : public ib_sa_multicast
{
public:
	enum class State : std::uint8_t {
		waiting, /* for the group to be joined in its manner */
		joined,
		ended, /* told of a failure or a loss, or being freed: counts for nothing */
	};

	kern::ListNode node; /* in Group::members */
	Groups *owner;
	kern::Ref<Group> group;
	State state = State::waiting;
	int outcome = 0;      /* what the callback is to be told */
	bool to_tell = false; /* the callback is due */
	Patience patience;
	Told told;

	bool counts() const { return state != State::ended; }
};

/* One group, known by its MGID. All but mgid is under Groups::lock_. */
struct Group : kern::RefCounted<Group> {
	explicit Group(const ib_gid &id) : mgid(id) {}
	~Group() { kern_assert(members.empty()); }

	const ib_gid mgid;
	kern::ListNode
		node; /* in Groups::list_, with a reference, while it has members or the SA believes so */
	kern::List<Member, &Member::node> members;
	ib_sa_mcmember_rec rec{}; /* as the SA gave it; valid while joined is not 0 */
	u8 joined = 0;       /* join states that the SA knows of, and is not being told to forget */
	Patience patience{}; /* the last member's */
	bool asking = false; /* a query is out */
	bool rejoin = false; /* the SA may have forgotten what is in joined */
	bool attention = false; /* run() is to look at it */
};

/* All groups of a port. Lock order: lock_ alone; callbacks and queries are made without it. */
class Groups
{
public:
	explicit Groups(Port &port) : port_(port) {}
	/* No query may be out any more. */
	~Groups();
	/*
	 * No members may be left, and none can come. What the SA believes meanwhile it finds out by
	 * itself when the port goes.
	 */
	void close();

	/* Context: process. Errors: EINVAL, ENOMEM, ENODEV. */
	kern::Result<Member *> join(const ib_sa_mcmember_rec &rec, u64 component_mask,
				    Patience patience, int (*callback)(int, ib_sa_multicast *),
				    void *context);
	/* Context: process, not from the member's callback. */
	void leave(Member &member);
	/* Errors: EADDRNOTAVAIL. Context: any. */
	kern::Result<ib_sa_mcmember_rec> find(const ib_gid &mgid);
	/* Tells the SA again of every membership. Context: any. */
	void rejoin();

	/* How a query ended; rec is valid if status is 0. Context: any. */
	void on_answer(Group &group, bool joining, u8 states, int status,
		       const ib_sa_mcmember_rec &rec);

private:
	struct Step;
	void run();
	void serve(Group &group);
	Step next_step_locked(Group &group) REQUIRES(lock_);
	void settle_waiting_locked(Group &group) REQUIRES(lock_);
	void kick_locked(Group &group) REQUIRES(lock_);
	void end_members_locked(Group &group, u8 states, int outcome) REQUIRES(lock_);
	Group *find_locked(const ib_gid &mgid) REQUIRES(lock_);
	kern::Ref<Group> next_group();
	void tell(Group &group);
	void ask(Group &group, const Step &step);

	Port &port_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("sa.multicast")};
	kern::List<Group, &Group::node> list_ GUARDED_BY(lock_);
	bool closing_ GUARDED_BY(lock_) = false;
	kern::Work work_{kern::method<&Groups::run>, this};
};

} // namespace mgmt::sa
