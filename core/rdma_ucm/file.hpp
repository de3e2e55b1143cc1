// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* An open /dev/infiniband/rdma_cm: a program's IDs, and their unread events. */
#pragma once
#include <kern/file.hpp>
#include <kern/shares.hpp>
#include "id.hpp"

namespace rdma_ucm
{

/* Shared by all users. */
struct Pools {
	Pools(u32 all_ids, u32 all_memberships) : ids(all_ids), memberships(all_memberships) {}

	kern::Pool ids, memberships;
};

/*
 * One user's share of them, over all files that the user has open, so that some are left to other
 * users and root. Beyond it, the error is EDQUOT.
 */
class Share : public kern::UserShare
{
public:
	Share(const kern_user &user, Pools &pools)
	    : UserShare(user), ids(pools.ids, user, -EDQUOT),
	      memberships(pools.memberships, user, -EDQUOT)
	{
	}
	bool idle() const { return !ids.taken() && !memberships.taken(); }

	kern::Quota ids;
	kern::Quota memberships;
};
using Shares = kern::Shares<Share>;

class File
{
public:
	/* user: of the opener. Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<File>> create(kern_file &native, const kern_user &user);

	/* The oldest event. Errors: EAGAIN or EINTR if there is none. */
	kern::Result<kern::Owned<Event>> next_event();

	/* The file's calls. */
	kern::Result<size_t> write(u64 from, size_t count);
	unsigned int poll(kern::Poll &poll);
	void release();

private:
	friend class Table;
	File(kern_file &native, Shares::Member share) : native_(native), share_(std::move(share)) {}

	kern_file &native_;
	/* Its IDs and their memberships are charged to this. */
	const Shares::Member share_;
	/* Protected by the table's lock. */
	kern::List<Id, &Id::node> ids_;
	kern::List<Event, &Event::in_file> unread_;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("rdma_ucm.readers")};
};

kern::FileKind<File> &file_kind();

} // namespace rdma_ucm
