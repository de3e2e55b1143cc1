/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * The calling process's memory. 0 or -EFAULT; after that the destination is undefined. May sleep.
 */
int kern_copy_from_user(void *to, const void __user *from, size_t size);
int kern_copy_to_user(void __user *to, const void *from, size_t size);
/* 1 if all of it is 0, 0 if not, or -EFAULT. */
int kern_user_is_zero(const void __user *from, size_t size);

/* The user whose limits the calling process counts in; as kern_file_user(). */
u32 kern_current_user(void);

KERN_C_END
