/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the allocation of memory and pages, and functions by which tests make allocations fail.
 */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/*
 * flags: those of kern::Gfp. Memory of a power-of-two size is aligned to its size, other memory to
 * 8 bytes.
 */
void *kern_alloc(size_t size, unsigned int flags);
void *kern_alloc_array(size_t count, size_t size, unsigned int flags);
void kern_free(const void *object);
/* Falls back to pages that are not contiguous. May sleep. Must be freed with kern_free_large(). */
void *kern_alloc_large(size_t count, size_t size, unsigned int flags);
void kern_free_large(const void *object);

struct page *kern_alloc_pages(unsigned int order, int node, unsigned int flags);
void kern_free_pages(struct page *page, unsigned int order);
void kern_get_page(struct page *page);
void kern_put_page(struct page *page);
void *kern_page_address(struct page *page);
int kern_node_id(void);
/* Returns the number of pages of the computer's memory. */
u64 kern_ram_pages(void);

/*
 * Until kern_noio_leave(), allocations of the calling task do not start I/O or use file systems to
 * reclaim memory, regardless of their flags. For code on which such I/O may depend, because it may
 * be swapping or NFS over IPoIB. kern_noio_leave() gets the value that kern_noio_enter() returns.
 * Pairs may be nested.
 */
unsigned int kern_noio_enter(void);
void kern_noio_leave(unsigned int former);
/* Returns true if the calling task is between kern_noio_enter() and kern_noio_leave(). */
bool kern_noio(void);

/*
 * For tests, in builds with checks: the nth allocation of the calling task from now on fails, once;
 * 0 cancels that. kern_allocation_failed() returns whether it has failed. Only one task may use
 * this at a time.
 */
void kern_fail_allocation(unsigned int nth);
bool kern_allocation_failed(void);
/*
 * The nth allocation of all work items together from now on fails, once; 0 cancels that. Returns
 * how many allocations of the previous call were left to count.
 */
unsigned int kern_fail_work_allocation(unsigned int nth);

KERN_C_END
