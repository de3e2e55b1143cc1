// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// include/kern/abi/user.h, where there are no processes: no address is one's.
#include <cerrno>
#include <kern/abi/user.h>

extern "C" {

int kern_copy_from_user(void *, const void __user *, size_t)
{
	return -EFAULT;
}

int kern_copy_to_user(void __user *, const void *, size_t)
{
	return -EFAULT;
}

int kern_user_is_zero(const void __user *, size_t)
{
	return -EFAULT;
}
}
