// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A program's context on the card: a doorbell page, a table of doorbell records in pages of the
 * program, and the regions that the program declares to contain queues.
 */
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/user_memory.hpp>
#include <rdma/driver.hpp>
#include "../mellanox_icm/doorbell_page.hpp"
#include "hca.hpp"

namespace mthca
{

class UserContext;

/*
 * A record in a program's table: its page is pinned, and the card's, as long as a queue has a
 * record in it.
 */
class UserRecord
{
public:
	UserRecord() = default;
	/*
	 * page: where in the process the page lies that the record is in. Context: process, the
	 * program's.
	 * Errors: EINVAL for an index that the table has not, for an address that is not a page's,
	 * and for another page than the table has there; those of kern::UserMemory and of commands.
	 */
	static kern::Result<UserRecord> create(UserContext &context, u64 page, u32 index);
	UserRecord(UserRecord &&other) noexcept
	    : context_(std::exchange(other.context_, nullptr)), index_(other.index_)
	{
	}
	UserRecord &operator=(UserRecord &&other) noexcept
	{
		std::swap(context_, other.context_);
		std::swap(index_, other.index_);
		return *this;
	}
	~UserRecord();

	u32 index() const { return index_; }

private:
	UserContext *context_ = nullptr;
	u32 index_ = 0;
};

/*
 * A region that contains a queue. It is kept until the queue is destroyed; otherwise the card would
 * use the next region with the same key.
 */
class UserRegion
{
public:
	UserRegion() = default;
	/*
	 * The one of this context, and in the domain, with this key. Errors: EINVAL if there is
	 * none. Context: process.
	 */
	static kern::Result<UserRegion> create(UserContext &context, u32 lkey, u32 pdn);
	UserRegion(UserRegion &&other) noexcept : mr_(std::exchange(other.mr_, nullptr)) {}
	UserRegion &operator=(UserRegion &&other) noexcept
	{
		std::swap(mr_, other.mr_);
		return *this;
	}
	~UserRegion();

private:
	Mr *mr_ = nullptr;
};

/*
 * Fields of a context that locate a queue, and the page of its doorbell. The kernel's queues use
 * bus addresses and the key of all memory, in their own domain, and a program's start at the
 * beginning of a region.
 */
struct QueuePlace {
	u32 uar_page;
	u32 lkey;
	u64 start;
};

/* Outlives all queues and regions that are made with it. */
class UserContext
{
public:
	using Object = rdma::DriverObject<ib_ucontext, UserContext>;
	static UserContext &of(ib_ucontext *context) { return Object::state(context); }

	UserContext(Hca &hca, ib_ucontext &verbs);
	/*
	 * Errors: ENOMEM where every doorbell page is taken; those of the answer. Context: process,
	 * the program's.
	 */
	kern::Result<> start(ib_udata &udata);
	kern::Result<> map(u64 page_offset, size_t length, ib_user_mapping &mapping) const
	{
		return page_.map(hca_.pci(), page_offset, length, mapping);
	}

	/* The number of the doorbell page in contexts of its queues. */
	u32 uar_page() const { return page_.number(); }

	/* Mr's: queues may lie in it from now on. */
	void add(Mr &mr);
	/* No longer. Errors: EBUSY while one does, and nothing has changed. */
	kern::Result<> remove(Mr &mr);

private:
	friend class UserRecord;
	friend class UserRegion;
	struct Page {
		kern::UserMemory memory;
		u32 users = 0;
	};
	u64 icm_address(u32 page) const;

	Hca &hca_;
	DoorbellPage page_;
	// Held while a page is pinned.
	kern::Mutex lock_;
	kern::OwnedArray<Page> record_pages_ KERN_GUARDED_BY(lock_);
	kern::Mutex regions_lock_;
	kern::List<Mr, &Mr::node> regions_ KERN_GUARDED_BY(regions_lock_);
};

} // namespace mthca
