// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines use counts that begin at zero, in structures shared with C: atomic_t, with the checks of
// refcount_t in debug builds.
#pragma once
#include <kern/assert.hpp>

namespace kern
{

/*
 * A misused count keeps this value, which is far from zero, so that later increments and decrements
 * do not reach zero.
 */
inline constexpr int stuck_count = -(1 << 30);

/* Adds a user. In builds with checks, returns a negative value if the count has been misused. */
inline int count_up(int &count)
{
	const int before = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);

	if constexpr (debug) {
		if (before < 0) [[unlikely]] {
			__atomic_store_n(&count, stuck_count, __ATOMIC_RELAXED);
			return -1;
		}
	}
	return 0;
}

/*
 * Removes a user. Code that reads zero afterwards sees all effects of that user. In builds with
 * checks, returns a negative value if there was no user.
 */
inline int count_down(int &count)
{
	const int before = __atomic_fetch_sub(&count, 1, __ATOMIC_RELEASE);

	if constexpr (debug) {
		if (before <= 0) [[unlikely]] {
			__atomic_store_n(&count, stuck_count, __ATOMIC_RELAXED);
			return -1;
		}
	}
	return 0;
}

inline int count_of(const int &count)
{
	return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
}

} // namespace kern
