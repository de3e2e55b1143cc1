// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Checks lock order like lockdep, for any interleaving. The order of lock classes is recorded
 * during a run. A class that is taken in interrupts must not be taken with these interrupts
 * enabled. A work item counts as a lock: its function holds the lock, and code that waits for the
 * work item acquires it.
 */
#pragma once
#include <string>

namespace sim
{

/* Reports a caller that must not sleep. @what: describes the operation that may sleep. */
void check_may_sleep(const std::string &what);

namespace lock_order
{

void name(const void *lock_class, const char *name);
/* Called before the running fiber takes a lock of a class. @spins: it waits by spinning. */
void taking(const void *lock, const void *lock_class, bool spins);
/* Called after the running fiber has taken or released a lock. */
void took(const void *lock, const void *lock_class);
void released(const void *lock);
/* Returns true if the running fiber holds the lock. */
bool holds(const void *lock);
/* Returns the name of a held lock in memory that is being freed, or an empty string. */
std::string held_within(const void *memory, std::size_t size);
void reset();

} // namespace lock_order
} // namespace sim
