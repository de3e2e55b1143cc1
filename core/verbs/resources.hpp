// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tracks the live objects of a device and their owners (ib_resources.h), and reports leaked ones
 * (LOCK-10).
 *
 * An object has a number, unique among the objects of its kind on the device, from before the
 * driver creates it until after the driver has destroyed it. While it is visible, it can be looked
 * up by its number. A reader holds the object, and destruction waits until all readers have
 * released it. Numbers increase, and are reused only after wrapping around.
 */
#pragma once
#include <kern/abi/process.h>
#include <kern/assert.hpp>
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/wait_queue.hpp>
#include <rdma/ib_resources.h>
#include <rdma/ib_verbs.h>
#include "links.hpp"

namespace verbs
{

/* The kinds of resources that have numbers. */
enum class Kind : unsigned int { pd, xrcd, cq, srq, qp, mr, mw, ucontext };
inline constexpr unsigned int kind_count = 8;

struct NumberBlock;

/*
 * Visibility of an object and the number of its readers, in one word, because each object is shown
 * and hidden, and a separate lock took a tenth of the time of creating a QP. After an object is
 * hidden, only earlier readers may access it. When they have released it, it belongs to the task
 * that destroys it.
 */
class TrackingRef
{
public:
	/* There must be no readers. */
	void show()
	{
		kern_assert(is_free());
		word_.store_release(shown);
	}
	/* Returns true if there are no readers left. */
	bool hide()
	{
		const u32 before = word_.fetch_sub(shown);

		kern_assert(before & shown);
		return before == shown;
	}
	/* Returns true if the object is not visible and has no readers. */
	bool is_free() const { return word_.load_acquire() == 0; }

	/* Returns false if the object is not visible. */
	bool hold()
	{
		u32 seen = word_.load_acquire();

		while (seen & shown)
			if (word_.compare_exchange(seen, seen + 1))
				return true;
		return false;
	}
	/* Returns true if the object is hidden and this was its last reader. */
	bool release()
	{
		const u32 before = word_.fetch_sub(1);

		kern_assert((before & ~shown) > 0);
		return before == 1;
	}

private:
	static constexpr u32 shown = u32{1} << 31; /* the other bits are the number of readers */
	kern::Atomic<u32> word_{0};
};

/* Data for tracking an object, located in the object's memory. */
struct Record {
	/*
	 * ib_resource.links belongs to the midlayer. For an object with a number, it points to the
	 * record.
	 */
	static Record &of(const ib_resource &resource)
	{
		return *reinterpret_cast<Record *>(resource.links.next);
	}
	void belong_to(ib_resource &its)
	{
		resource = &its;
		its.links.next = reinterpret_cast<ib_list_head *>(this);
	}

	ib_resource *resource;
	/*
	 * Set for objects of a program: its process and, below, the context with which they were
	 * created.
	 */
	kern_process *process;
	NumberBlock *block; /* block that contains its number; nullptr while it has no number */
	u32 context;
	u32 number;
	TrackingRef tracking;
};

/*
 * A block of consecutive numbers with pointers to their objects. Each object needs only a bit and a
 * pointer in a block, which is allocated with its first object and freed with its last one. A tree
 * by number, with a node for each object, took as many instructions as the rest of creating a QP.
 */
struct NumberBlock {
	static constexpr u32 size = 60;
	/* Index of the last block whose numbers all have a successor. */
	static constexpr u32 last = ~u32{0} / size - 1;

	ib_list_head links{};
	u64 taken = 0;  /* a bit for each number in use */
	u32 number = 0; /* index of the block: its first number is `size` times the index */
	Record *records[size]{};
};
static_assert(sizeof(NumberBlock) == 512);

/*
 * All objects of one kind on one device. Context: process. Lock order: the lock is inside of all
 * others except the wait queue's lock and the handles_lock of ib_qp_core.
 */
class ResourceTable
{
public:
	/* first: index of the first block to use. */
	explicit ResourceTable(u32 first = 0) : first_(first) { ring_init(blocks_); }
	~ResourceTable();
	ResourceTable(const ResourceTable &) = delete;
	ResourceTable &operator=(const ResourceTable &) = delete;

	/*
	 * Assigns a number to a resource. @udata: the program's command; nullptr for the kernel.
	 * Usually this only takes the lock and sets a bit. Errors: ENOMEM.
	 */
	kern::Result<> add(ib_resource &resource, const ib_udata *udata);
	/* Releases the number. The resource must not be visible. */
	void remove(ib_resource &resource)
	{
		remove_with(resource, [] {});
	}
	void show(ib_resource &resource, const char *owner)
	{
		resource.owner = owner;
		shown_.add_relaxed(1);
		Record::of(resource).tracking.show();
	}
	/* Hides the resource and waits until no reader holds it. */
	void hide(ib_resource &resource)
	{
		Record &record = Record::of(resource);

		shown_.add_relaxed(-1);
		if (!record.tracking.hide()) [[unlikely]]
			wait_for_readers(record);
	}

