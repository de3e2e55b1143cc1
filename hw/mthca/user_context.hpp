// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Manages a program's context on the card: a doorbell page, a table of doorbell records in pages of
 * the program, and the regions that the program may use for queues.
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
 * A record in a program's table. Its page is pinned and mapped for the card as long as a queue has
 * a record in it.
 */
class UserRecord
{
public:
	UserRecord() = default;
	/*
	 * page: the address in the process of the page that contains the record. Context: process
	 * of the program.
	 * Errors: EINVAL for an index outside the table, for an address that is not aligned to a
	 * page, or if the table has another page at that position; those of kern::UserMemory and of
	 * commands.
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
 * A region that contains a queue. It cannot be deregistered before the queue is destroyed;
 * otherwise the card would use the next region with the same key.
 */
class UserRegion
{
public:
	UserRegion() = default;
	/*
	 * Finds the region of the context and the domain with this key. Errors: EINVAL if there is
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
 * Fields of a context that locate a queue and the page of its doorbell. The kernel's queues use bus
 * addresses and a key for all memory, in its own domain. A program's queue starts at the beginning
 * of a region.
 */
struct QueuePlace {
	u32 uar_page;
	u32 lkey;
	u64 start;
};

/* Outlives all queues and regions that are created with it. */
class UserContext
{
public:
	using Object = rdma::DriverObject<ib_ucontext, UserContext>;
	static UserContext &of(ib_ucontext *context) { return Object::state(context); }

	UserContext(Hca &hca, ib_ucontext &verbs);
	/*
	 * Allocates the doorbell page, and writes the response. Errors: ENOMEM if all doorbell
	 * pages are in use; those of writing the response. Context: process of the program.
	 */
	kern::Result<> start(ib_udata &udata);
	kern::Result<> map(u64 page_offset, size_t length, ib_user_mapping &mapping) const
	{
		return page_.map(hca_.pci(), page_offset, length, mapping);
	}

	/* The number of the doorbell page, for the contexts of the program's queues. */
	u32 uar_page() const { return page_.number(); }

	/* Called by Mr: queues may use the region from now on. */
	void add(Mr &mr);
	/*
	 * Removes a region, which no queue can use from now on. Called by Mr. Errors: EBUSY,
	 * without effect, if a queue uses the region.
	 */
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
	// Held while a page is pinned and mapped.
	kern::Mutex lock_;
	kern::OwnedArray<Page> record_pages_ KERN_GUARDED_BY(lock_);
	kern::Mutex regions_lock_;
	kern::List<Mr, &Mr::node> regions_ KERN_GUARDED_BY(regions_lock_);
};

} // namespace mthca
