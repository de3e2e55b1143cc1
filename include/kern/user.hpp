// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Copying from and to the memory of the calling program. Context: process, the program's. Errors:
// EFAULT.
#pragma once
#include <kern/abi/user.h>
#include <kern/result.hpp>

namespace kern
{

/* Commands contain addresses as numbers. */
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
 * Checks that a program has set the fields that this version does not know to zero. Errors: EFAULT;
 * EOPNOTSUPP if it has not.
 */
inline Result<> check_zero(u64 from, size_t size)
{
	const int zero = size ? kern_user_is_zero(user_pointer(from), size) : 1;

	return check(zero > 0 ? 0 : zero ? zero : -EOPNOTSUPP);
}

} // namespace kern
