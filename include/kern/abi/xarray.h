/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares XArrays, and allocators of indices (IDA). */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

KERN_OPAQUE(xarray);
KERN_OPAQUE(ida);

void kern_xa_init(struct kern_xarray *array);
void kern_xa_destroy(struct kern_xarray *array);
bool kern_xa_empty(struct kern_xarray *array);
void *kern_xa_load(struct kern_xarray *array, unsigned long index);
/* Returns 0, -EBUSY if the index is used, or -ENOMEM. */
int kern_xa_insert(struct kern_xarray *array, unsigned long index, void *entry, unsigned int flags);
/*
 * Stores an entry at the lowest free index from @min to @max. Returns 0, -EBUSY if there is none,
 * or -ENOMEM.
 */
int kern_xa_alloc(struct kern_xarray *array, u32 *index, void *entry, u32 min, u32 max,
		  unsigned int flags);
/* Like kern_xa_alloc(), but searches cyclically from *next. */
int kern_xa_alloc_cyclic(struct kern_xarray *array, u32 *index, void *entry, u32 min, u32 max,
			 u32 *next, unsigned int flags);
void *kern_xa_erase(struct kern_xarray *array, unsigned long index);
/*
 * Returns the first entry with at least this index, and stores its index there; NULL if there is
 * none.
 */
void *kern_xa_find(struct kern_xarray *array, unsigned long *index);

void kern_ida_init(struct kern_ida *ida);
void kern_ida_destroy(struct kern_ida *ida);
/* Returns the lowest free number from @min to @max, -ENOSPC, or -ENOMEM. */
int kern_ida_alloc(struct kern_ida *ida, unsigned int min, unsigned int max, unsigned int flags);
void kern_ida_free(struct kern_ida *ida, unsigned int id);
bool kern_ida_empty(struct kern_ida *ida);

KERN_C_END
