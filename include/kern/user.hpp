// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Copies from and to the memory of the calling process. The functions need process context, and
// fail with EFAULT if the memory cannot be accessed.
#pragma once
#include <kern/abi/user.h>
#include <kern/result.hpp>

namespace kern
{

/* Converts an address in a command, which is a number. */
inline void __user *user_pointer(u64 address)
{
	return reinterpret_cast<void *>(address);
}

inline Result<> copy_in(void *to, u64 from, size_t size)
{
	return check(kern_copy_from_user(to, user_pointer(from), size));
}

inline Result<> copy_out(u64 to, const void *from, size_t size)
{
	return check(kern_copy_to_user(user_pointer(to), from, size));
}

/*
 * Checks that a program has set fields that are unknown to this version to zero. Errors: EFAULT;
 * EOPNOTSUPP if they are not zero.
 */
inline Result<> check_zero(u64 from, size_t size)
{
	const int zero = size ? kern_user_is_zero(user_pointer(from), size) : 1;

	return check(zero > 0 ? 0 : zero ? zero : -EOPNOTSUPP);
}

} // namespace kern
