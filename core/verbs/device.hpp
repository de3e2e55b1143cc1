// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the midlayer's part of a device, and the operations common to all verbs objects:
// allocation, use counts, resource tracking.
#pragma once
#include <kern/bits.hpp>
#include <kern/errno.h>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/rcu.hpp>
#include <kern/use_count.hpp>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include "checks.hpp"
#include "hw_counters.hpp"
#include "links.hpp"
#include "protocol.hpp"
#include "qp_numbers.hpp"
#include "resources.hpp"
#include "trace.hpp"

namespace verbs
{

struct PortTable;

/* The midlayer's part of a port. */
struct Port {
	kern::rcu::Pointer<PortTable> table;
	/* Does not change after registration. */
	Protocol protocol;
};

} // namespace verbs

struct ib_device_verbs {
	verbs::ResourceTable resources[verbs::kind_count];
	verbs::ResourceList address_handles;
	verbs::QpNumbers qp_numbers{resources[static_cast<unsigned int>(verbs::Kind::qp)]};
	kern::OwnedArray<verbs::Port> ports;
	kern::OwnedArray<ib_port_immutable> immutable;
	/*
	 * Indexed by port; index 0 has the counters of the device itself. Empty if the device has
	 * no counters.
	 */
	kern::OwnedArray<verbs::HwStats> hw_stats;
	/* Serialises refreshes of the cache. */
	kern::Mutex cache_lock{KERN_LOCK_CLASS("verbs.cache")};
	/*
	 * Protects the rings of XRC domains. Held while handles are opened and closed. Lock order:
	 * outside of the locks of ib_qp_core.
	 */
	kern::Mutex xrc_lock{KERN_LOCK_CLASS("verbs.xrc")};
	u32 next_vector = 0;
	const verbs::Transport transport;
	kern::Owned<verbs::DeviceTrace> trace;

	explicit ib_device_verbs(verbs::Transport used) : transport(used) {}
};

namespace verbs
{

template<class T>
constexpr Kind kind_of();
template<>
constexpr Kind kind_of<ib_pd>()
{
	return Kind::pd;
}
template<>
constexpr Kind kind_of<ib_xrcd>()
{
	return Kind::xrcd;
}
template<>
constexpr Kind kind_of<ib_cq>()
{
	return Kind::cq;
}
template<>
constexpr Kind kind_of<ib_srq>()
{
	return Kind::srq;
}
template<>
constexpr Kind kind_of<ib_qp>()
{
	return Kind::qp;
}
template<>
constexpr Kind kind_of<ib_mr>()
{
	return Kind::mr;
}
template<>
constexpr Kind kind_of<ib_mw>()
{
	return Kind::mw;
}
template<>
constexpr Kind kind_of<ib_ucontext>()
{
	return Kind::ucontext;
}

/*
 * Objects with numbers. Address handles have none, because they are created and destroyed in any
 * context; they are in a list instead.
 */
template<class T>
concept Numbered = !__is_same(T, ib_ah);

template<Numbered T>
ResourceTable &table_of(const T &object)
{
	return object.device->verbs->resources[static_cast<unsigned int>(kind_of<T>())];
}

/* Releases the object's number. The object must not be visible. */
template<Numbered T>
void unlist(T &object)
{
	table_of(object).remove(object.res);
}
inline void unlist(ib_qp &qp)
{
	qp.device->verbs->qp_numbers.remove(qp);
}

/* Objects of programs are charged to the memory control group of the process that creates them. */
inline kern::Gfp memory_for(const ib_udata *udata)
{
	return udata ? kern::Gfp::kernel_account : kern::Gfp::kernel;
}

/* Owns the memory of an object until its creation has succeeded. */
template<class T>
class Allocation
{
public:
	/*
	 * Allocates `size` bytes for the driver's structure and `extra` bytes after it, zeroed and
	 * aligned as rdma::DriverObject requires. The pointer is nullptr if the allocation fails.
	 */
	Allocation(size_t size, kern::Gfp gfp, size_t extra = 0)
	    : object_(static_cast<T *>(
		      kern_alloc(allocated_size(size, extra),
				 static_cast<unsigned int>(gfp | kern::Gfp::zero))))
	{
		if constexpr (Numbered<T>)
			if (object_)
				static_cast<Record *>(tail(tail_offset(size) + extra))
					->belong_to(object_->res);
	}
	~Allocation()
	{
		if (!object_)
			return;
		if constexpr (Numbered<T>)
			if (Record::of(object_->res).block)
				unlist(*object_);
		kern_free(object_);
	}
	Allocation(const Allocation &) = delete;
	Allocation &operator=(const Allocation &) = delete;

