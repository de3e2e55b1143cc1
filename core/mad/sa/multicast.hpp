/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the multicast memberships of a port, which its consumers share: the first member with a
 * join state joins at the SA and the last one leaves. All groups are joined again if the SA may
 * have lost its state.
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
		waiting, /* waiting for the group to be joined with the requested join state */
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
	int outcome = 0; /* status that is passed to the callback */
	RetryPolicy retry_policy;
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
	 * fresh: waiting members that have not yet been compared with the granted membership.
	 * waiting: those that have been compared.
	 */
	kern::List<Member, &Member::node> fresh, waiting;
	/* Members that are not waiting. */
	kern::List<Member, &Member::node> members;
	kern::List<Member, &Member::notify_node> to_notify;
	/* Number of members that count, for each of the four join states. */
	u32 wanted[4]{};

	ib_sa_mcmember_rec rec{}; /* the record from the SA; valid if joined is not 0 */
	/* join states that the SA has granted, and that no pending query removes */
	u8 joined = 0;
	RetryPolicy retry_policy{}; /* the retry policy of the latest member */
	bool asking = false;        /* a query is pending */
	bool rejoin = false;        /* the SA may have lost the states in joined */
	u32 rejoins = 0;            /* value of Groups::rejoins_ when rejoin was last examined */

	bool is_unused() const { return fresh.empty() && waiting.empty() && members.empty(); }
	u8 wanted_states() const
	{
		u8 states = 0;
		for (unsigned bit = 0; bit < 4; bit++)
			states = static_cast<u8>(states | (wanted[bit] != 0) << bit);
		return states;
	}
	/* Adds (counts) or removes (!counts) a member's join states from wanted. */
	void count(const Member &member, bool counts);
};

/*
 * All groups of a port. No other lock is taken with lock_ held. Callbacks are called and queries
 * are sent without it.
 */
class Groups
{
public:
	/*
	 * Maximum numbers of memberships of a port, and of groups that the port is in or is about
	 * to leave. They are limited because programs and listeners of the network stack can join
	 * without privileges.
	 */
	static constexpr u32 members_max = 32768, groups_max = 32768;
	/*
	 * Maximum number of joins and leaves that are pending at a time. More would be lost if the
	 * SA's queue, or this port's queue, is full.
	 */
	static constexpr u32 asking_max = 128;

	explicit Groups(Port &port) : port_(port) {}
	/* No query may be pending. */
	~Groups();
	/*
	 * There must be no members. No member can be added after the call. The SA is not notified,
	 * because it notices itself that the port has disappeared.
	 */
	void close();

	/*
	 * Context: process. Errors: EINVAL, ENOMEM, ENODEV; ENOBUFS if there would be more than
	 * members_max memberships or groups_max groups.
	 */
	kern::Result<Member *> join(const ib_sa_mcmember_rec &rec, u64 component_mask,
				    RetryPolicy retry_policy,
				    int (*callback)(int, ib_sa_multicast *), void *context);
	/* Context: process, not from the member's callback. */
	void leave(Member &member);
	/* Errors: EADDRNOTAVAIL. Context: any. */
	kern::Result<ib_sa_mcmember_rec> find(const ib_gid &mgid);
	/* Joins every group again, because the SA may have lost it. Context: any. */
	void rejoin();

	/* Handles the result of a query; rec is valid if status is 0. Context: any. */
	void on_answer(Group &group, bool joining, u8 states, int status,
		       const ib_sa_mcmember_rec &rec);

	/*
	 * served(): the number of groups that run() has handled. longest(): the number of
	 * comparisons of the longest lookup. For tests.
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
	/*
	 * Groups that mark_rejoins() must still mark, which have rejoins != rejoins_, come first.
	 */
	kern::List<Group, &Group::all_node> all_ KERN_GUARDED_BY(lock_);
	kern::List<Group, &Group::due_node> due_ KERN_GUARDED_BY(lock_);
	/* Groups that have a query to send while asking_max queries are pending. */
	kern::List<Group, &Group::due_node> held_ KERN_GUARDED_BY(lock_);
	u32 members_ KERN_GUARDED_BY(lock_) = 0;
	u32 asking_ KERN_GUARDED_BY(lock_) = 0;  /* number of pending queries */
	u32 rejoins_ KERN_GUARDED_BY(lock_) = 0; /* number of calls of rejoin() */
	bool closing_ KERN_GUARDED_BY(lock_) = false;
	u64 served_ = 0; /* written by run() only */
	kern::Work work_{kern::method<&Groups::run>, this};
};

} // namespace mad::sa
