// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the locks of include/kern/abi/lock.h for fibers. A fiber that waits for a lock is
// suspended until the lock is free, even if it is a spinlock.
#include <cerrno>
#include <kern/abi/lock.h>
#include "failure.hpp"
#include "lock_order.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

struct Lock {
	const void *lock_class;
	Fiber *owner;
	// Used only for semaphores.
	unsigned int readers;
	unsigned int waiting_writers;
};
static_assert(sizeof(Lock) <= sizeof(kern_spinlock) && sizeof(Lock) <= sizeof(kern_mutex) &&
	      sizeof(Lock) <= sizeof(kern_rw_semaphore));

template<class T>
Lock &of(T *native)
{
	return *reinterpret_cast<Lock *>(native);
}

const void *&class_of(kern_lockdep_map *map)
{
	static_assert(sizeof(const void *) <= sizeof(*map));
	return *reinterpret_cast<const void **>(map);
}

void init(Lock &lock, const char *name, kern_lock_class_key *key)
{
	lock = {.lock_class = key, .owner = nullptr, .readers = 0, .waiting_writers = 0};
	lock_order::name(key, name);
}

void acquire(Lock &lock, bool spins)
{
	lock_order::taking(&lock, lock.lock_class, spins);
	while (lock.owner)
		scheduler().block(&lock);
	lock.owner = &scheduler().current();
	lock_order::took(&lock, lock.lock_class);
}

bool try_acquire(Lock &lock)
{
	if (lock.owner)
		return false;
	lock.owner = &scheduler().current();
	lock_order::took(&lock, lock.lock_class);
	return true;
}

void release(Lock &lock)
{
	if (lock.owner != &scheduler().current())
		fail("a lock is released by a fiber that does not hold it",
		     lock_name(lock.lock_class) + ", " + describe(scheduler().current().place));
	lock_order::released(&lock);
	lock.owner = nullptr;
	scheduler().wake(&lock);
}

void assert_held(const Lock &lock)
{
	if (!lock_order::holds(&lock))
		fail("a required lock is not held",
		     lock_name(lock.lock_class) + ", " + describe(scheduler().current().place));
}

} // namespace

namespace sim
{

/* Enters or leaves a section without preemption. Grace periods wait for such sections. */
void enter_section(unsigned int Fiber::*counter)
{
	Fiber &self = scheduler().current();

	if (!self.delays_grace_period())
		self.section++;
	self.*counter += 1;
}

void leave_section(unsigned int Fiber::*counter)
{
	Fiber &self = scheduler().current();

	if (self.*counter == 0)
		fail("a section is left that was not entered", describe(self.place));
	self.*counter -= 1;
	if (!self.delays_grace_period())
		scheduler().wake(&grace_periods);
}

} // namespace sim

