// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The live objects of a device: whose they are, for those who ask (ib_resources.h), and what is left behind (LOCK-10).
 *
 * An object has a number of its kind on its device from before the driver makes it until after the driver has ended it; numbers go up, and
 * come again only when all have been had. In between it is shown: whoever looks at it holds it, and its destruction waits for him.
 */
#pragma once
#include <kern/abi/process.h>
#include <kern/abi/xarray.h>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/wait_queue.hpp>
#include <rdma/ib_verbs.h>
#include "links.hpp"

namespace verbs
{

/* Those with numbers. */
enum class Kind : unsigned int { pd, xrcd, cq, srq, qp, mr, mw, ucontext };
inline constexpr unsigned int kind_count = 8;

/* What is known of an object beside itself, in the memory of which it lies. */
struct Record {
	/* One step up or down: ResourceTable::move(). */
	enum class State : u8 { unnumbered, numbered, shown };

	/* ib_resource.links is the midlayer's: of an object with a number it leads here. */
	static Record &of(const ib_resource &resource) { return *reinterpret_cast<Record *>(resource.links.next); }
	void belong_to(ib_resource &its)
	{
		resource = &its;
		its.links.next = reinterpret_cast<ib_links *>(this);
	}

	ib_resource *resource;
	/* Of a program's: by whom, and in which context it was made. */
	kern_process *process;
	u32 context;
	u32 number;
	State state;
	unsigned int readers;
};

/* All objects of one kind on one device. Context: process. Lock order: innermost but for the wait queue's. */
class ResourceTable {
public:
	ResourceTable() { kern_xa_init(&all_); }
	~ResourceTable() { kern_xa_destroy(&all_); }

	/* Gives it its number. udata: whose it is, nullptr for the kernel. Errors: ENOMEM. */
	kern::Result<> add(ib_resource &resource, const ib_udata *udata);
	/* Of one that is not shown. */
	void remove(ib_resource &resource);
	void show(ib_resource &resource, const char *owner);
	/* Waits for those who hold it. */
	void hide(ib_resource &resource);

	/* The first that is shown, of that number or a greater one, held until release(); nullptr for none. */
	Record *hold(u32 from);
	void release(Record &record);
	/* How many are shown. */
	u32 count();

	/* Logs how many are left of each owner, and forgets them. Nobody holds any. */
	void report_leaks(const ib_device &device, const char *kind);

private:
	void move(Record &record, Record::State to) REQUIRES(lock_);
	/* The first of that number or a greater one. */
	Record *find(unsigned long from) { return static_cast<Record *>(kern_xa_find(&all_, &from)); }

	kern::SpinLock lock_{KERN_LOCK_CLASS("verbs.resources")};
	kern::WaitQueue released_{KERN_LOCK_CLASS("verbs.resources.released")};
	/* Records by number. What is taken out of it is under lock_. */
	kern_xarray all_;
	u32 next_ = 0;
	u32 shown_ GUARDED_BY(lock_) = 0;
};

/* All address handles of a device, for what is left behind. Context: any. Lock order: innermost. */
class ResourceList {
public:
	ResourceList() { ring_init(head_); }

	void add(ib_resource &resource, const char *owner);
	void remove(ib_resource &resource);
	/* Logs how many are left of each owner, and forgets them. */
	void report_leaks(const ib_device &device, const char *kind);

private:
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("verbs.address_handles")};
	ib_links head_;
};

} // namespace verbs
