// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements read-copy update, in which readers take no lock. A writer publishes a new object,
// waits until no reader can use the old one, then frees it.
//
//	kern::rcu::Pointer<Table> table_;
//	{ kern::rcu::ReadGuard reading; if (Table *table = table_.load()) … }	// does not sleep
//	Table *old = table_.exchange(fresh); kern::rcu::synchronize(); …	// the writer, under its own lock
//
// A module that uses Deferred calls rcu::barrier() before it is unloaded.
#pragma once
#include <type_traits>
#include <kern/abi/rcu.h>
#include <kern/assert.hpp>
#include <kern/method.hpp>

namespace kern::rcu
{

class [[nodiscard]] ReadGuard
{
public:
	ReadGuard() { kern_rcu_read_lock(); }
	~ReadGuard() { kern_rcu_read_unlock(); }
	ReadGuard(const ReadGuard &) = delete;
	ReadGuard &operator=(const ReadGuard &) = delete;
};

/* Returns when all current readers have finished. May sleep. */
inline void synchronize()
{
	kern_rcu_synchronize();
}
/* Returns when all deferred functions have been called. May sleep. */
inline void barrier()
{
	kern_rcu_barrier();
}

/* Reads an ordinary pointer that readers follow. Must be called with a ReadGuard. */
template<class T>
T *dereference(T *const &pointer)
{
	if constexpr (debug)
		KERN_WARN_ON(!kern_rcu_read_lock_held());
	return __atomic_load_n(&pointer, __ATOMIC_CONSUME);
}
/* Publishes an object by setting a pointer that dereference() reads. */
template<class T>
void assign(T *&pointer, std::type_identity_t<T> *object)
{
	__atomic_store_n(&pointer, object, __ATOMIC_RELEASE);
}

template<class T>
class Pointer
{
public:
	constexpr Pointer() = default;
	explicit Pointer(T *object) : object_(object) {}
	Pointer(const Pointer &) = delete;
	Pointer &operator=(const Pointer &) = delete;

	/* For readers with a ReadGuard. */
	T *load() const { return dereference(object_); }
	/*
	 * For a writer that excludes other writers, or for the destruction when there are no
	 * readers.
	 */
	T *load_exclusive() const { return __atomic_load_n(&object_, __ATOMIC_RELAXED); }
	void store(T *object) { assign(object_, object); }
	T *exchange(T *object) { return __atomic_exchange_n(&object_, object, __ATOMIC_ACQ_REL); }

private:
	T *object_ = nullptr;
};

/*
 * A function that is called in soft interrupt context after all current readers have finished. This
 * is a member of the object that shall be destroyed.
 */
class Deferred
{
public:
	Deferred() = default;
	Deferred(const Deferred &) = delete;
	Deferred &operator=(const Deferred &) = delete;

	/* Context: any. Must not be called again before the function has been called. */
	template<auto Member, class T>
	void call(Method<Member>, T *object)
	{
		item_.run = [](kern_rcu_item *item) {
			(static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
		kern_rcu_call(&item_);
	}

private:
	kern_rcu_item item_;
};

} // namespace kern::rcu
