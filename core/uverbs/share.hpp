// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * One user's share of a device, over all files that the user has open, so that resources remain for
 * other users, root and the kernel (Documentation/user-verbs.rst, "Bounds"). Beyond the share, the
 * error is EDQUOT.
 */
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/shares.hpp>
#include <rdma/ib_verbs.h>
#include "object.hpp"

namespace uverbs
{

/*
 * Pools that all users of a device share, of the size that the device reports; if it reports none,
 * or for objects that take only kernel memory, a fixed size.
 */
struct Pools {
	explicit Pools(const ib_device_attr &attr);

	/* Devices have at least this many doorbell pages, and one for the kernel. */
	kern::Pool contexts{1024};
	kern::Pool pds;
	kern::Pool ahs{65536};
	/* Memory regions and windows. */
	kern::Pool keys;
	/*
	 * Completion queues and XRC domains. The card needs a CQ for the target QPs of a domain,
	 * which uses as much space of an event queue as any CQ.
	 */
	kern::Pool cqs;
	kern::Pool srqs;
	kern::Pool qps;
	/*
	 * Channels, and files of asynchronous events: all files of one opened device are notified
	 * of its end under one lock.
	 */
	kern::Pool event_files{8192};
	/* Attachments of QPs to multicast groups. */
	kern::Pool attachments{16384};
};

/*
 * The QPs of users in multicast groups. A group has space for a number of QPs of all users and of
 * the kernel, of which users get shares as from a pool. Context: process. Lock order: innermost.
 */
class GroupMembers
{
public:
	class Member
	{
	public:
		Member() = default;
		~Member()
		{
			if (members_)
				members_->leave(*this);
		}
		Member(const Member &) = delete;
		Member &operator=(const Member &) = delete;

	private:
		friend class GroupMembers;
		GroupMembers *members_ = nullptr;
		/* Used only for comparison. It exists as long as its attachments. */
		const void *user_ = nullptr;
		ib_gid gid_;
		kern::ListNode node_;
	};

	GroupMembers() = default;
	~GroupMembers();
	/*
	 * Counts the QP while the member exists. group_size: number of QPs of all users and the
	 * kernel. Errors: EDQUOT.
	 */
	kern::Result<> join(Member &member, const kern::UserShare &user, const ib_gid &gid,
			    u32 group_size);

private:
	static constexpr u32 buckets = 256;
	using Bucket = kern::List<Member, &Member::node_>;

	static u32 bucket_of(const ib_gid &gid);
	void leave(Member &member);

	kern::Mutex lock_{KERN_LOCK_CLASS("uverbs.group_members")};
	Bucket bucket_[buckets] KERN_GUARDED_BY(lock_);
};

class Share : public kern::UserShare
{
public:
	Share(const kern_user &user, Pools &pools)
	    : UserShare(user), contexts(pools.contexts, user, -EDQUOT),
	      pds(pools.pds, user, -EDQUOT), ahs(pools.ahs, user, -EDQUOT),
	      keys(pools.keys, user, -EDQUOT), cqs(pools.cqs, user, -EDQUOT),
	      srqs(pools.srqs, user, -EDQUOT), qps(pools.qps, user, -EDQUOT),
	      event_files(pools.event_files, user, -EDQUOT),
	      attachments(pools.attachments, user, -EDQUOT)
	{
	}

	/* The quota that objects of a kind are charged to. */
	kern::Quota &of(Kind kind);
	/* Returns true if nothing is charged, so the share may be freed. */
	bool idle() const;

	kern::Quota contexts, pds, ahs, keys, cqs, srqs, qps, event_files, attachments;
};

/* The shares of a device. */
class Shares
{
public:
	using Member = kern::Shares<Share>::Member;

	explicit Shares(const ib_device_attr &attr) : pools_(attr) {}
	/* Context: process. Errors: ENOMEM. */
	kern::Result<Member> enter(const kern_user &user) { return shares_.enter(user, pools_); }
	GroupMembers &group_members() { return group_members_; }

private:
	/* Declared before the members that take from them. */
	Pools pools_;
	GroupMembers group_members_;
	kern::Shares<Share> shares_{KERN_LOCK_CLASS("uverbs.shares")};
};

} // namespace uverbs