extern "C" {

void kern_spin_init(struct kern_spinlock *lock, const char *name, struct kern_lock_class_key *key)
{
	init(of(lock), name, key);
}

void kern_spin_lock(struct kern_spinlock *lock)
{
	SIM_STEP(lock);
	acquire(of(lock), true);
	enter_section(&Fiber::preempt_off);
}

void kern_spin_unlock(struct kern_spinlock *lock)
{
	release(of(lock));
	leave_section(&Fiber::preempt_off);
	SIM_STEP(lock);
}

bool kern_spin_trylock(struct kern_spinlock *lock)
{
	SIM_STEP(lock);
	if (!try_acquire(of(lock)))
		return false;
	enter_section(&Fiber::preempt_off);
	return true;
}

void kern_spin_lock_bh(struct kern_spinlock *lock)
{
	SIM_STEP(lock);
	enter_section(&Fiber::bh_off);
	acquire(of(lock), true);
	enter_section(&Fiber::preempt_off);
}

void kern_spin_unlock_bh(struct kern_spinlock *lock)
{
	release(of(lock));
	leave_section(&Fiber::preempt_off);
	leave_section(&Fiber::bh_off);
	SIM_STEP(lock);
}

unsigned long kern_spin_lock_irqsave(struct kern_spinlock *lock)
{
	SIM_STEP(lock);
	const unsigned long before = scheduler().current().irqs_off;
	enter_section(&Fiber::irqs_off);
	acquire(of(lock), true);
	enter_section(&Fiber::preempt_off);
	return before;
}

void kern_spin_unlock_irqrestore(struct kern_spinlock *lock, unsigned long flags)
{
	release(of(lock));
	leave_section(&Fiber::preempt_off);
	leave_section(&Fiber::irqs_off);
	if (scheduler().current().irqs_off != flags)
		fail("interrupts are restored to another state than the saved one",
		     describe(scheduler().current().place));
	SIM_STEP(lock);
}

void kern_spin_assert_held(struct kern_spinlock *lock)
{
	assert_held(of(lock));
}

void kern_mutex_init(struct kern_mutex *lock, const char *name, struct kern_lock_class_key *key)
{
	init(of(lock), name, key);
}

void kern_mutex_destroy(struct kern_mutex *lock)
{
	if (of(lock).owner)
		fail("a mutex is destroyed while it is held", lock_name(of(lock).lock_class));
}

void kern_mutex_lock(struct kern_mutex *lock)
{
	SIM_STEP(lock);
	check_may_sleep("takes a mutex");
	acquire(of(lock), false);
}

int kern_mutex_lock_interruptible(struct kern_mutex *lock)
{
	kern_mutex_lock(lock);
	return 0;
}

bool kern_mutex_trylock(struct kern_mutex *lock)
{
	SIM_STEP(lock);
	return try_acquire(of(lock));
}

void kern_mutex_unlock(struct kern_mutex *lock)
{
	release(of(lock));
	SIM_STEP(lock);
}

void kern_mutex_assert_held(struct kern_mutex *lock)
{
	assert_held(of(lock));
}

void kern_rwsem_init(struct kern_rw_semaphore *lock, const char *name,
		     struct kern_lock_class_key *key)
{
	init(of(lock), name, key);
}

void kern_rwsem_lock(struct kern_rw_semaphore *native)
{
	Lock &lock = of(native);

	SIM_STEP(native);
	check_may_sleep("takes a semaphore");
	lock_order::taking(&lock, lock.lock_class, false);
	lock.waiting_writers++;
	while (lock.owner || lock.readers)
		scheduler().block(&lock);
	lock.waiting_writers--;
	lock.owner = &scheduler().current();
	lock_order::took(&lock, lock.lock_class);
}

void kern_rwsem_unlock(struct kern_rw_semaphore *lock)
{
	release(of(lock));
	SIM_STEP(lock);
}

void kern_rwsem_lock_shared(struct kern_rw_semaphore *native)
{
	Lock &lock = of(native);

	SIM_STEP(native);
	check_may_sleep("takes a semaphore");
	lock_order::taking(&lock, lock.lock_class, false);
	/* As in the kernel, a reader does not get the lock before a waiting writer. */
	while (lock.owner || lock.waiting_writers)
		scheduler().block(&lock);
	lock.readers++;
	lock_order::took(&lock, lock.lock_class);
}

void kern_rwsem_unlock_shared(struct kern_rw_semaphore *native)
{
	Lock &lock = of(native);

	lock_order::released(&lock);
	lock.readers--;
	scheduler().wake(&lock);
	SIM_STEP(native);
}

void kern_rwsem_assert_held(struct kern_rw_semaphore *lock)
{
	assert_held(of(lock));
}

void kern_lockdep_init(struct kern_lockdep_map *map, const char *name,
		       struct kern_lock_class_key *key)
{
	class_of(map) = key;
	lock_order::name(key, name);
}

void kern_lockdep_acquire(struct kern_lockdep_map *map, bool waits)
{
	if (waits)
		lock_order::taking(map, class_of(map), false);
	lock_order::took(map, class_of(map));
}

void kern_lockdep_release(struct kern_lockdep_map *map)
{
	lock_order::released(map);
}

int kern_lockdep_depth(void)
{
	return static_cast<int>(scheduler().current().held.size());
}
}
