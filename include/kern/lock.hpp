// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines locks. The contexts that a lock excludes are part of its type, so that all code takes it
// in the same way:
//
//	SpinLock	other tasks and CPUs; never taken from an interrupt
//	BhSpinLock	also soft interrupts (NAPI, timers, tasklets)
//	IrqSpinLock	also hard interrupts
//	Mutex		sleeps
//	NoIoMutex	the same, also taken by work items: its holder allocates without I/O
//	RwLock		sleeps; many readers or one writer
//
// Every lock names its lockdep class where it is declared:
//
//	kern::SpinLock lock_{KERN_LOCK_CLASS("mlx4.cmd")};
//
// Preferably, the data lives inside its lock:
//
//	kern::Locked<State, kern::IrqSpinLock> state_{KERN_LOCK_CLASS("registry.state"), initial...};
//	state_.with([&](State &state) { … });
#pragma once
#include <type_traits>
#include <utility>
#include <kern/abi/lock.h>
#include <kern/abi/memory.h>
#include <kern/annotations.hpp>

namespace kern
{

/*
 * A lockdep class with its name. All locks that are declared at one place share it. It must have
 * static storage.
 */
struct LockClass {
	const char *name;
	kern_lock_class_key key;
};

/* The class of the lock that is declared at this place. */
#define KERN_LOCK_CLASS(class_name)                                                                \
	([]() -> ::kern::LockClass & {                                                             \
		static constinit ::kern::LockClass kern_lock_class{class_name, {}};                \
		return kern_lock_class;                                                            \
	}())

class KERN_CAPABILITY("spinlock") SpinLock
{
public:
	struct State {
	};

	explicit SpinLock(LockClass &lock_class)
	{
		kern_spin_init(&native_, lock_class.name, &lock_class.key);
	}
	SpinLock(const SpinLock &) = delete;
	SpinLock &operator=(const SpinLock &) = delete;

	State lock() KERN_ACQUIRE()
	{
		kern_spin_lock(&native_);
		return {};
	}
	void unlock(State) KERN_RELEASE() { kern_spin_unlock(&native_); }
	void assert_held() KERN_ASSERT_CAPABILITY(this) { kern_spin_assert_held(&native_); }

private:
	kern_spinlock native_;
};

class KERN_CAPABILITY("spinlock") BhSpinLock
{
public:
	struct State {
	};

	explicit BhSpinLock(LockClass &lock_class)
	{
		kern_spin_init(&native_, lock_class.name, &lock_class.key);
	}
	BhSpinLock(const BhSpinLock &) = delete;
	BhSpinLock &operator=(const BhSpinLock &) = delete;

	State lock() KERN_ACQUIRE()
	{
		kern_spin_lock_bh(&native_);
		return {};
	}
	void unlock(State) KERN_RELEASE() { kern_spin_unlock_bh(&native_); }
	void assert_held() KERN_ASSERT_CAPABILITY(this) { kern_spin_assert_held(&native_); }

private:
	kern_spinlock native_;
};

class KERN_CAPABILITY("spinlock") IrqSpinLock
{
public:
	/* The saved interrupt state. */
	struct State {
		unsigned long flags;
	};

	explicit IrqSpinLock(LockClass &lock_class)
	{
		kern_spin_init(&native_, lock_class.name, &lock_class.key);
	}
	IrqSpinLock(const IrqSpinLock &) = delete;
	IrqSpinLock &operator=(const IrqSpinLock &) = delete;

	State lock() KERN_ACQUIRE() { return {kern_spin_lock_irqsave(&native_)}; }
	void unlock(State state) KERN_RELEASE()
	{
		kern_spin_unlock_irqrestore(&native_, state.flags);
	}
	void assert_held() KERN_ASSERT_CAPABILITY(this) { kern_spin_assert_held(&native_); }

private:
	kern_spinlock native_;
};

class KERN_CAPABILITY("mutex") Mutex
{
public:
	struct State {
	};

	explicit Mutex(LockClass &lock_class)
	{
		kern_mutex_init(&native_, lock_class.name, &lock_class.key);
	}
	~Mutex() { kern_mutex_destroy(&native_); }
	Mutex(const Mutex &) = delete;
	Mutex &operator=(const Mutex &) = delete;

	State lock() KERN_ACQUIRE()
	{
		kern_mutex_lock(&native_);
		return {};
	}
	bool try_lock() KERN_TRY_ACQUIRE(true) { return kern_mutex_trylock(&native_); }
	void unlock(State = {}) KERN_RELEASE() { kern_mutex_unlock(&native_); }
	void assert_held() KERN_ASSERT_CAPABILITY(this) { kern_mutex_assert_held(&native_); }

private:
	kern_mutex native_;
};

/*
 * A mutex that work items take. IPoIB packets may wait for these work items
 * (core/kern/linux/work.c), so a task that holds the mutex must not wait for such a packet when it
 * reclaims memory.
 */
class KERN_CAPABILITY("mutex") NoIoMutex
{
public:
	/* The saved allocation context of the task. */
	struct State {
		unsigned int former;
	};

