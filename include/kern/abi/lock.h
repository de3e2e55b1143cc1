/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares spin locks, mutexes, reader-writer semaphores, and lockdep. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(spinlock);
KERN_OPAQUE(mutex);
KERN_OPAQUE(rw_semaphore);
KERN_OPAQUE(lockdep_map);

void kern_spin_init(struct kern_spinlock *lock, const char *name, struct kern_lock_class_key *key);
void kern_spin_lock(struct kern_spinlock *lock);
void kern_spin_unlock(struct kern_spinlock *lock);
bool kern_spin_trylock(struct kern_spinlock *lock);
void kern_spin_lock_bh(struct kern_spinlock *lock);
void kern_spin_unlock_bh(struct kern_spinlock *lock);
unsigned long kern_spin_lock_irqsave(struct kern_spinlock *lock);
void kern_spin_unlock_irqrestore(struct kern_spinlock *lock, unsigned long flags);
void kern_spin_assert_held(struct kern_spinlock *lock);

void kern_mutex_init(struct kern_mutex *lock, const char *name, struct kern_lock_class_key *key);
void kern_mutex_destroy(struct kern_mutex *lock);
void kern_mutex_lock(struct kern_mutex *lock);
int kern_mutex_lock_interruptible(struct kern_mutex *lock);
bool kern_mutex_trylock(struct kern_mutex *lock);
void kern_mutex_unlock(struct kern_mutex *lock);
void kern_mutex_assert_held(struct kern_mutex *lock);

void kern_rwsem_init(struct kern_rw_semaphore *lock, const char *name,
		     struct kern_lock_class_key *key);
void kern_rwsem_lock(struct kern_rw_semaphore *lock);
void kern_rwsem_unlock(struct kern_rw_semaphore *lock);
void kern_rwsem_lock_shared(struct kern_rw_semaphore *lock);
void kern_rwsem_unlock_shared(struct kern_rw_semaphore *lock);
void kern_rwsem_assert_held(struct kern_rw_semaphore *lock);

/*
 * Declare an exclusion to lockdep that is not a lock. They have no effect on a kernel without
 * lockdep.
 */
void kern_lockdep_init(struct kern_lockdep_map *map, const char *name,
		       struct kern_lock_class_key *key);
/* waits: the task waits, as for a lock; false for a trylock. */
void kern_lockdep_acquire(struct kern_lockdep_map *map, bool waits);
void kern_lockdep_release(struct kern_lockdep_map *map);
/*
 * Returns the number of locks that the running task holds according to lockdep, or -1 without
 * lockdep.
 */
int kern_lockdep_depth(void);

KERN_C_END
