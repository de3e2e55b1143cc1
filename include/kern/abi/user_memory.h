/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct device;
struct kern_user_memory;

/*
 * Pins pages of the calling process and maps them for a device; see kern::UserMemory for the
 * errors, which are returned as error pointers.
 */
struct kern_user_memory *kern_user_memory_pin(struct device *device, u64 start, u64 length,
					      bool must_write);
void kern_user_memory_release(struct kern_user_memory *memory);
bool kern_user_memory_writable(const struct kern_user_memory *memory);
bool kern_user_memory_of_caller(const struct kern_user_memory *memory);
/* The mapped pieces in their order, of whole pages, until visit returns false. */
void kern_user_memory_for_each(struct kern_user_memory *memory,
			       bool (*visit)(void *context, u64 address, u64 size), void *context);

KERN_C_END
