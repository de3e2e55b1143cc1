// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's XArray and IDA for C++ code (include/kern/abi/xarray.h).
#include <linux/export.h>
#include <linux/idr.h>
#include <linux/xarray.h>
#include <kern/abi/xarray.h>
#include "native.h"

KERN_NATIVE(xarray, struct xarray)
KERN_NATIVE(ida, struct ida)

void kern_xa_init(struct kern_xarray *array)
{
	xa_init_flags(native_xarray(array), XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
}
EXPORT_SYMBOL_GPL(kern_xa_init);

void kern_xa_destroy(struct kern_xarray *array)
{
	xa_destroy(native_xarray(array));
}
EXPORT_SYMBOL_GPL(kern_xa_destroy);

bool kern_xa_empty(struct kern_xarray *array)
{
	return xa_empty(native_xarray(array));
}
EXPORT_SYMBOL_GPL(kern_xa_empty);

void *kern_xa_load(struct kern_xarray *array, unsigned long index)
{
	return xa_load(native_xarray(array), index);
}
EXPORT_SYMBOL_GPL(kern_xa_load);

int kern_xa_insert(struct kern_xarray *array, unsigned long index, void *entry, unsigned int flags)
{
	return xa_insert_irq(native_xarray(array), index, entry, (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_xa_insert);

int kern_xa_alloc(struct kern_xarray *array, u32 *index, void *entry, u32 min, u32 max,
		  unsigned int flags)
{
	return xa_alloc_irq(native_xarray(array), index, entry, XA_LIMIT(min, max),
			    (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_xa_alloc);

int kern_xa_alloc_cyclic(struct kern_xarray *array, u32 *index, void *entry, u32 min, u32 max,
			 u32 *next, unsigned int flags)
{
	int wrapped = xa_alloc_cyclic_irq(native_xarray(array), index, entry, XA_LIMIT(min, max),
					  next, (__force gfp_t)flags);

	return wrapped < 0 ? wrapped : 0;
}
EXPORT_SYMBOL_GPL(kern_xa_alloc_cyclic);

void *kern_xa_erase(struct kern_xarray *array, unsigned long index)
{
	unsigned long flags;
	void *entry;

	xa_lock_irqsave(native_xarray(array), flags);
	entry = __xa_erase(native_xarray(array), index);
	xa_unlock_irqrestore(native_xarray(array), flags);
	return entry;
}
EXPORT_SYMBOL_GPL(kern_xa_erase);

void *kern_xa_find(struct kern_xarray *array, unsigned long *index)
{
	return xa_find(native_xarray(array), index, ULONG_MAX, XA_PRESENT);
}
EXPORT_SYMBOL_GPL(kern_xa_find);

void kern_ida_init(struct kern_ida *ida)
{
	ida_init(native_ida(ida));
}
EXPORT_SYMBOL_GPL(kern_ida_init);

void kern_ida_destroy(struct kern_ida *ida)
{
	ida_destroy(native_ida(ida));
}
EXPORT_SYMBOL_GPL(kern_ida_destroy);

int kern_ida_alloc(struct kern_ida *ida, unsigned int min, unsigned int max, unsigned int flags)
{
	return ida_alloc_range(native_ida(ida), min, max, (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_ida_alloc);

void kern_ida_free(struct kern_ida *ida, unsigned int id)
{
	ida_free(native_ida(ida), id);
}
EXPORT_SYMBOL_GPL(kern_ida_free);

bool kern_ida_empty(struct kern_ida *ida)
{
	return ida_is_empty(native_ida(ida));
}
EXPORT_SYMBOL_GPL(kern_ida_empty);
