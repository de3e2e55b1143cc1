/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares memory of processes that is pinned and mapped for a device. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct device;
struct kern_user_memory;
struct scatterlist;

/* A piece of memory that is contiguous for the device. */
struct kern_user_piece {
	u64 address;
	u64 size;
};

/* Position of an iteration over the pieces; all zeroes at the start. */
struct kern_user_cursor {
	struct scatterlist *next;
	unsigned int gone;
};

/*
 * Pins pages of the calling process and maps them for a device; see kern::UserMemory for the
 * errors, which are returned as error pointers.
 */
struct kern_user_memory *kern_user_memory_pin(struct device *device, u64 start, u64 length,
					      bool must_write);
void kern_user_memory_release(struct kern_user_memory *memory);
bool kern_user_memory_writable(const struct kern_user_memory *memory);
bool kern_user_memory_of_caller(const struct kern_user_memory *memory);
/*
 * Returns the next mapped pieces in order. Each consists of whole pages and is as large as
 * possible. The returned number is less than `most` only at the end. May sleep.
 */
unsigned int kern_user_memory_pieces(struct kern_user_memory *memory,
				     struct kern_user_cursor *cursor,
				     struct kern_user_piece *pieces, unsigned int most);

KERN_C_END