	explicit NoIoMutex(LockClass &lock_class) : mutex_(lock_class) {}
	NoIoMutex(const NoIoMutex &) = delete;
	NoIoMutex &operator=(const NoIoMutex &) = delete;

	State lock() KERN_ACQUIRE() KERN_NO_THREAD_SAFETY_ANALYSIS
	{
		const State state{kern_noio_enter()};
		(void)mutex_.lock();
		return state;
	}
	/*
	 * Takes the lock without changing the allocation context of the task. The caller must call
	 * release().
	 */
	bool try_lock() KERN_TRY_ACQUIRE(true) KERN_NO_THREAD_SAFETY_ANALYSIS
	{
		return mutex_.try_lock();
	}
	void release() KERN_RELEASE() KERN_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
	void unlock(State state) KERN_RELEASE() KERN_NO_THREAD_SAFETY_ANALYSIS
	{
		mutex_.unlock();
		kern_noio_leave(state.former);
	}
	void assert_held() KERN_ASSERT_CAPABILITY(this) { mutex_.assert_held(); }

private:
	Mutex mutex_;
};

class KERN_CAPABILITY("rwlock") RwLock
{
public:
	struct State {
	};

	explicit RwLock(LockClass &lock_class)
	{
		kern_rwsem_init(&native_, lock_class.name, &lock_class.key);
	}
	RwLock(const RwLock &) = delete;
	RwLock &operator=(const RwLock &) = delete;

	State lock() KERN_ACQUIRE()
	{
		kern_rwsem_lock(&native_);
		return {};
	}
	void unlock(State) KERN_RELEASE() { kern_rwsem_unlock(&native_); }
	void lock_shared() KERN_ACQUIRE_SHARED() { kern_rwsem_lock_shared(&native_); }
	void unlock_shared() KERN_RELEASE_SHARED() { kern_rwsem_unlock_shared(&native_); }
	void assert_held() KERN_ASSERT_CAPABILITY(this) { kern_rwsem_assert_held(&native_); }

private:
	kern_rw_semaphore native_;
};

/*
 * Declares an exclusion to lockdep that is not a lock, such as the ownership of an object for which
 * other tasks wait. The owner must acquire and release it in the same task.
 */
class Ownership
{
public:
	explicit Ownership(LockClass &lock_class)
	{
		kern_lockdep_init(&native_, lock_class.name, &lock_class.key);
	}
	Ownership(const Ownership &) = delete;
	Ownership &operator=(const Ownership &) = delete;

	/* Called before a task waits to become the owner. */
	void acquire() { kern_lockdep_acquire(&native_, true); }
	/* Called when a task has become the owner without waiting. */
	void acquired() { kern_lockdep_acquire(&native_, false); }
	void release() { kern_lockdep_release(&native_); }
	/* Called before a task waits until the owner has finished. */
	void wait()
	{
		acquire();
		release();
	}

private:
	kern_lockdep_map native_;
};

/* Holds a lock until the end of a block. */
template<class Lock>
class [[nodiscard]] KERN_SCOPED_CAPABILITY Guard
{
public:
	explicit Guard(Lock &lock) KERN_ACQUIRE(lock) : lock_(lock), state_(lock.lock()) {}
	~Guard() KERN_RELEASE() { lock_.unlock(state_); }
	Guard(const Guard &) = delete;
	Guard &operator=(const Guard &) = delete;

private:
	Lock &lock_;
	[[no_unique_address]] typename Lock::State state_;
};

/* Holds the read side of an RwLock until the end of a block. */
class [[nodiscard]] KERN_SCOPED_CAPABILITY SharedGuard
{
public:
	explicit SharedGuard(RwLock &lock) KERN_ACQUIRE_SHARED(lock) : lock_(lock)
	{
		lock.lock_shared();
	}
	~SharedGuard() KERN_RELEASE() { lock_.unlock_shared(); }
	SharedGuard(const SharedGuard &) = delete;
	SharedGuard &operator=(const SharedGuard &) = delete;

private:
	RwLock &lock_;
};

/* Data that can be accessed only with its lock held. */
template<class T, class Lock = SpinLock>
class Locked
{
public:
	template<class... Args>
	explicit Locked(LockClass &lock_class, Args &&...args)
	    : lock_(lock_class), value_{std::forward<Args>(args)...}
	{
	}

	/*
	 * Calls `body` with the data while the lock is held, and returns its result. No reference
	 * to the data may be kept after the call.
	 */
	template<class Body>
	decltype(auto) with(Body &&body)
	{
		static_assert(!std::is_reference_v<std::invoke_result_t<Body, T &>>,
			      "a reference would escape the lock");
		Guard guard(lock_);
		return std::forward<Body>(body)(value_);
	}

private:
	Lock lock_;
	T value_ KERN_GUARDED_BY(lock_);
};

} // namespace kern
