/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares access to the memory of the calling process, and the user to whom its resources are
 * charged.
 */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * Copy from and to the memory of the calling process. Return 0 or -EFAULT, after which the
 * destination is undefined. May sleep.
 */
int kern_copy_from_user(void *to, const void __user *from, size_t size);
int kern_copy_to_user(void __user *to, const void *from, size_t size);
/* Returns 1 if all bytes are 0, 0 if not, or -EFAULT. */
int kern_user_is_zero(const void __user *from, size_t size);

/*
 * The user to whom a resource is charged.
 *
 * id: the real UID in the initial user namespace. A process in another user namespace counts as the
 * owner of that namespace (of the outermost one, if they are nested), regardless of its UID,
 * because the owner can use all subordinate UIDs. If root has created the namespace, for example
 * for a container, the process counts as the user to whom the namespace's own root is mapped.
 *
 * privileged: the process has CAP_SYS_RESOURCE in the initial user namespace.
 */
struct kern_user {
	u32 id;
	bool privileged;
};

/* Returns the user of the calling process. */
struct kern_user kern_current_user(void);

KERN_C_END