	explicit operator bool() const { return object_ != nullptr; }
	/*
	 * Initialises the members that the driver's create method may use in every object, and
	 * assigns the object's number. After it, no step of the midlayer can fail.
	 */
	int belongs_to(ib_device *device, const ib_udata *udata)
		requires Numbered<T>
	{
		object_->device = device;
		return table_of(*object_).add(object_->res, udata).error();
	}
	void belongs_to(ib_device *device, const ib_udata *udata)
		requires(!Numbered<T>)
	{
		object_->device = device;
		object_->res.user = udata;
	}
	T *operator->() const { return object_; }
	T *get() const { return object_; }
	/* Returns the memory after the driver's structure. */
	void *tail(size_t size) const
	{
		return reinterpret_cast<char *>(object_) + tail_offset(size);
	}
	T *release() { return std::exchange(object_, nullptr); }

private:
	static constexpr size_t tail_offset(size_t size) { return (size + 7) & ~size_t{7}; }
	static constexpr size_t whole_size(size_t size, size_t extra)
	{
		return tail_offset(tail_offset(size) + extra) + (Numbered<T> ? sizeof(Record) : 0);
	}
	/*
	 * Returns the allocated size. Objects whose size is a power of two are aligned to it, all
	 * others to 8 bytes. That is enough for sizes that are not multiples of 16; padding would
	 * have to be cleared.
	 */
	static constexpr size_t allocated_size(size_t size, size_t extra)
	{
		const size_t whole = whole_size(size, extra);

		return size % 16 ? whole : kern::round_up_power_of_two(whole);
	}

	T *object_;
};

/* Makes the object visible after its successful creation. */
template<Numbered T>
void list(T *object, const char *owner)
{
	table_of(*object).show(object->res, owner);
}
inline void list(ib_ah *handle, const char *owner)
{
	handle->device->verbs->address_handles.add(handle->res, owner);
}

/*
 * Hides an object while it is destroyed or changed. The destructor shows the object again unless
 * remove() was called. Context: process; the constructor waits for readers.
 */
template<Numbered T>
class RemovalGuard
{
public:
	explicit RemovalGuard(T *object) : object_(object) { table_of(*object).hide(object->res); }
	~RemovalGuard()
	{
		if (object_)
			table_of(*object_).show(object_->res, object_->res.owner);
	}
	RemovalGuard(const RemovalGuard &) = delete;
	RemovalGuard &operator=(const RemovalGuard &) = delete;

	/* Called when the object has been destroyed. */
	void remove()
	{
		unlist(*object_);
		object_ = nullptr;
	}

private:
	T *object_;
};

/*
 * Returns true if the pointer refers to an object: it is neither nullptr nor the error pointer of a
 * failed creation.
 */
template<class T>
bool is_object(const T *object)
{
	return object && !rdma::is_err(object);
}
/* Returns true if, in addition, the object belongs to this device. */
template<class T>
bool belongs(const T *object, const ib_device &device)
{
	return is_object(object) && object->device == &device;
}

/*
 * Counts a use of an object by other objects; a nullptr is ignored. A debug build checks the count
 * like refcount_t does, except that it begins at zero. An invalid count saturates, so that the
 * object is leaked rather than freed while it is used.
 */
template<class T>
void use(T *object)
{
	if (object && kern::count_up(object->usecnt) < 0)
		report_use_count(*object);
}
template<class T>
void unuse(T *object)
{
	if (object && kern::count_down(object->usecnt) < 0)
		report_use_count(*object);
}
template<class T>
bool in_use(const T *object)
{
	return kern::count_of(object->usecnt) != 0;
}

/* The port must be valid. */
inline const ProtocolTraits &traits_of(const ib_device &device, u32 port_num)
{
	return traits_of(device.verbs->ports[port_num].protocol);
}

/*
 * Checks whether the device supports an address vector, and sets its type. Errors: EINVAL. Context:
 * any.
 */
int check_address(ib_device &device, rdma_ah_attr &attr);

} // namespace verbs
