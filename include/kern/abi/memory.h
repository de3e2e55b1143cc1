/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Allocation of memory and pages, and failing allocations for tests. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * flags: kern::Gfp. Memory is aligned to the next power of two of a power-of-two size, else to 8.
 */
void *kern_alloc(size_t size, unsigned int flags);
void *kern_alloc_array(size_t count, size_t size, unsigned int flags);
void kern_free(const void *object);
/* Falls back to pages that are not contiguous; may sleep. Freed with kern_free_large only. */
void *kern_alloc_large(size_t count, size_t size, unsigned int flags);
void kern_free_large(const void *object);

struct page *kern_alloc_pages(unsigned int order, int node, unsigned int flags);
void kern_free_pages(struct page *page, unsigned int order);
void kern_get_page(struct page *page);
void kern_put_page(struct page *page);
void *kern_page_address(struct page *page);
int kern_node_id(void);
/* Returns the number of pages of memory of the host. */
u64 kern_ram_pages(void);

/*
 * From here to kern_noio_leave(), which gets the value that this returns, no allocation of the
 * calling task starts I/O or file system work to find memory, whatever its flags are. For code on
 * which such I/O may depend, because the I/O may be swapping or NFS over IPoIB. Pairs may be
 * nested.
 */
unsigned int kern_noio_enter(void);
void kern_noio_leave(unsigned int former);
/* True if the calling task is within such a pair. */
bool kern_noio(void);

/*
 * For tests, in builds with checks: the nth allocation from now by the calling task fails, once; 0
 * cancels that. The second function returns whether it has happened. One task at a time.
 */
void kern_fail_allocation(unsigned int nth);
bool kern_allocation_failed(void);
/*
 * The nth allocation from now on, counted over all work items, fails once; 0 cancels that. Returns
 * how many were left to count.
 */
unsigned int kern_fail_work_allocation(unsigned int nth);

KERN_C_END
