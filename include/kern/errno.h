/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the error numbers, for C and C++. C uses the kernel's own; core/kern/linux/layout.c
 * asserts that those of C++ are equal.
 */
#pragma once

#ifdef __cplusplus
#define KERN_ERRNO(name, value) constexpr int name = value
#include <kern/abi/errno.h>
#undef KERN_ERRNO
#else
#include <linux/errno.h>
#endif
