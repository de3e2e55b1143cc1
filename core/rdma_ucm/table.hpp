// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * All IDs and memberships by number, their owners, and the queues of unread events. All programs
 * share one number space.
 *
 * One lock protects all of it, because an ID may migrate from one file to another with its unread
 * events at any time. It is the innermost lock, and held only to insert into a list or to remove
 * from it.
 */
#pragma once
#include <kern/budget.hpp>
#include <kern/work.hpp>
#include <kern/xarray.hpp>
#include "file.hpp"

namespace rdma_ucm
{

class Table
{
public:
	/*
	 * Limits of all programs together. librdmacm finds its ids by their numbers, in tables that
	 * end with number 65535.
	 */
	static constexpr u32 ids_max = 65536, memberships_max = 16384;

	/* ids, memberships: the limits. */
	explicit Table(u32 ids = ids_max, u32 memberships = memberships_max)
	    : id_limit_(ids, -ENOBUFS), membership_limit_(memberships, -ENOBUFS),
	      pools_(ids, memberships)
	{
	}
	~Table() { removal_.flush(); }

	/* Assigns a number to a new ID or membership. Errors: ENOBUFS, ENOMEM. */
	kern::Result<> add(Id &id);
	kern::Result<> add(Membership &membership);
	/*
	 * Makes it visible to the program. Errors: EDQUOT beyond the share of the file's user.
	 */
	kern::Result<> publish(Id &id, File &file);
	/*
	 * Errors: EADDRINUSE if its id is in that group already: rdma_cm knows the memberships of
	 * an id by their addresses; EDQUOT; ENOENT if the id has ended.
	 */
	kern::Result<> publish(Membership &membership);
	/*
	 * Does the same for the ID that a request has created, and queues the event. Errors: ENOMEM
	 * if a limit is reached, or the listener has ended.
	 */
	kern::Result<> publish(kern::Owned<Event> &request);

	/* Finds an ID. Errors: ENOENT; EINVAL if it belongs to another file. */
	kern::Result<kern::Ref<Id>> find(u32 number, const File &file);
	/*
	 * Does the same for a caller that destroys the ID. It can no longer be found, and it and
	 * its unread events belong to no file from now on.
	 */
	kern::Result<kern::Ref<Id>> claim(u32 number, const File &file);
	kern::Result<kern::Ref<Membership>> claim_membership(u32 number, const File &file);
	/* Claims any ID of the file; empty if it has none. */
	kern::Ref<Id> claim_any(File &file);
	kern::Ref<Membership> claim_any(Id &id);
	/* Claims this one if it is not claimed; returns an empty reference otherwise. */
	kern::Ref<Id> claim(Id &id);
	kern::Ref<Membership> claim(Membership &membership);

	/*
	 * Removes one that is claimed, or could not be published; returns how many of its events
	 * were read. The unread ones go to the caller.
	 */
	using Events = kern::List<Event, &Event::in_id>;
	u32 remove(Id &id, Events &unread);
	u32 remove(Membership &membership, Events &unread);
	/* Releases the number of a membership that was not published. */
	void forget(Membership &membership);

	/*
	 * Moves an ID from one file to another, with its events and the IDs of its unread requests.
	 * Returns the number of its events that were read. Errors: those of find(); EACCES if the
	 * files belong to different users.
	 */
	kern::Result<u32> move(u32 number, File &from, File &to);

	/* Destroys rdma_cm's ID later, because its handler must not. */
	void lose_device(Id &id);

	void set_uid(Source &source, u64 uid);
	/* Limits the requests that may wait to be read from now on. Returns the previous limit. */
	u32 set_backlog(Id &listener, u32 backlog);
	/*
	 * Checks whether a program may start an operation that ends with an event. Errors: ENOBUFS.
	 */
	kern::Result<> may_ask(const Id &id);

	/* Takes the event if there is space and the file is open. Context: process. */
	void push(kern::Owned<Event> &event);
	/*
	 * Returns the file's oldest event, with uid and number, and counts it as read. Empty if
	 * there is none.
	 */
	kern::Owned<Event> pop(File &file);
	/*
	 * Makes an event that could not be delivered unread again, unless its source has been
	 * destroyed meanwhile. It takes the event in the former case.
	 */
	void put_back(kern::Owned<Event> &event);
	bool has_unread(const File &file);

	u32 ids() const { return id_limit_.taken(); }
	/* Called when a file of that user is opened. Context: process. Errors: ENOMEM. */
	kern::Result<Shares::Member> enter(const kern_user &user)
	{
		return shares_.enter(user, pools_);
	}

private:
	using State = Source::State;
	kern::Result<Id *> look_up(u32 number, const File &file) KERN_REQUIRES(lock_);
	/* Adds an ID to a file, or moves it from one file to another with its unread events. */
	void put_into(Id &id, File &file) KERN_REQUIRES(lock_);
	void migrate(Id &id, File &to) KERN_REQUIRES(lock_);
	/* Passes the table's reference to the caller. */
	kern::Ref<Id> claim_locked(Id &id) KERN_REQUIRES(lock_);
	kern::Ref<Membership> claim_locked(Membership &membership) KERN_REQUIRES(lock_);
	static void become(Source &source, State next);
	static Source &source_of(const Event &event);
	static void wake(File &file);
	void end_lost();

	kern::SpinLock lock_{KERN_LOCK_CLASS("rdma_ucm.table")};
	kern::XArray<Id> ids_;
	kern::XArray<Membership> memberships_;
	kern::List<Id, &Id::lost> lost_ KERN_GUARDED_BY(lock_);
	kern::Budget id_limit_, membership_limit_;
	Pools pools_;
	Shares shares_{KERN_LOCK_CLASS("rdma_ucm.shares")};
	kern::Work removal_{kern::method<&Table::end_lost>, this};
};

/* Returns the table, which exists while the module is loaded. */
Table &table();

} // namespace rdma_ucm
