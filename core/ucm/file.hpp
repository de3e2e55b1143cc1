// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* An opened /dev/infiniband/rdma_cm: a program's ids, and what it has not read of them. */
#pragma once
#include <kern/file.hpp>
#include <kern/shares.hpp>
#include "id.hpp"

namespace ucm
{

/*
 * What one user may have by all the files that he has open: a quarter of what there is, so that
 * others find the rest. Who asks for more gets EDQUOT.
 */
class Share : public kern::UserShare
{
public:
	static constexpr u32 ids_max = 16384, memberships_max = 4096;

	explicit Share(u32 its_user) : UserShare(its_user) {}
	bool idle() const { return !ids.taken() && !memberships.taken(); }

	kern::Budget ids{ids_max, -EDQUOT};
	kern::Budget memberships{memberships_max, -EDQUOT};
};
using Shares = kern::Shares<Share>;

class File
{
public:
	/* user: who has opened it. Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<File>> create(kern_file &native, u32 user);

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
	/* What its ids, and their memberships, have portions of. */
	const Shares::Member share_;
	/* Under the table's lock. */
	kern::List<Id, &Id::node> ids_;
	kern::List<Event, &Event::in_file> unread_;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("ucm.readers")};
};

kern::FileKind<File> &file_kind();

} // namespace ucm
