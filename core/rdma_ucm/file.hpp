// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements an open file of /dev/infiniband/rdma_cm: a program's IDs, and their unread events. */
#pragma once
#include <kern/file.hpp>
#include <kern/shares.hpp>
#include "id.hpp"

namespace rdma_ucm
{

/* Pools that all users share. */
struct Pools {
	Pools(u32 all_ids, u32 all_memberships) : ids(all_ids), memberships(all_memberships) {}

	kern::Pool ids, memberships;
};

/*
 * One user's share of the pools, over all files that the user has open, so that some IDs are left
 * for other users and root. Beyond the share, EDQUOT is returned.
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
	/* user: the user who opens the file. Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<File>> create(kern_file &native, const kern_user &user);

	/*
	 * Removes and returns the oldest event; waits for one if the file is blocking. Errors:
	 * EAGAIN or EINTR if there is none.
	 */
	kern::Result<kern::Owned<Event>> next_event();

	/* File operations. */
	kern::Result<size_t> write(u64 from, size_t count);
	unsigned int poll(kern::Poll &poll);
	void release();

private:
	friend class Table;
	File(kern_file &native, Shares::Member share) : native_(native), share_(std::move(share)) {}

	kern_file &native_;
	/* The share to which the IDs and memberships of this file are charged. */
	const Shares::Member share_;
	/* Protected by the table's lock. */
	kern::List<Id, &Id::node> ids_;
	kern::List<Event, &Event::in_file> unread_;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("rdma_ucm.readers")};
};

kern::FileKind<File> &file_kind();

} // namespace rdma_ucm
