/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Multicast memberships of a port, shared between consumers: the SA is notified of the first and
 * the last member of a kind, and again of all when it may have lost its state.
 */
#pragma once

#include "query.hpp"
#include "callback_guard.hpp"

#include <kern/hash_table.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/ref.hpp>
#include <kern/work.hpp>

namespace mad::sa
{

struct Group;
class Groups;
class Port;

/* The membership of one consumer. Its state is protected by Groups::lock_. */
class Member : public ib_sa_multicast
{
public:
	enum class State : std::uint8_t {
		waiting, /* waiting for the group to be joined with its join state */
		joined,
		/*
		 * the consumer is being notified of a failure or a loss, or the object is being
		 * freed: it has no effect any more
		 */
		ended,
	};

	kern::ListNode node;        /* in one of the lists of Group */
	kern::ListNode notify_node; /* in Group::to_notify: the callback is due */
	Groups *owner;
	kern::Ref<Group> group;
	State state = State::waiting;
	int outcome = 0; /* status that the callback gets */
	Patience patience;
	CallbackGuard callback_guard;

	bool counts() const { return state != State::ended; }
};

/* A group, identified by its MGID. All members except mgid are protected by Groups::lock_. */
struct Group : kern::RefCounted<Group> {
	explicit Group(const ib_gid &id) : mgid(id) {}
	~Group() { kern_assert(is_unused()); }

	const ib_gid mgid;
	/*
	 * In Groups::table_, with a reference, while there are members or the SA has a membership.
	 */
	kern::ListNode hash_node;
	kern::ListNode all_node; /* in Groups::all_ under the same condition */
	kern::ListNode due_node; /* in Groups::due_ or held_: run() must examine the group */

	/*
	 * Waiting members that have not yet been compared with the granted membership, and waiting
	 * members that have been.
	 */
	kern::List<Member, &Member::node> fresh, waiting;
	/* Members that are not waiting. */
	kern::List<Member, &Member::node> members;
	kern::List<Member, &Member::notify_node> to_notify;
	/* Members that count, for each of the four join states. */
	u32 wanted[4]{};

	ib_sa_mcmember_rec rec{}; /* the record from the SA; valid if joined is not 0 */
	/* join states that the SA has granted, and that no pending query removes */
	u8 joined = 0;
	Patience patience{}; /* that of the latest member */
	bool asking = false; /* a query is pending */
	bool rejoin = false; /* the SA may have lost the states in joined */
	u32 rejoins = 0;     /* value of Groups::rejoins_ when rejoin was last examined */

	bool is_unused() const { return fresh.empty() && waiting.empty() && members.empty(); }
	u8 wanted_states() const
	{
		u8 states = 0;
		for (unsigned bit = 0; bit < 4; bit++)
			states = static_cast<u8>(states | (wanted[bit] != 0) << bit);
		return states;
	}
	/* A member starts or ceases to have an effect. */
	void count(const Member &member, bool counts);
};

/*
 * All groups of a port. No other lock is taken with lock_ held; callbacks and queries are made
 * without it.
 */
class Groups
{
public:
	/*
	 * Memberships of a port, and groups that it is in or is about to leave. Programs and
	 * listeners of the network stack join without a privilege.
	 */
	static constexpr u32 members_max = 32768, groups_max = 32768;
	/*
	 * Joins and leaves that the SA is asked for at a time. More would be lost where its queue,
	 * or this port's, is full.
	 */
	static constexpr u32 asking_max = 128;

	explicit Groups(Port &port) : port_(port) {}
	/* No query may be out any more. */
	~Groups();
	/*
	 * There must be no members, and none can be added. The SA itself notices that the port has
	 * disappeared, so it need not be notified.
	 */
	void close();

	/*
	 * Context: process. Errors: EINVAL, ENOMEM, ENODEV; ENOBUFS for more than members_max or
	 * groups_max.
	 */
	kern::Result<Member *> join(const ib_sa_mcmember_rec &rec, u64 component_mask,
				    Patience patience, int (*callback)(int, ib_sa_multicast *),
				    void *context);
	/* Context: process, not from the member's callback. */
	void leave(Member &member);
	/* Errors: EADDRNOTAVAIL. Context: any. */
	kern::Result<ib_sa_mcmember_rec> find(const ib_gid &mgid);
	/* Joins every group again, because the SA may have forgotten it. Context: any. */
	void rejoin();

	/* A query has ended; rec is valid if status is 0. Context: any. */
	void on_answer(Group &group, bool joining, u8 states, int status,
		       const ib_sa_mcmember_rec &rec);

	/*
	 * The number of groups that run() has handled, and the comparisons of the longest lookup.
	 * For tests.
	 */
	u64 served() const { return __atomic_load_n(&served_, __ATOMIC_RELAXED); }
	std::size_t longest();

private:
	struct Step;
	void run();
	void serve(Group &group);
	Step next_step_locked(Group &group) KERN_REQUIRES(lock_);
	void settle_fresh_locked(Group &group) KERN_REQUIRES(lock_);
	void queue_locked(Group &group) KERN_REQUIRES(lock_);
	void decide_locked(Group &group, Member &member, Member::State state, int outcome)
		KERN_REQUIRES(lock_);
	void end_members_locked(Group &group, u8 states, int outcome) KERN_REQUIRES(lock_);
	Group *find_locked(const ib_gid &mgid) KERN_REQUIRES(lock_);
	u64 hash_of(const ib_gid &mgid) const;
	bool mark_rejoins();
	kern::Ref<Group> next_group();
	void notify(Group &group);
	void ask(Group &group, const Step &step);

	Port &port_;
	const kern::SecretHash hash_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("sa.multicast")};
	kern::HashTable<Group, &Group::hash_node, 512> table_ KERN_GUARDED_BY(lock_);
	/* Groups whose rejoins is behind rejoins_ come first. */
	kern::List<Group, &Group::all_node> all_ KERN_GUARDED_BY(lock_);
	kern::List<Group, &Group::due_node> due_ KERN_GUARDED_BY(lock_);
	/* Have something to ask while asking_max are out. */
	kern::List<Group, &Group::due_node> held_ KERN_GUARDED_BY(lock_);
	u32 members_ KERN_GUARDED_BY(lock_) = 0;
	u32 asking_ KERN_GUARDED_BY(lock_) = 0;  /* queries that are out */
	u32 rejoins_ KERN_GUARDED_BY(lock_) = 0; /* calls of rejoin() */
	bool closing_ KERN_GUARDED_BY(lock_) = false;
	u64 served_ = 0; /* written by run() only */
	kern::Work work_{kern::method<&Groups::run>, this};
};

} // namespace mad::sa
