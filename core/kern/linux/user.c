// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Copies from and to the memory of the calling process, and returns the user to whom its resources
// are charged (include/kern/abi/user.h).
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <kern/abi/user.h>

int kern_copy_from_user(void *to, const void __user *from, size_t size)
{
	return copy_from_user(to, from, size) ? -EFAULT : 0;
}
EXPORT_SYMBOL_GPL(kern_copy_from_user);

int kern_copy_to_user(void __user *to, const void *from, size_t size)
{
	return copy_to_user(to, from, size) ? -EFAULT : 0;
}
EXPORT_SYMBOL_GPL(kern_copy_to_user);

int kern_user_is_zero(const void __user *from, size_t size)
{
	return check_zeroed_user(from, size);
}
EXPORT_SYMBOL_GPL(kern_user_is_zero);

/*
 * Returns the child of the initial user namespace that contains @inner, which is not the initial
 * namespace.
 */
static struct user_namespace *outermost(struct user_namespace *inner)
{
	while (inner->parent != &init_user_ns)
		inner = inner->parent;
	return inner;
}

static kuid_t countable(const struct cred *cred)
{
	struct user_namespace *space;
	kuid_t root;

	if (cred->user_ns == &init_user_ns)
		return cred->uid;
	space = outermost(cred->user_ns);
	if (!uid_eq(space->owner, GLOBAL_ROOT_UID))
		return space->owner;
	root = make_kuid(space, 0);
	return uid_valid(root) ? root : cred->uid;
}

struct kern_user kern_current_user(void)
{
	return (struct kern_user){
		.id = from_kuid(&init_user_ns, countable(current_cred())),
		.privileged = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE),
	};
}
EXPORT_SYMBOL_GPL(kern_current_user);
