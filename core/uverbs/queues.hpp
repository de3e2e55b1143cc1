// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the objects of a program that generate events. The asynchronous events of an object are
 * read from its event file, and the completion events of a CQ from its channel, if it has one. An
 * object counts its events that have been read. The response to its destruction contains this
 * number, and the library waits until the program has acknowledged that many events.
 */
#pragma once
#include "event_file.hpp"
#include "memory.hpp"
#include "share.hpp"
#include "xrc.hpp"

namespace uverbs
{

class File;

/*
 * Returns the file for asynchronous events of a new object: the file of the descriptor, if there is
 * one, otherwise the default file. Errors: EBADF.
 */
kern::Result<kern::Ref<EventFile>> find_events(File &file, s32 descriptor);
inline constexpr s32 no_descriptor = -1;

/* A source of events, and the file from which they are read, if any. */
class EventSink
{
public:
	EventSink(kern::Ref<EventFile> file, u64 element) : file_(std::move(file)), source_(element)
	{
	}
	~EventSink() { forget(); }

	/* Context: any. */
	void push(ib_event_type type = {})
	{
		if (file_)
			file_->push(source_, type);
	}
	/*
	 * Drops unread events; returns how many events have been read. push() must not be called
	 * any more. Context: process.
	 */
	u32 forget() { return file_ ? file_->forget(source_) : 0; }

private:
	const kern::Ref<EventFile> file_;
	EventSource source_;
};

class Cq : public Owning<ib_cq, Kind::cq, ib_destroy_cq_user>
{
public:
	Cq(kern::Ref<EventFile> channel, kern::Ref<EventFile> events, u64 user_handle)
	    : completions(std::move(channel), user_handle), events(std::move(events), user_handle)
	{
	}

	EventSink completions;
	EventSink events;
};

class Srq : public Owning<ib_srq, Kind::srq, ib_destroy_srq_user>
{
public:
	struct Parents {
		Hold<Pd> pd;
		/* Set for an XRC SRQ. */
		Hold<Xrcd> xrcd;
		Hold<Cq> cq;
	};
	Srq(Parents parents, kern::Ref<EventFile> events, u64 user_handle)
	    : events(std::move(events), user_handle), parents_(std::move(parents))
	{
	}

	EventSink events;

private:
	Parents parents_;
};

/* A QP, or a handle on an XRC target QP. */
class Qp : public Owning<ib_qp, Kind::qp, ib_destroy_qp>
{
public:
	struct Parents {
		Hold<Pd> pd;
		Hold<Cq> send_cq;
		/* Empty if it is the same as send_cq. */
		Hold<Cq> recv_cq;
		Hold<Srq> srq;
		/* Set for an XRC target, which has no other parents. */
		Hold<Xrcd> xrcd;
	};
	Qp(Parents parents, kern::Ref<EventFile> events, u64 user_handle)
	    : events(std::move(events), user_handle), parents_(std::move(parents))
	{
	}
	~Qp() override;

	/* A destruction by a command is refused while the QP is attached to multicast groups. */
	kern::Result<> end(Reason reason) override;
	/*
	 * Attaches the QP to a group; has no effect if it is attached already. Context: process.
	 * Errors: EDQUOT beyond the user's share; ENOMEM; those of ib_attach_mcast().
	 */
	kern::Result<> attach(Share &share, GroupMembers &members, const ib_gid &gid, u16 lid);
	/* Errors: EINVAL if the QP is not attached to this group. */
	kern::Result<> detach(const ib_gid &gid, u16 lid);

	EventSink events;

private:
	struct Group {
		ib_gid gid;
		u16 lid;
		kern::Charge charge;
		GroupMembers::Member member;
		kern::ListNode node;
	};
	Group *find(const ib_gid &gid, u16 lid) KERN_REQUIRES(groups_lock_);

	Parents parents_;
	kern::Mutex groups_lock_{KERN_LOCK_CLASS("uverbs.groups")};
	kern::List<Group, &Group::node> groups_ KERN_GUARDED_BY(groups_lock_);
};

} // namespace uverbs
