// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Masks table indices that programs choose. A CPU may execute speculatively past the bounds check
 * of an index and leave traces of the data in its caches (Spectre, variant 1). So an index that a
 * program may choose freely is masked by these functions after its check.
 */
#pragma once
#include <kern/types.h>

namespace kern
{

/*
 * Returns index if it is less than size, otherwise 0. The result is computed arithmetically, so the
 * CPU cannot speculate on it.
 */
inline size_t index_nospec(size_t index, size_t size)
{
	size_t mask;

	/* Sets all bits of mask to the borrow of index - size. */
	asm volatile("cmp %[size], %[index]\n\tsbb %[mask], %[mask]"
		     : [mask] "=r"(mask)
		     : [index] "r"(index), [size] "re"(size)
		     : "cc");
	return index & mask;
}

} // namespace kern
