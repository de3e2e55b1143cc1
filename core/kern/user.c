// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/uaccess.h>
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

u32 kern_current_user(void)
{
	return from_kuid(&init_user_ns, current_uid());
}
EXPORT_SYMBOL_GPL(kern_current_user);
