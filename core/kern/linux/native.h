/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Gives C files access to kernel objects that C++ holds as opaque storage (KERN_OPAQUE). */
#pragma once
#include <linux/build_bug.h>

/*
 * Defines native_NAME(), which returns the kernel object inside the opaque storage that C++ holds.
 * The assertions check that size and alignment are equal.
 */
#define KERN_NATIVE(name, type)                                                                    \
	static_assert(sizeof(struct kern_##name) >= sizeof(type));                                 \
	static_assert(sizeof(struct kern_##name) <= (sizeof(type) ? sizeof(type) : 1));            \
	static_assert(__alignof__(struct kern_##name) == __alignof__(type));                       \
	static inline type *native_##name(struct kern_##name *opaque)                              \
	{                                                                                          \
		return (type *)opaque->storage;                                                    \
	}
