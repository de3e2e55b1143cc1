// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's XArray, which finds objects by index and allocates free indices.
#pragma once
#include <kern/abi/xarray.h>
#include <kern/memory.hpp>

namespace kern
{

/*
 * A map from indices to objects, dense or sparse. It does not own the objects. load() takes no lock
 * and can be called in any context; the caller ensures that the object remains valid (by RCU, or by
 * waiting for an interrupt handler). insert() and alloc() are for tasks with interrupts enabled.
 */
template<class T>
class XArray
{
	static_assert(alignof(T) >= 4, "the two lowest bits of an entry are the kernel's");

public:
	XArray() { kern_xa_init(&native_); }
	~XArray()
	{
		kern_assert(empty());
		kern_xa_destroy(&native_);
	}
	XArray(const XArray &) = delete;
	XArray &operator=(const XArray &) = delete;

	bool empty() { return kern_xa_empty(&native_); }
	/* Returns nullptr if there is no entry. Context: any. */
	T *load(unsigned long index) { return static_cast<T *>(kern_xa_load(&native_, index)); }
	/* Errors: EBUSY if the index is used, ENOMEM. */
	Result<> insert(unsigned long index, T *object, Gfp flags = Gfp::kernel)
	{
		return check(
			kern_xa_insert(&native_, index, object, static_cast<unsigned int>(flags)));
	}
	/*
	 * Stores the object at the lowest free index from min to max. Errors: EBUSY if there is
	 * none, ENOMEM.
	 */
	Result<u32> alloc(T *object, u32 min, u32 max, Gfp flags = Gfp::kernel)
	{
		u32 index;
		KERN_TRY_ERRNO(kern_xa_alloc(&native_, &index, object, min, max,
					     static_cast<unsigned int>(flags)));
		return index;
	}
	/*
	 * Like alloc(), but searches cyclically, so that an index is not reused soon. The caller
	 * keeps `next`.
	 */
	Result<u32> alloc_cyclic(T *object, u32 min, u32 max, u32 &next, Gfp flags = Gfp::kernel)
	{
		u32 index;
		KERN_TRY_ERRNO(kern_xa_alloc_cyclic(&native_, &index, object, min, max, &next,
						    static_cast<unsigned int>(flags)));
		return index;
	}
	/* Removes and returns the entry. Context: any. */
	T *erase(unsigned long index) { return static_cast<T *>(kern_xa_erase(&native_, index)); }

	/*
	 * Calls body(index, object) for each entry, in the order of indices. Entries may be added
	 * and removed during the call.
	 */
	template<class Body>
	void for_each(Body body)
	{
		unsigned long index = 0;
		while (auto *object = static_cast<T *>(kern_xa_find(&native_, &index))) {
			body(index, *object);
			if (++index == 0)
				break;
		}
	}

private:
	kern_xarray native_;
};

/* Allocates free numbers from a range. */
class IdAllocator
{
public:
	IdAllocator() { kern_ida_init(&native_); }
	~IdAllocator()
	{
		kern_assert(empty());
		kern_ida_destroy(&native_);
	}
	IdAllocator(const IdAllocator &) = delete;
	IdAllocator &operator=(const IdAllocator &) = delete;

	/*
	 * Returns the lowest free number from min to max (max < 2^31). Errors: ENOSPC, ENOMEM.
	 * Context: any that `flags` permits.
	 */
	Result<unsigned int> alloc(unsigned int min, unsigned int max, Gfp flags = Gfp::kernel)
	{
		const int id = kern_ida_alloc(&native_, min, max, static_cast<unsigned int>(flags));
		if (id < 0)
			return Error{id};
		return static_cast<unsigned int>(id);
	}
	/* Any context. */
	void free(unsigned int id) { kern_ida_free(&native_, id); }
	bool empty() { return kern_ida_empty(&native_); }

private:
	kern_ida native_;
};

} // namespace kern
