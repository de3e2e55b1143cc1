/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The interface between C++ and the kernel. Both sides include every header in kern/abi: a C file
 * of core/kern includes it together with the kernel's headers and implements it; C++ includes
 * nothing else. A kernel type that C++ has to hold in memory is opaque storage, sized by
 * generated/kern/layout.h for the kernel that is built against.
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

/* struct kern_NAME: storage for the kernel's type; no member of it means anything to C++. */
#define KERN_OPAQUE(name)                                                                          \
	struct kern_##name {                                                                       \
		unsigned char storage[KERN_SIZEOF_##name]                                          \
			__attribute__((aligned(KERN_ALIGNOF_##name)));                             \
	}

#ifndef KERN_GENERATING_LAYOUT
KERN_OPAQUE(lock_class_key);
#endif

/* Kernel objects that C++ knows by pointer only. */
struct device;
struct page;
