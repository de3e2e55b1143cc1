// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the access to user memory of include/kern/abi/user.h and user_memory.h. The simulation
// has no processes, so all user addresses are invalid.
#include <cerrno>
#include <kern/abi/user.h>
#include <kern/abi/user_memory.h>

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

struct kern_user_memory *kern_user_memory_pin(struct device *, u64, u64, bool)
{
	return reinterpret_cast<struct kern_user_memory *>(-EFAULT);
}

void kern_user_memory_release(struct kern_user_memory *) {}

bool kern_user_memory_writable(const struct kern_user_memory *)
{
	return false;
}

bool kern_user_memory_of_caller(const struct kern_user_memory *)
{
	return false;
}

unsigned int kern_user_memory_pieces(struct kern_user_memory *, struct kern_user_cursor *,
				     struct kern_user_piece *, unsigned int)
{
	return 0;
}

struct kern_user kern_current_user(void)
{
	return {.id = 0, .privileged = true};
}
}
