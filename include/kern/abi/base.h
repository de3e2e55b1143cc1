/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Contains the definitions that all headers of the interface between C++ and the kernel share. Both
 * sides include the headers in kern/abi: a C file of core/kern includes them together with the
 * kernel's headers and implements them, and C++ includes no other kernel headers. A kernel type
 * that C++ must hold in memory is opaque storage, whose size generated/kern/layout.h defines for
 * the kernel that is built against.
 */
#pragma once
#include <kern/types.h>

#ifndef KERN_GENERATING_LAYOUT
#include <kern/layout.h>
#endif

#ifdef __cplusplus
#define KERN_C_BEGIN extern "C" {
#define KERN_C_END }
#else
#define KERN_C_BEGIN
#define KERN_C_END
#endif

/* Defines struct kern_NAME: storage for the kernel's type. C++ does not interpret its contents. */
#define KERN_OPAQUE(name)                                                                          \
	struct kern_##name {                                                                       \
		unsigned char storage[KERN_SIZEOF_##name]                                          \
			__attribute__((aligned(KERN_ALIGNOF_##name)));                             \
	}

#ifndef KERN_GENERATING_LAYOUT
KERN_OPAQUE(lock_class_key);
#endif

/* Kernel objects that C++ only accesses by pointers. */
struct device;
struct page;
