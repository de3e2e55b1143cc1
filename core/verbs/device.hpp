// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The midlayer's part of a device, and what all verbs do with objects: allocate, count, list.
#pragma once
#include <kern/bits.hpp>
#include <kern/errno.h>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/rcu.hpp>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include "links.hpp"

namespace verbs
{

struct PortTable;

enum class Kind : unsigned int { pd, xrcd, ah, cq, srq, qp, mr, mw, ucontext };
inline constexpr unsigned int kind_count = 9;

/* All live objects of one kind on one device (LOCK-10). Lock order: innermost. */
class ResourceList {
public:
	ResourceList() { ring_init(head_); }

	void add(ib_resource &resource, const char *owner);
	void remove(ib_resource &resource);
	/* Logs how many are left of each owner, and forgets them. */
	void report_leaks(const ib_device &device, const char *kind);

private:
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("verbs.resources")};
	ib_links head_;
};

/* The midlayer's part of a port. */
struct Port {
	kern::rcu::Pointer<PortTable> table;
};

} // namespace verbs

struct ib_device_verbs {
	verbs::ResourceList resources[verbs::kind_count];
	kern::OwnedArray<verbs::Port> ports;
	kern::OwnedArray<ib_port_immutable> immutable;
	/* Excludes refreshes of the cache. */
	kern::Mutex cache_lock{KERN_LOCK_CLASS("verbs.cache")};
	/* The rings of XRC domains. Held while handles open and close; outside of ib_qp_core's lock. */
	kern::Mutex xrc_lock{KERN_LOCK_CLASS("verbs.xrc")};
	u32 next_vector = 0;
};

namespace verbs
{

/* The memory of an object until its creation has succeeded. */
template <class T>
class Draft {
public:
	/*
	 * Zeroed, `size` bytes as the driver says, and `extra` behind them. Empty without memory. Of a power-of-two size, so that
	 * it is aligned as rdma::DriverObject says: others are to 8 bytes only.
	 */
	Draft(size_t size, kern::Gfp gfp, size_t extra = 0)
	    : object_(static_cast<T *>(kern_alloc(kern::round_up_power_of_two(tail_offset(size) + extra),
						  static_cast<unsigned int>(gfp | kern::Gfp::zero))))
	{
	}
	~Draft() { kern_free(object_); }
	Draft(const Draft &) = delete;
	Draft &operator=(const Draft &) = delete;

	explicit operator bool() const { return object_ != nullptr; }
	/* What the driver's create method finds filled in of every object. */
	void belongs_to(ib_device *device, const ib_udata *udata)
	{
		object_->device = device;
		object_->res.user = udata;
	}
	T *operator->() const { return object_; }
	T *get() const { return object_; }
	/* What lies behind the driver's part. */
	void *tail(size_t size) const { return reinterpret_cast<char *>(object_) + tail_offset(size); }
	T *release() { return std::exchange(object_, nullptr); }

private:
	static constexpr size_t tail_offset(size_t size) { return (size + 7) & ~size_t{7}; }

	T *object_;
};

template <class T>
constexpr Kind kind_of();
template <>
constexpr Kind kind_of<ib_pd>() { return Kind::pd; }
template <>
constexpr Kind kind_of<ib_xrcd>() { return Kind::xrcd; }
template <>
constexpr Kind kind_of<ib_ah>() { return Kind::ah; }
template <>
constexpr Kind kind_of<ib_cq>() { return Kind::cq; }
template <>
constexpr Kind kind_of<ib_srq>() { return Kind::srq; }
template <>
constexpr Kind kind_of<ib_qp>() { return Kind::qp; }
template <>
constexpr Kind kind_of<ib_mr>() { return Kind::mr; }
template <>
constexpr Kind kind_of<ib_mw>() { return Kind::mw; }
template <>
constexpr Kind kind_of<ib_ucontext>() { return Kind::ucontext; }

/* An object begins to be listed when its creation has succeeded, and ends before its destruction begins to free. */
template <class T>
void list(T *object, const char *owner)
{
	object->device->verbs->resources[static_cast<unsigned int>(kind_of<T>())].add(object->res, owner);
}
template <class T>
void unlist(T *object)
{
	object->device->verbs->resources[static_cast<unsigned int>(kind_of<T>())].remove(object->res);
}

/* Whether there is something to create in: neither nothing nor the error pointer of a creation that failed. */
template <class T>
bool is_object(const T *object)
{
	return object && !rdma::is_err(object);
}
/* The same, and of this device. */
template <class T>
bool belongs(const T *object, const ib_device &device)
{
	return is_object(object) && object->device == &device;
}

/* Uses of an object by others; nullptr is no object. */
template <class T>
void use(T *object)
{
	if (object)
		__atomic_fetch_add(&object->usecnt, 1, __ATOMIC_RELAXED);
}
template <class T>
void unuse(T *object)
{
	if (object)
		__atomic_fetch_sub(&object->usecnt, 1, __ATOMIC_RELEASE);
}
template <class T>
bool in_use(const T *object)
{
	return __atomic_load_n(&object->usecnt, __ATOMIC_ACQUIRE) != 0;
}

/* Is an address vector one that the device can have? Gives it its type. Errors: EINVAL. Context: any. */
int check_address(ib_device &device, rdma_ah_attr &attr);

} // namespace verbs