	/*
	 * Returns the first visible resource with at least this number, or nullptr. The caller must
	 * release() it.
	 */
	Record *hold(u32 from);
	void release(Record &record);
	/* Returns the number of visible resources. */
	u32 count() const { return static_cast<u32>(shown_.load_relaxed()); }

	/*
	 * Logs the number of resources that each owner has leaked, and removes them. There must be
	 * no readers.
	 */
	void report_leaks(const ib_device &device, const char *kind);

private:
	friend class QpNumbers;

	/* Like remove(), but also calls also() with the lock held. */
	template<class Also>
	void remove_with(ib_resource &resource, Also also);
	static void forget(Record &record)
	{
		if (record.process) [[unlikely]]
			kern_process_put(std::exchange(record.process, nullptr));
	}
	void wait_for_readers(const Record &record);
	/* Assigns the next number of the current block; returns false if there is none. */
	bool place(Record &record) KERN_REQUIRES(lock_);
	/* Assigns the next number, from a new block if necessary. Errors: ENOMEM. */
	kern::Result<> assign_from_new_block(Record &record);
	/*
	 * Makes the next block current; uses @fresh if that block does not exist. Returns false if
	 * @fresh is needed but empty.
	 */
	bool next_block(kern::Owned<NumberBlock> &fresh) KERN_REQUIRES(lock_);
	void unlink_block(NumberBlock &block) KERN_REQUIRES(lock_);
	/*
	 * Releases the number. If its block is unused, removes the block and returns it; the caller
	 * frees it by dropping the result.
	 */
	kern::Owned<NumberBlock> release_number(Record &record) KERN_REQUIRES(lock_);
	/* Returns the first record with at least this number. */
	Record *find(u32 from) KERN_REQUIRES(lock_);

	kern::SpinLock lock_{KERN_LOCK_CLASS("verbs.resources")};
	kern::WaitQueue released_{KERN_LOCK_CLASS("verbs.resources.released")};
	/* Ordered by number. Only the current block may be empty. */
	ib_list_head blocks_ KERN_GUARDED_BY(lock_);
	const u32 first_;
	NumberBlock *current_ KERN_GUARDED_BY(lock_) = nullptr;
	/* next index in current_, or its size */
	u32 next_ KERN_GUARDED_BY(lock_) = NumberBlock::size;
	/* Block of the last lookup, from which an iteration continues. */
	NumberBlock *found_ KERN_GUARDED_BY(lock_) = nullptr;
	kern::Atomic<int> shown_{0};
};

/*
 * Numbers are bits of `taken`; a clear bit is a free number. Bits beyond the block's size are
 * treated as the end: if the first free bit is there, the block is full.
 */
[[gnu::always_inline]] inline bool ResourceTable::place(Record &record)
{
	NumberBlock *const block = current_;
	if (!block) [[unlikely]]
		return false;
	const u64 taken = block->taken;
	const u32 at = static_cast<u32>(__builtin_ctzll(~taken & ~u64{0} << next_));
	if (at >= NumberBlock::size) [[unlikely]]
		return false;
	next_ = at + 1;
	block->taken = taken | u64{1} << at;
	block->records[at] = &record;
	record.block = block;
	record.number = block->number * NumberBlock::size + at;
	return true;
}

[[gnu::always_inline]] inline kern::Owned<NumberBlock> ResourceTable::release_number(Record &record)
{
	NumberBlock &block = *record.block;

	block.taken &= ~(u64{1} << (record.number - block.number * NumberBlock::size));
	if (block.taken || &block == current_) [[likely]]
		return {};
	unlink_block(block);
	return kern::Owned<NumberBlock>::adopt(&block);
}

[[gnu::always_inline]] inline kern::Result<> ResourceTable::add(ib_resource &resource,
								const ib_udata *udata)
{
	Record &record = Record::of(resource);
	bool placed;

	resource.user = udata;
	record.context = IB_NO_RESOURCE;
	{
		kern::Guard guard(lock_);
		placed = place(record);
	}
	if (!placed) [[unlikely]]
		KERN_TRY(assign_from_new_block(record));
	if (udata) {
		record.process = kern_process_get();
		if (udata->context)
			record.context = Record::of(udata->context->res).number;
	}
	return {};
}

template<class Also>
[[gnu::always_inline]] inline void ResourceTable::remove_with(ib_resource &resource, Also also)
{
	Record &record = Record::of(resource);
	kern::Owned<NumberBlock> empty;

	kern_assert(record.tracking.is_free());
	{
		kern::Guard guard(lock_);
		also();
		empty = release_number(record);
	}
	forget(record);
}

/* All address handles of a device, for finding leaked ones. Context: any. Lock order: innermost. */
class ResourceList
{
public:
	ResourceList() { ring_init(head_); }

	void add(ib_resource &resource, const char *owner);
	void remove(ib_resource &resource);
	/* Logs the number of handles that each owner has leaked, and removes them. */
	void report_leaks(const ib_device &device, const char *kind);

private:
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("verbs.address_handles")};
	ib_list_head head_;
};

} // namespace verbs
