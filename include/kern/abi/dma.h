/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares DMA memory: coherent buffers, pools, and mappings of pages. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct dma_pool;
KERN_OPAQUE(sg_table);

/* The values are those of the kernel's enum dma_data_direction. */
enum kern_dma_direction { KERN_DMA_BIDIRECTIONAL, KERN_DMA_TO_DEVICE, KERN_DMA_FROM_DEVICE };

/* The memory is zeroed. */
void *kern_dma_alloc_coherent(struct device *device, size_t size, u64 *address, unsigned int flags);
void kern_dma_free_coherent(struct device *device, size_t size, void *memory, u64 address);

/* Returns 0, or -ENOMEM if the device cannot access the address or the mapping table is full. */
int kern_dma_map_single(struct device *device, void *memory, size_t size,
			enum kern_dma_direction direction, u64 *address);
int kern_dma_map_page(struct device *device, struct page *page, size_t offset, size_t size,
		      enum kern_dma_direction direction, u64 *address);
void kern_dma_unmap_single(struct device *device, u64 address, size_t size,
			   enum kern_dma_direction direction);
void kern_dma_unmap_page(struct device *device, u64 address, size_t size,
			 enum kern_dma_direction direction);
void kern_dma_sync_for_cpu(struct device *device, u64 address, size_t size,
			   enum kern_dma_direction direction);
void kern_dma_sync_for_device(struct device *device, u64 address, size_t size,
			      enum kern_dma_direction direction);

struct dma_pool *kern_dma_pool_create(const char *name, struct device *device, size_t size,
				      size_t align);
void kern_dma_pool_destroy(struct dma_pool *pool);
void *kern_dma_pool_alloc(struct dma_pool *pool, unsigned int flags, u64 *address);
void kern_dma_pool_free(struct dma_pool *pool, void *memory, u64 address);

int kern_sg_alloc(struct kern_sg_table *table, unsigned int entries, unsigned int flags);
void kern_sg_free(struct kern_sg_table *table);
void kern_sg_set_page(struct kern_sg_table *table, unsigned int entry, struct page *page,
		      unsigned int size, unsigned int offset);
/* Returns the number of DMA segments, which may be fewer than the entries, or a negative errno. */
int kern_sg_map(struct device *device, struct kern_sg_table *table,
		enum kern_dma_direction direction);
void kern_sg_unmap(struct device *device, struct kern_sg_table *table,
		   enum kern_dma_direction direction);
/* Calls visit for each mapped segment, as long as it returns true. */
void kern_sg_for_each(struct kern_sg_table *table,
		      bool (*visit)(void *context, u64 address, u64 size), void *context);

KERN_C_END
