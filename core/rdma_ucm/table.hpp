// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Holds all IDs and memberships by number, their owners, and the queues of unread events. All
 * programs share one number space.
 *
 * One lock protects everything, because an ID may be moved from one file to another with its unread
 * events at any time. It is the innermost lock, and held only for list operations.
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
	 * Limits for all programs together. librdmacm finds its IDs in tables that are indexed by
	 * number and end with 65535.
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
	 * Makes an ID visible to the program. Errors: EDQUOT beyond the share of the file's user.
	 */
	kern::Result<> publish(Id &id, File &file);
	/*
	 * Makes a membership visible to the program. Errors: EADDRINUSE if the ID is in that group
	 * already, because rdma_cm identifies the memberships of an ID by their addresses; EDQUOT;
	 * ENOENT if the ID has been destroyed.
	 */
	kern::Result<> publish(Membership &membership);
	/*
	 * Makes an ID that was created for a request visible, and queues the event. Errors: ENOMEM
	 * if a limit is reached or the listener has been destroyed.
	 */
	kern::Result<> publish(kern::Owned<Event> &request);

	/* Finds an ID. Errors: ENOENT; EINVAL if it belongs to another file. */
	kern::Result<kern::Ref<Id>> find(u32 number, const File &file);
	/*
	 * Finds an object for a caller that destroys it. It cannot be found any more, and it and
	 * its unread events no longer belong to a file.
	 */
	kern::Result<kern::Ref<Id>> claim(u32 number, const File &file);
	kern::Result<kern::Ref<Membership>> claim_membership(u32 number, const File &file);
	/* Claims any ID of the file; empty if it has none. */
	kern::Ref<Id> claim_any(File &file);
	kern::Ref<Membership> claim_any(Id &id);
	/* Claims this object; returns an empty reference if it has been claimed already. */
	kern::Ref<Id> claim(Id &id);
	kern::Ref<Membership> claim(Membership &membership);

	/*
	 * Removes an object that has been claimed, or could not be published. Returns the number of
	 * its events that have been read. The unread events are passed to the caller.
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

	/* Destroys rdma_cm's ID later, because its handler must not do that. */
	void lose_device(Id &id);

	void set_uid(Source &source, u64 uid);
	/* Sets the limit of requests that wait to be read. Returns the previous limit. */
	u32 set_backlog(Id &listener, u32 backlog);
	/*
	 * Checks whether a program may start an operation that generates an event. Errors: ENOBUFS.
	 */
	kern::Result<> may_request(const Id &id);

	/*
	 * Queues the event if there is space and the file is open; otherwise the caller keeps it.
	 * Context: process.
	 */
	void push(kern::Owned<Event> &event);
	/*
	 * Removes and returns the file's oldest event, with uid and number filled in, and counts it
	 * as read. Empty if there is none.
	 */
	kern::Owned<Event> pop(File &file);
	/*
	 * Queues an event again that could not be delivered, unless its object has been destroyed
	 * meanwhile; the caller then keeps the event.
	 */
	void put_back(kern::Owned<Event> &event);
	bool has_unread(const File &file);

	u32 ids() const { return id_limit_.taken(); }
	/* Called when a user opens a file. Context: process. Errors: ENOMEM. */
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
	/* Claims the object, and passes the table's reference to the caller. */
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
