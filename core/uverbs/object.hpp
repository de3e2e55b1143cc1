// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A program's objects by their handles.
 *
 * An object is held by the commands that use it and by the objects that were created in it. It can
 * be destroyed when nothing holds it. One command at a time creates or destroys an object;
 * meanwhile other commands that refer to it get EBUSY. A file lists its objects in the order of their
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
	/*
	 * The program destroys the object: this is refused if another of its objects depends on it.
	 */
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
	 * Destroys the device's resource, if it exists; after an error, it still exists. Afterwards
	 * the device does not call the object. Context: process, in the task that creates or
	 * destroys the object.
	 */
	virtual kern::Result<> end(Reason reason) = 0;
	/* Returns true if it has released its resource of the device, or never had one. */
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
	/* The number of users, or `alone` while the object is created or destroyed. */
	kern::Atomic<int> users_{alone};
	kern::ListNode node_;
	kern::Charge charge_;
	/* Held while the object has a resource of the device. */
	kern::CgroupCharge cgroup_charge_;
};

/* An object that is not destroyed as long as this exists. */
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
	/* Takes over the caller's hold. */
	explicit Hold(T *object) : object_(object) {}

	T *object_ = nullptr;
};

/*
 * Lock order: its lock is held while objects are destroyed, and is outside of all locks that this
 * takes.
 */
class ObjectTable
{
public:
	/*
	 * share: the share of the user who owns the objects; must outlive them. cgroup: the control
	 * group that objects are charged to, or nullptr; must be valid until end_all().
	 */
	explicit ObjectTable(Share &share, kern_cgroup_device *cgroup = nullptr)
	    : share_(share), cgroup_(cgroup)
	{
	}
	~ObjectTable() { kern_assert(objects_.empty()); }

	/*
	 * Finds an object by kind and handle. Errors: ENOENT; EINVAL for an object of another kind;
	 * EBUSY while it is being created or destroyed.
	 */
	template<class T>
	kern::Result<Hold<T>> find(u32 handle)
	{
		return Hold<T>(static_cast<T *>(KERN_TRY(find_held(handle, T::kind))));
	}
	/*
	 * Does the same, and gives the caller exclusive use until end() or leave(). Errors: also
	 * EBUSY if it is held.
	 */
	template<class T>
	kern::Result<T *> claim(u32 handle)
	{
		return static_cast<T *>(KERN_TRY(claim_held(handle, T::kind)));
	}

	/*
	 * Assigns a handle to a new object; the caller has exclusive use until leave() or end().
	 * Errors: EDQUOT beyond its user's share; EAGAIN beyond the limit of a control group;
	 * ENOMEM.
	 */
	kern::Result<> add(Object &object);
	/* Ends the exclusive use: other commands can find the object. */
	void leave(Object &object) { object.users_.store_release(0); }
	/*
	 * The object, which only the caller uses, now holds another one: moves it behind that in
	 * the order. It must have no users.
	 */
	void stand_last(Object &object);
	/*
	 * Frees an object that only the caller uses, and that has no resource of the device any
	 * more.
	 */
	void remove(Object &object);

	/*
	 * Destroys the device's resources of all objects; the handles stay. No command runs, or
	 * will run that needs the device. Returns false if the device refused to destroy something:
	 * these objects are lost, because the device may still call them, and so are all that they
	 * depend on.
	 */
	bool end_all();
	/* Frees all objects, which have been ended. No command runs. */
	void clear();

private:
	kern::Result<Object *> look_up(u32 handle, Kind kind) KERN_REQUIRES(lock_);
	kern::Result<Object *> find_held(u32 handle, Kind kind);
	kern::Result<Object *> claim_held(u32 handle, Kind kind);
	/*
	 * Destroys all objects that can be destroyed, in the reverse order of their creation.
	 * Returns whether any was, and whether all have been.
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

/* An object that is being created. Unless it is finished, it is destroyed with this. */
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
		 * A program may have guessed its key and bound a window to it; then it is destroyed
		 * with the file.
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
