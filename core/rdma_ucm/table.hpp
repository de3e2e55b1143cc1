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

	/* ids, memberships: at most those. */
	explicit Table(u32 ids = ids_max, u32 memberships = memberships_max)
	    : id_limit_(ids, -ENOBUFS), membership_limit_(memberships, -ENOBUFS),
	      pools_(ids, memberships)
	{
	}
	~Table() { removal_.flush(); }

	/* Gives a new id or membership its number. Errors: ENOBUFS, ENOMEM. */
	kern::Result<> add(Id &id);
	kern::Result<> add(Membership &membership);
	/*
	 * From now on the program can find it. Errors: EDQUOT beyond the share of the file's user.
	 */
	kern::Result<> publish(Id &id, File &file);
	/*
	 * Errors: EADDRINUSE if its id is in that group already: rdma_cm knows the memberships of
	 * an id by their addresses; EDQUOT; ENOENT if the id has ended.
	 */
	kern::Result<> publish(Membership &membership);
	/*
	 * The same of what a request has made, with the event of it. Errors: ENOMEM if there is no
	 * room for either, or the listener has ended.
	 */
	kern::Result<> publish(kern::Owned<Event> &request);

	/* Errors: ENOENT; EINVAL for another file's. */
	kern::Result<kern::Ref<Id>> find(u32 number, const File &file);
	/*
	 * The same, for a caller that destroys it. It can no longer be found; an ID and its unread
	 * events belong to no file from then on.
	 */
	kern::Result<kern::Ref<Id>> claim(u32 number, const File &file);
	kern::Result<kern::Ref<Membership>> claim_membership(u32 number, const File &file);
	/* Any of the file's; empty if it has none. */
	kern::Ref<Id> claim_any(File &file);
	kern::Ref<Membership> claim_any(Id &id);
	/* This one, if it has not been claimed; empty otherwise. */
	kern::Ref<Id> claim(Id &id);
	kern::Ref<Membership> claim(Membership &membership);

	/*
	 * Removes one that is claimed, or could not be published; returns how many of its events
	 * were read. The unread ones go to the caller.
	 */
	using Events = kern::List<Event, &Event::in_id>;
	u32 remove(Id &id, Events &unread);
	u32 remove(Membership &membership, Events &unread);
	/* Takes the number of what has not been published, if it has not. */
	void forget(Membership &membership);

	/*
	 * Moves an id of one file to another, with its events, and with what its unread requests have made: how many have been read. Errors: those of find();
	 * EACCES for the files of two users.
	 */
	kern::Result<u32> move(u32 number, File &from, File &to);

	/* Ends rdma_cm's id later, as its handler may not. */
	void lose_device(Id &id);

	void set_uid(Source &source, u64 uid);
	/* Limits the requests that may wait to be read from now on. Returns the previous limit. */
	u32 set_backlog(Id &listener, u32 backlog);
	/* Checks if a program may make a request that ends by an event: ENOBUFS. */
	kern::Result<> may_ask(const Id &id);

	/* Empties the owner if there is room, and someone to read it. Context: process. */
	void push(kern::Owned<Event> &event);
	/* The file's oldest, as read; uid and number filled in. Empty if there is none. */
	kern::Owned<Event> pop(File &file);
	/*
	 * It could not be delivered: it is unread again, unless its source has been destroyed in
	 * the meantime. Then the owner is emptied.
	 */
	void put_back(kern::Owned<Event> &event);
	bool has_unread(const File &file);

	u32 ids() const { return id_limit_.taken(); }
	/* A file of that user is opened. Context: process. Errors: ENOMEM. */
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
	/* The table's own reference is the caller's. */
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

/* As long as the module is there. */
Table &table();

} // namespace rdma_ucm
