// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Checks lock order like lockdep, in any interleaving. The order of lock classes is recorded during
 * a run, and a class that is taken in interrupts must not be taken with those interrupts enabled. A
 * work item counts as a lock: its function holds it, and code that waits for the work item acquires
 * it.
 */
#pragma once
#include <string>

namespace sim
{

/* Reports a caller that may not sleep. what: it does that may. */
void check_may_sleep(const std::string &what);

namespace lock_order
{

void name(const void *lock_class, const char *name);
/*
 * The running fiber is about to take a lock of a class, and waits for it if necessary. spins: by
 * spinning.
 */
void taking(const void *lock, const void *lock_class, bool spins);
/* The running fiber has taken or released a lock. */
void took(const void *lock, const void *lock_class);
void released(const void *lock);
/* True if the running fiber holds it. */
bool holds(const void *lock);
/* Returns the name of a held lock in memory that is being freed, or an empty text. */
std::string held_within(const void *memory, std::size_t size);
void reset();

} // namespace lock_order
} // namespace sim
