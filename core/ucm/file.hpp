// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* An opened /dev/infiniband/rdma_cm: a program's ids, and what it has not read of them. */
#pragma once
#include <kern/file.hpp>
#include "id.hpp"

namespace ucm
{

class File {
public:
	/* Ids of one file. */
	static constexpr u32 ids_max = 16384;

	/* Context: process. Errors: ENOMEM. */
	static kern::Result<kern::Owned<File>> create(kern_file &native) { return kern::adopt(new (kern::Gfp::kernel) File(native)); }

	/* The oldest event. Errors: EAGAIN or EINTR if there is none. */
	kern::Result<kern::Owned<Event>> next_event();

	/* The file's calls. */
	kern::Result<size_t> write(u64 from, size_t count);
	unsigned int poll(kern::Poll &poll);
	void release();

private:
	friend class Table;
	explicit File(kern_file &native) : native_(native) {}

	kern_file &native_;
	/* Under the table's lock. */
	kern::List<Id, &Id::node> ids_;
	u32 count_ = 0;
	kern::List<Event, &Event::in_file> unread_;
	kern::WaitQueue readers_{KERN_LOCK_CLASS("ucm.readers")};
};

kern::FileKind<File> &file_kind();

} // namespace ucm
