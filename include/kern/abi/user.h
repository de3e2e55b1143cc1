/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Access to the memory of the calling process, and the user to whom its resources are charged. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * Accesses the memory of the calling process. Returns 0 or -EFAULT; then the destination is
 * undefined. May sleep.
 */
int kern_copy_from_user(void *to, const void __user *from, size_t size);
int kern_copy_to_user(void __user *to, const void *from, size_t size);
/* Returns 1 if all of it is 0, 0 if not, or -EFAULT. */
int kern_user_is_zero(const void __user *from, size_t size);

/*
 * The user to whom a resource is charged. id: the real UID, in the initial user namespace.
 * Processes of another user namespace count as its owner (of the outermost one, if they are
 * nested), whatever UIDs they have: these are subordinate UIDs that the owner may use at will. If
 * root has made the namespace, for a container, they count as the user that its own root is mapped
 * to. privileged: CAP_SYS_RESOURCE in the initial user namespace.
 */
struct kern_user {
	u32 id;
	bool privileged;
};

/* Returns the user of the calling process. */
struct kern_user kern_current_user(void);

KERN_C_END
