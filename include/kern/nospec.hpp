// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Table indices that programs choose. A CPU may execute speculatively past the bounds check of an
 * index and leave traces of the data in its caches (Spectre, variant 1). So an index that a program
 * may choose freely is masked by these functions after its check.
 */
#pragma once
#include <kern/types.h>

namespace kern
{

/* Returns index if it is below size, else 0, by arithmetic whose result no CPU predicts. */
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
