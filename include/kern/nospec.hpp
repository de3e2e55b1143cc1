// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Numbers that programs give, and what stands at them in tables. A CPU runs ahead of the check that
 * refuses a number, and leaves traces of what it finds there in its caches (Spectre, variant 1): so
 * an index that a program may choose freely goes through here, behind its check.
 */
#pragma once
#include <kern/types.h>

namespace kern
{

/* index if it is below size, else 0, by arithmetic that no CPU guesses the outcome of. */
inline size_t index_nospec(size_t index, size_t size)
{
	size_t mask;

	/* The borrow of index - size, in all bits. */
	asm volatile("cmp %[size], %[index]\n\tsbb %[mask], %[mask]"
		     : [mask] "=r"(mask)
		     : [index] "r"(index), [size] "re"(size)
		     : "cc");
	return index & mask;
}

} // namespace kern
