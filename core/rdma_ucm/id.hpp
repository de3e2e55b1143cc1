// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines an ID of a program: rdma_cm's ID, and the number by which the program refers to it.
 *
 * Commands on an ID run one at a time. rdma_cm's ID is destroyed together with the program's ID, or
 * earlier if its device is removed: commands then return ENXIO.
 *
 * Locks, outermost first: commands_, rdma_cm's handler lock, and the table's lock. No lock is held
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
	 * Maximum number of requests to a listener that wait to be read. Additional ones are
	 * dropped, and their senders repeat them.
	 */
	static constexpr u32 backlog_max = 1024;

	/*
	 * Creates an ID for a program. Context: process. Errors: EDQUOT or ENOBUFS beyond the
	 * limits; ENOMEM; those of rdma_create_user_id().
	 */
	static kern::Result<kern::Ref<Id>> create(File &file, u64 uid, rdma_ucm_port_space ps,
						  ib_qp_type type);
	~Id();

	/*
	 * Calls body(cm) with rdma_cm's ID. Meanwhile, no other command uses the ID and it cannot
	 * be destroyed. Context: process, not from a handler. Errors: ENXIO if rdma_cm's ID has
	 * been destroyed.
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
	 * Destroys an ID that the caller has claimed, or that was created but not published, with
	 * its memberships and the new IDs that the program has not read. Returns the number of its
	 * events that have been read. Context: process.
	 */
	static u32 end(kern::Ref<Id> id);
	/* Destroys a membership in the same way as end(). */
	static u32 leave(kern::Ref<Membership> membership);
	/* Discards an event that will not be read, with the new ID in it. Context: process. */
	static void discard(kern::Owned<Event> event);

	/*
	 * Destroys rdma_cm's ID because the device is being removed. Context: process, not from a
	 * handler.
	 */
	void end_cm();

	/*
	 * on_event() is the handler for rdma_cm's events. deliver() queues an event for the
	 * program.
	 */
	static int on_event(rdma_cm_id *cm, rdma_cm_event *event);
	void deliver(const rdma_cm_event &event);

	/* Links in the list of the file, and in the list of IDs whose device has been removed. */
	kern::ListNode node;
	kern::ListNode lost;

private:
	friend class Table;

	/* Creates an ID for a request. @cm: the new ID of rdma_cm. */
	static kern::Result<kern::Ref<Id>> create_fresh(rdma_cm_id &cm);
	Id(u64 uid, ib_qp_type type, rdma_cm_id *cm) : Source(uid), cm_(cm), type_(type) {}

	kern::Result<> take_request(rdma_cm_id &cm, const rdma_cm_event &event);
	kern::Result<kern::Owned<Event>> make_event(const rdma_cm_event &event);
	/* Called if rdma_cm keeps its ID and destroys it. No other task has found this ID yet. */
	void forget_cm() KERN_NO_THREAD_SAFETY_ANALYSIS { cm_ = nullptr; }

	kern::Mutex commands_{KERN_LOCK_CLASS("rdma_ucm.commands")};
	rdma_cm_id *cm_ KERN_GUARDED_BY(commands_);
	const ib_qp_type type_;

	/*
	 * Protected by the table's lock: the file of a visible ID; its memberships; its unread
	 * events, in order; and for a listener, the number of unread requests and its limit.
	 */
	File *file_ = nullptr;
	kern::List<Membership, &Membership::node> memberships_;
	kern::List<Event, &Event::in_id> events_;
	u32 waiting_ = 0;
	u32 backlog_ = 0;
};

} // namespace rdma_ucm
