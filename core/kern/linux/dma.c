// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's DMA API for C++ code: coherent memory, pools and mappings
// (include/kern/abi/dma.h).
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/export.h>
#include <linux/scatterlist.h>
#include <kern/abi/dma.h>
#include "native.h"

KERN_NATIVE(sg_table, struct sg_table)

static_assert((int)KERN_DMA_BIDIRECTIONAL == (int)DMA_BIDIRECTIONAL);
static_assert((int)KERN_DMA_TO_DEVICE == (int)DMA_TO_DEVICE);
static_assert((int)KERN_DMA_FROM_DEVICE == (int)DMA_FROM_DEVICE);

static enum dma_data_direction native_direction(enum kern_dma_direction direction)
{
	return (enum dma_data_direction)direction;
}

void *kern_dma_alloc_coherent(struct device *device, size_t size, u64 *address, unsigned int flags)
{
	dma_addr_t bus;
	void *memory = dma_alloc_coherent(device, size, &bus, (__force gfp_t)flags);

	if (memory)
		*address = bus;
	return memory;
}
EXPORT_SYMBOL_GPL(kern_dma_alloc_coherent);

void kern_dma_free_coherent(struct device *device, size_t size, void *memory, u64 address)
{
	dma_free_coherent(device, size, memory, address);
}
EXPORT_SYMBOL_GPL(kern_dma_free_coherent);

int kern_dma_map_single(struct device *device, void *memory, size_t size,
			enum kern_dma_direction direction, u64 *address)
{
	*address = dma_map_single(device, memory, size, native_direction(direction));
	return dma_mapping_error(device, *address);
}
EXPORT_SYMBOL_GPL(kern_dma_map_single);

int kern_dma_map_page(struct device *device, struct page *page, size_t offset, size_t size,
		      enum kern_dma_direction direction, u64 *address)
{
	*address = dma_map_page(device, page, offset, size, native_direction(direction));
	return dma_mapping_error(device, *address);
}
EXPORT_SYMBOL_GPL(kern_dma_map_page);

void kern_dma_unmap_single(struct device *device, u64 address, size_t size,
			   enum kern_dma_direction direction)
{
	dma_unmap_single(device, address, size, native_direction(direction));
}
EXPORT_SYMBOL_GPL(kern_dma_unmap_single);

void kern_dma_unmap_page(struct device *device, u64 address, size_t size,
			 enum kern_dma_direction direction)
{
	dma_unmap_page(device, address, size, native_direction(direction));
}
EXPORT_SYMBOL_GPL(kern_dma_unmap_page);

void kern_dma_sync_for_cpu(struct device *device, u64 address, size_t size,
			   enum kern_dma_direction direction)
{
	dma_sync_single_for_cpu(device, address, size, native_direction(direction));
}
EXPORT_SYMBOL_GPL(kern_dma_sync_for_cpu);

void kern_dma_sync_for_device(struct device *device, u64 address, size_t size,
			      enum kern_dma_direction direction)
{
	dma_sync_single_for_device(device, address, size, native_direction(direction));
}
EXPORT_SYMBOL_GPL(kern_dma_sync_for_device);

struct dma_pool *kern_dma_pool_create(const char *name, struct device *device, size_t size,
				      size_t align)
{
	return dma_pool_create(name, device, size, align, 0);
}
EXPORT_SYMBOL_GPL(kern_dma_pool_create);

void kern_dma_pool_destroy(struct dma_pool *pool)
{
	dma_pool_destroy(pool);
}
EXPORT_SYMBOL_GPL(kern_dma_pool_destroy);

void *kern_dma_pool_alloc(struct dma_pool *pool, unsigned int flags, u64 *address)
{
	dma_addr_t bus;
	void *memory = dma_pool_zalloc(pool, (__force gfp_t)flags, &bus);

	if (memory)
		*address = bus;
	return memory;
}
EXPORT_SYMBOL_GPL(kern_dma_pool_alloc);

void kern_dma_pool_free(struct dma_pool *pool, void *memory, u64 address)
{
	dma_pool_free(pool, memory, address);
}
EXPORT_SYMBOL_GPL(kern_dma_pool_free);

int kern_sg_alloc(struct kern_sg_table *table, unsigned int entries, unsigned int flags)
{
	return sg_alloc_table(native_sg_table(table), entries, (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_sg_alloc);

void kern_sg_free(struct kern_sg_table *table)
{
	sg_free_table(native_sg_table(table));
}
EXPORT_SYMBOL_GPL(kern_sg_free);

void kern_sg_set_page(struct kern_sg_table *table, unsigned int entry, struct page *page,
		      unsigned int size, unsigned int offset)
{
	struct scatterlist *at = native_sg_table(table)->sgl;

	while (entry--)
		at = sg_next(at);
	sg_set_page(at, page, size, offset);
}
EXPORT_SYMBOL_GPL(kern_sg_set_page);

int kern_sg_map(struct device *device, struct kern_sg_table *table,
		enum kern_dma_direction direction)
{
	struct sg_table *native = native_sg_table(table);
	int status = dma_map_sgtable(device, native, native_direction(direction), 0);

	return status ? status : native->nents;
}
EXPORT_SYMBOL_GPL(kern_sg_map);

void kern_sg_unmap(struct device *device, struct kern_sg_table *table,
		   enum kern_dma_direction direction)
{
	dma_unmap_sgtable(device, native_sg_table(table), native_direction(direction), 0);
}
EXPORT_SYMBOL_GPL(kern_sg_unmap);

void kern_sg_for_each(struct kern_sg_table *table,
		      bool (*visit)(void *context, u64 address, u64 size), void *context)
{
	struct scatterlist *at;
	int i;

	for_each_sgtable_dma_sg(native_sg_table(table), at,
				i) if (!visit(context, sg_dma_address(at), sg_dma_len(at))) break;
}
EXPORT_SYMBOL_GPL(kern_sg_for_each);
