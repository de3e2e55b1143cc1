// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Manages a program's objects and their handles.
 *
 * An object is held by the commands that use it and by the objects that depend on it. It can be
 * destroyed when nothing holds it. One command at a time creates or destroys an object; meanwhile
 * other commands that refer to it get EBUSY. A file lists its objects in the order of their
 * creation, so an object comes after those that it holds, and destroying all in reverse order
 * always works.
 *
 * When the device is removed, the device's resource is released (`end()`) before the object is. The
 * program then still has the handles, and destroys them as usual.
 */
#pragma once
#include <kern/atomic.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/quota.hpp>
#include <kern/rdma_cgroup.hpp>
#include <kern/xarray.hpp>

namespace uverbs
{

enum class Kind : u8 { pd, ah, mr, mw, cq, srq, qp, xrcd };

class Share;

/* The reason why an object is destroyed. */
enum class Reason : u8 {
	/* The program destroys the object. This is refused if another object depends on it. */
	command,
	/* The program has exited, or the device was removed. */
	gone,
};

class Object
{
public:
	explicit Object(Kind kind) : kind_(kind) {}
	virtual ~Object() = default;
	Object(const Object &) = delete;
	Object &operator=(const Object &) = delete;

	u32 handle() const { return handle_; }

	/*
	 * Destroys the device's resource, if it exists; if this fails, the resource still exists.
	 * Afterwards the device does not call the object. Context: process, in the task that
	 * creates or destroys the object.
	 */
	virtual kern::Result<> end(Reason reason) = 0;
	/*
	 * Returns true if the object has no resource of the device, because it was released or
	 * never existed.
	 */
	virtual bool ended() const = 0;

private:
	friend class ObjectTable;
	template<class T>
	friend class Hold;

	bool hold();
	void unhold() { users_.fetch_sub(1); }

	static constexpr int alone = -1;

	const Kind kind_;
	u32 handle_ = 0;
	/* The number of holders, or `alone` while the object is being created or destroyed. */
	kern::Atomic<int> users_{alone};
	kern::ListNode node_;
	kern::Charge charge_;
	/* Held while the object has a resource of the device. */
	kern::CgroupCharge cgroup_charge_;
};

/* A reference that prevents the destruction of an object. */
template<class T>
class Hold
{
public:
	Hold() = default;
	Hold(Hold &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
	Hold &operator=(Hold &&other) noexcept
	{
		std::swap(object_, other.object_);
		return *this;
	}
	~Hold()
	{
		if (object_)
			object_->unhold();
	}

	T *operator->() const { return object_; }
	T *get() const { return object_; }
	explicit operator bool() const { return object_ != nullptr; }

private:
	friend class ObjectTable;
	/* Takes over a hold that the caller has. */
	explicit Hold(T *object) : object_(object) {}

	T *object_ = nullptr;
};

/*
 * Lock order: the lock of the table is held while objects are destroyed, so it is outside of all
 * locks that this takes.
 */
class ObjectTable
{
public:
	/*
	 * @share: the share of the user who owns the objects; it must outlive them. @cgroup: the
	 * control group to which objects are charged, or nullptr; it must be valid until end_all().
	 */
	explicit ObjectTable(Share &share, kern_cgroup_device *cgroup = nullptr)
	    : share_(share), cgroup_(cgroup)
	{
	}
	~ObjectTable() { kern_assert(objects_.empty()); }

	/*
	 * Finds an object by its kind and handle. Errors: ENOENT; EINVAL for an object of another
	 * kind; EBUSY while it is being created or destroyed.
	 */
	template<class T>
	kern::Result<Hold<T>> find(u32 handle)
	{
		return Hold<T>(static_cast<T *>(KERN_TRY(find_held(handle, T::kind))));
	}
	/*
	 * Like find(), but gives the caller exclusive use until remove() or leave(). Errors: also
	 * EBUSY if the object is held.
	 */
	template<class T>
	kern::Result<T *> claim(u32 handle)
	{
		return static_cast<T *>(KERN_TRY(claim_held(handle, T::kind)));
	}

	/*
	 * Assigns a handle to a new object. The caller has exclusive use until leave() or remove().
	 * Errors: EDQUOT beyond the user's share; EAGAIN beyond the limit of a control group;
	 * ENOMEM.
	 */
	kern::Result<> add(Object &object);
	/* Ends the exclusive use, so that other commands can find the object. */
	void leave(Object &object) { object.users_.store_release(0); }
	/*
	 * Moves an object to the end of the list, because it now holds another object and must come
	 * after it. The caller has exclusive use of the object, which must have no holders.
	 */
	void move_to_end(Object &object);
	/*
	 * Frees an object. The caller has exclusive use of it, and its resource of the device must
	 * have been released.
	 */
	void remove(Object &object);

	/*
	 * Releases the device's resources of all objects; the handles stay. No command that needs
	 * the device may run during or after this. Returns false if the device refused to destroy a
	 * resource. Such objects, and all on which they depend, are leaked, because the device may
	 * still use them.
	 */
	bool end_all();
	/* Frees all objects, for which end_all() must have been called. No command may run. */
	void clear();

private:
	kern::Result<Object *> look_up(u32 handle, Kind kind) KERN_REQUIRES(lock_);
	kern::Result<Object *> find_held(u32 handle, Kind kind);
	kern::Result<Object *> claim_held(u32 handle, Kind kind);
	/*
	 * Releases the resources of all objects for which this is possible, in the reverse order of
	 * their creation. Returns whether any was released, and whether all have been.
	 */
	struct Pass {
		bool progress = false;
		bool complete = true;
	};
	Pass end_each() KERN_REQUIRES(lock_);

	Share &share_;
	kern_cgroup_device *const cgroup_;
	kern::Mutex lock_{KERN_LOCK_CLASS("uverbs.objects")};
	kern::XArray<Object> by_handle_;
	kern::List<Object, &Object::node_> objects_ KERN_GUARDED_BY(lock_);
};

/*
 * An object that is being created. If finish() is not called, the destructor destroys the object.
 */
template<class T>
class Allocation
{
public:
	/* Context: process. Errors: those of ObjectTable::add(). */
	template<class... Args>
	static kern::Result<Allocation> create(ObjectTable &table, Args &&...args)
	{
		auto object = KERN_TRY(
			kern::make<T>(kern::Gfp::kernel_account, std::forward<Args>(args)...));
		KERN_TRY(table.add(*object));
		return Allocation(table, object.release());
	}
	Allocation(Allocation &&other) noexcept
	    : table_(other.table_), object_(std::exchange(other.object_, nullptr))
	{
	}
	Allocation &operator=(Allocation &&) = delete;
	~Allocation()
	{
		if (!object_)
			return;
		/*
		 * A program may have guessed the key of the region and bound a window to it. The
		 * region is then destroyed when the file is closed.
		 */
		if (object_->end(Reason::gone))
			table_.remove(*object_);
	}

	T *operator->() const { return object_; }
	T &operator*() const { return *object_; }
	/* Makes the object visible to the program. */
	void finish() { table_.leave(*std::exchange(object_, nullptr)); }

private:
	Allocation(ObjectTable &table, T *object) : table_(table), object_(object) {}

	ObjectTable &table_;
	T *object_;
};

} // namespace uverbs
