// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Limits each user's share of a device's resources, over all files that the user has open, so that
 * resources remain for other users, root and the kernel (Documentation/user-verbs.rst, "Bounds").
 * Beyond the share, EDQUOT is returned.
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
 * Pools that all users of a device share. They have the size that the device reports or, if it
 * reports none or the objects only take kernel memory, a fixed size.
 */
struct Pools {
	explicit Pools(const ib_device_attr &attr);

	/* Devices have at least this many doorbell pages for programs, and one for the kernel. */
	kern::Pool contexts{1024};
	kern::Pool pds;
	kern::Pool ahs{65536};
	/* Memory regions and memory windows. */
	kern::Pool keys;
	/*
	 * CQs and XRC domains. The card needs a CQ for the target QPs of a domain, which takes as
	 * much space in an event queue as any other CQ.
	 */
	kern::Pool cqs;
	kern::Pool srqs;
	kern::Pool qps;
	/*
	 * Completion channels and files of asynchronous events. Their number is limited because all
	 * event files of a uverbs file are notified of a removal under one lock.
	 */
	kern::Pool event_files{8192};
	/* Attachments of QPs to multicast groups. */
	kern::Pool attachments{16384};
};

/*
 * Numbers of QPs of each user in multicast groups. A group can have a limited number of QPs of all
 * users and of the kernel; users get shares of it as of a pool. Context: process. Lock order:
 * innermost.
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
		/* Identifies the user; only compared. Valid as long as the user has attachments. */
		const void *user_ = nullptr;
		ib_gid gid_;
		kern::ListNode node_;
	};

	GroupMembers() = default;
	~GroupMembers();
	/*
	 * Counts the QP as long as the member exists. @group_size: maximum number of QPs of all
	 * users and the kernel in a group. Errors: EDQUOT.
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

	/* Returns the quota to which objects of this kind are charged. */
	kern::Quota &of(Kind kind);
	/* Returns true if nothing is charged, so that the share may be freed. */
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
	/* Declared before the members that are charged to it. */
	Pools pools_;
	GroupMembers group_members_;
	kern::Shares<Share> shares_{KERN_LOCK_CLASS("uverbs.shares")};
};

} // namespace uverbs
