// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines checks that are active in all builds (KERN_WARN_ON) or only in debug builds
// (kern_assert), and checks whether the context may sleep.
#pragma once
#include <kern/abi/debug.h>

namespace kern
{
#ifdef CONFIG_WEFT_DEBUG
inline constexpr bool debug = true;
#else
inline constexpr bool debug = false;
#endif
} // namespace kern

/* Checks an internal assumption. Costs nothing in builds without checks. */
#define kern_assert(condition)                                                                     \
	do {                                                                                       \
		if constexpr (::kern::debug) {                                                     \
			if (!(condition)) [[unlikely]]                                             \
				kern_warn_at(__FILE__, __LINE__, "assertion failed: " #condition); \
		}                                                                                  \
	} while (0)

/*
 * Returns whether the condition is true, which is a defect and is reported with a backtrace in all
 * builds.
 */
#define KERN_WARN_ON(condition)                                                                    \
	({                                                                                         \
		const bool kern_warn_condition = !!(condition);                                    \
		if (kern_warn_condition) [[unlikely]]                                              \
			kern_warn_at(__FILE__, __LINE__, #condition);                              \
		__builtin_expect(kern_warn_condition, false);                                      \
	})

/* The first statement of a function that may sleep. */
#define KERN_MIGHT_SLEEP()                                                                         \
	do {                                                                                       \
		if constexpr (::kern::debug)                                                       \
			kern_might_sleep(__FILE__, __LINE__);                                      \
	} while (0)

namespace kern
{

/*
 * While an object exists, any call that sleeps is reported, on kernels with that check. Used around
 * calls that must not sleep.
 */
class NoSleepSection
{
public:
	NoSleepSection()
	{
		if constexpr (debug)
			kern_non_block_start();
	}
	~NoSleepSection()
	{
		if constexpr (debug)
			kern_non_block_end();
	}
	NoSleepSection(const NoSleepSection &) = delete;
	NoSleepSection &operator=(const NoSleepSection &) = delete;
};

} // namespace kern
