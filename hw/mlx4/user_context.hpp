// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages a program's context on the card: its own doorbell page, and the pages that contain its
// doorbell records.
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/user_memory.hpp>
#include <rdma/driver.hpp>
#include "../mellanox_icm/doorbell_page.hpp"
#include "hca.hpp"

namespace mlx4
{

class UserContext;

/* A record in a program's memory. Its page is pinned as long as a queue has a record in it. */
class UserDoorbell
{
public:
	UserDoorbell() = default;
	/*
	 * Errors: EINVAL for an address that is not aligned to `size`; those of kern::UserMemory.
	 * Context: process of the program.
	 */
	static kern::Result<UserDoorbell> create(UserContext &context, u64 address, u32 size);
	UserDoorbell(UserDoorbell &&other) noexcept
	    : context_(std::exchange(other.context_, nullptr)), page_(other.page_),
	      bus_address_(other.bus_address_)
	{
	}
	UserDoorbell &operator=(UserDoorbell &&other) noexcept
	{
		std::swap(context_, other.context_);
		std::swap(page_, other.page_);
		std::swap(bus_address_, other.bus_address_);
		return *this;
	}
	~UserDoorbell();

	u64 bus_address() const { return bus_address_; }

private:
	friend class UserContext;
	/*
	 * There is one Page for each page of each process, because after a fork() the same address
	 * may refer to different pages.
	 */
	struct Page {
		kern::ListNode node;
		kern::UserMemory memory;
		u32 users = 0;
	};

	UserContext *context_ = nullptr;
	Page *page_ = nullptr;
	u64 bus_address_ = 0;
};

/* Outlives all queues that are created with it. */
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

private:
	friend class UserDoorbell;
	using Page = UserDoorbell::Page;

	Hca &hca_;
	DoorbellPage page_;
	/* Held while a page is pinned. */
	kern::Mutex lock_;
	kern::List<Page, &Page::node> doorbell_pages_ KERN_GUARDED_BY(lock_);
};

} // namespace mlx4
