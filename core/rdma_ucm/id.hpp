// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * An ID of a program: rdma_cm's ID, and the number that the program uses for it.
 *
 * Commands on an ID run one at a time. rdma_cm's ID is destroyed with this one, or earlier if its
 * device is removed: commands then return ENXIO.
 *
 * Locks: commands_ is the outermost; then rdma_cm's handler lock; then the table's. No lock is held
 * while the program's memory is read or written, so no other task has to wait for the program.
 */
#pragma once
#include <kern/lock.hpp>
#include "event.hpp"

namespace rdma_ucm
{

class File;

class Id : public Source, public kern::RefCounted<Id>
{
public:
	/*
	 * Requests to a listener that may wait to be read; those beyond are dropped, and their
	 * senders ask again.
	 */
	static constexpr u32 backlog_max = 1024;

	/*
	 * A program's. Context: process. Errors: EDQUOT, ENOBUFS beyond the table's bounds; ENOMEM;
	 * those of rdma_create_user_id().
	 */
	static kern::Result<kern::Ref<Id>> create(File &file, u64 uid, rdma_ucm_port_space ps,
						  ib_qp_type type);
	~Id();

	/*
	 * Calls body(cm) with rdma_cm's ID, while no other command uses it and it cannot be
	 * destroyed. Context: process, not from a handler. Errors: ENXIO if it has been destroyed.
	 */
	template<class Body>
	kern::Result<> with_cm(Body body)
	{
		kern::Guard guard(commands_);
		if (!cm_)
			return kern::Error{-ENXIO};
		return body(*cm_);
	}

	/*
	 * Ends what the caller has claimed of the table, or made and not published, with its
	 * memberships and the new ids that the program does not know; how many events have been
	 * read. Context: process.
	 */
	static u32 end(kern::Ref<Id> id);
	/* Does the same for a membership. */
	static u32 leave(kern::Ref<Membership> membership);
	/* Discards an event that will not be read. Context: process. */
	static void discard(kern::Owned<Event> event);

	/*
	 * Destroys rdma_cm's ID because the device is being removed. Context: process, not from a
	 * handler.
	 */
	void end_cm();

	/* on_event() is rdma_cm's handler; deliver() is for events from elsewhere. */
	static int on_event(rdma_cm_id *cm, rdma_cm_event *event);
	void deliver(const rdma_cm_event &event);

	/* Links in the list of its file, and in the list of IDs whose device is removed. */
	kern::ListNode node;
	kern::ListNode lost;

private:
	friend class Table;

	/* A request's, of rdma_cm's new id. */
	static kern::Result<kern::Ref<Id>> create_fresh(rdma_cm_id &cm);
	Id(u64 uid, ib_qp_type type, rdma_cm_id *cm) : Source(uid), cm_(cm), type_(type) {}

	kern::Result<> take_request(rdma_cm_id &cm, const rdma_cm_event &event);
	kern::Result<kern::Owned<Event>> make_event(const rdma_cm_event &event);
	/* rdma_cm owns its ID and destroys it. No other task has found this ID. */
	void forget_cm() KERN_NO_THREAD_SAFETY_ANALYSIS { cm_ = nullptr; }

	kern::Mutex commands_{KERN_LOCK_CLASS("rdma_ucm.commands")};
	rdma_cm_id *cm_ KERN_GUARDED_BY(commands_);
	const ib_qp_type type_;

	/*
	 * Protected by the table's lock: the file of the ID while it is visible; its memberships;
	 * its unread events, in order; and for a listener, the number of unread requests and its
	 * limit.
	 */
	File *file_ = nullptr;
	kern::List<Membership, &Membership::node> memberships_;
	kern::List<Event, &Event::in_id> events_;
	u32 waiting_ = 0;
	u32 backlog_ = 0;
};

} // namespace rdma_ucm
