// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's spin locks, mutexes, reader-writer semaphores and lockdep maps for C++ code
// (include/kern/abi/lock.h).
#include <linux/export.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <kern/abi/lock.h>
#include "native.h"

KERN_NATIVE(spinlock, spinlock_t)
KERN_NATIVE(mutex, struct mutex)
KERN_NATIVE(rw_semaphore, struct rw_semaphore)
KERN_NATIVE(lock_class_key, struct lock_class_key)
KERN_NATIVE(lockdep_map, struct lockdep_map)

void kern_spin_init(struct kern_spinlock *lock, const char *name, struct kern_lock_class_key *key)
{
#ifdef CONFIG_DEBUG_SPINLOCK
	__raw_spin_lock_init(spinlock_check(native_spinlock(lock)), name,
			     native_lock_class_key(key), LD_WAIT_CONFIG);
#else
	spin_lock_init(native_spinlock(lock));
#endif
}
EXPORT_SYMBOL_GPL(kern_spin_init);

void kern_spin_lock(struct kern_spinlock *lock) __acquires(lock)
{
	spin_lock(native_spinlock(lock));
}
EXPORT_SYMBOL_GPL(kern_spin_lock);

void kern_spin_unlock(struct kern_spinlock *lock) __releases(lock)
{
	spin_unlock(native_spinlock(lock));
}
EXPORT_SYMBOL_GPL(kern_spin_unlock);

bool kern_spin_trylock(struct kern_spinlock *lock)
{
	return spin_trylock(native_spinlock(lock));
}
EXPORT_SYMBOL_GPL(kern_spin_trylock);

void kern_spin_lock_bh(struct kern_spinlock *lock) __acquires(lock)
{
	spin_lock_bh(native_spinlock(lock));
}
EXPORT_SYMBOL_GPL(kern_spin_lock_bh);

void kern_spin_unlock_bh(struct kern_spinlock *lock) __releases(lock)
{
	spin_unlock_bh(native_spinlock(lock));
}
EXPORT_SYMBOL_GPL(kern_spin_unlock_bh);

unsigned long kern_spin_lock_irqsave(struct kern_spinlock *lock) __acquires(lock)
{
	unsigned long flags;

	spin_lock_irqsave(native_spinlock(lock), flags);
	return flags;
}
EXPORT_SYMBOL_GPL(kern_spin_lock_irqsave);

void kern_spin_unlock_irqrestore(struct kern_spinlock *lock, unsigned long flags) __releases(lock)
{
	spin_unlock_irqrestore(native_spinlock(lock), flags);
}
EXPORT_SYMBOL_GPL(kern_spin_unlock_irqrestore);

void kern_spin_assert_held(struct kern_spinlock *lock)
{
	assert_spin_locked(native_spinlock(lock));
	lockdep_assert_held(native_spinlock(lock));
}
EXPORT_SYMBOL_GPL(kern_spin_assert_held);

void kern_mutex_init(struct kern_mutex *lock, const char *name, struct kern_lock_class_key *key)
{
	__mutex_init(native_mutex(lock), name, native_lock_class_key(key));
}
EXPORT_SYMBOL_GPL(kern_mutex_init);

void kern_mutex_destroy(struct kern_mutex *lock)
{
	mutex_destroy(native_mutex(lock));
}
EXPORT_SYMBOL_GPL(kern_mutex_destroy);

void kern_mutex_lock(struct kern_mutex *lock)
{
	mutex_lock(native_mutex(lock));
}
EXPORT_SYMBOL_GPL(kern_mutex_lock);

int kern_mutex_lock_interruptible(struct kern_mutex *lock)
{
	return mutex_lock_interruptible(native_mutex(lock));
}
EXPORT_SYMBOL_GPL(kern_mutex_lock_interruptible);

bool kern_mutex_trylock(struct kern_mutex *lock)
{
	return mutex_trylock(native_mutex(lock));
}
EXPORT_SYMBOL_GPL(kern_mutex_trylock);

void kern_mutex_unlock(struct kern_mutex *lock)
{
	mutex_unlock(native_mutex(lock));
}
EXPORT_SYMBOL_GPL(kern_mutex_unlock);

void kern_mutex_assert_held(struct kern_mutex *lock)
{
	WARN_ON_ONCE(!mutex_is_locked(native_mutex(lock)));
	lockdep_assert_held(native_mutex(lock));
}
EXPORT_SYMBOL_GPL(kern_mutex_assert_held);

void kern_rwsem_init(struct kern_rw_semaphore *lock, const char *name,
		     struct kern_lock_class_key *key)
{
	__init_rwsem(native_rw_semaphore(lock), name, native_lock_class_key(key));
}
EXPORT_SYMBOL_GPL(kern_rwsem_init);

void kern_rwsem_lock(struct kern_rw_semaphore *lock)
{
	down_write(native_rw_semaphore(lock));
}
EXPORT_SYMBOL_GPL(kern_rwsem_lock);

void kern_rwsem_unlock(struct kern_rw_semaphore *lock)
{
	up_write(native_rw_semaphore(lock));
}
EXPORT_SYMBOL_GPL(kern_rwsem_unlock);

void kern_rwsem_lock_shared(struct kern_rw_semaphore *lock)
{
	down_read(native_rw_semaphore(lock));
}
EXPORT_SYMBOL_GPL(kern_rwsem_lock_shared);

void kern_rwsem_unlock_shared(struct kern_rw_semaphore *lock)
{
	up_read(native_rw_semaphore(lock));
}
EXPORT_SYMBOL_GPL(kern_rwsem_unlock_shared);

void kern_rwsem_assert_held(struct kern_rw_semaphore *lock)
{
	WARN_ON_ONCE(!rwsem_is_locked(native_rw_semaphore(lock)));
	lockdep_assert_held(native_rw_semaphore(lock));
}
EXPORT_SYMBOL_GPL(kern_rwsem_assert_held);

void kern_lockdep_init(struct kern_lockdep_map *map, const char *name,
		       struct kern_lock_class_key *key)
{
	lockdep_init_map(native_lockdep_map(map), name, native_lock_class_key(key), 0);
}
EXPORT_SYMBOL_GPL(kern_lockdep_init);

void kern_lockdep_acquire(struct kern_lockdep_map *map, bool waits)
{
	lock_acquire(native_lockdep_map(map), 0, !waits, 0, 1, NULL, _RET_IP_);
}
EXPORT_SYMBOL_GPL(kern_lockdep_acquire);

void kern_lockdep_release(struct kern_lockdep_map *map)
{
	lock_release(native_lockdep_map(map), _RET_IP_);
}
EXPORT_SYMBOL_GPL(kern_lockdep_release);

int kern_lockdep_depth(void)
{
#ifdef CONFIG_LOCKDEP
	if (debug_locks)
		return current->lockdep_depth;
#endif
	return -1;
}
EXPORT_SYMBOL_GPL(kern_lockdep_depth);
