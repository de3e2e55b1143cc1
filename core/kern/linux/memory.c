// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps the kernel's allocation of memory and pages for C++ code, and makes allocations fail when a
// test requests it (include/kern/abi/memory.h).
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <kern/abi/memory.h>

#ifdef CONFIG_WEFT_DEBUG
/* The task of the test that makes an allocation fail. Only one test uses this at a time. */
static struct task_struct *failing_task;
static unsigned int until_failure;
/* Number of allocations of all work items until one fails. */
static atomic_t until_work_failure;

static bool fails(void)
{
	if (unlikely(atomic_read(&until_work_failure)) && in_task() &&
	    (current->flags & PF_WQ_WORKER))
		return atomic_dec_if_positive(&until_work_failure) == 0;
	if (likely(READ_ONCE(failing_task) != current) || !in_task() || until_failure == 0)
		return false;
	return --until_failure == 0;
}

void kern_fail_allocation(unsigned int nth)
{
	until_failure = nth;
	WRITE_ONCE(failing_task, nth ? current : NULL);
}
EXPORT_SYMBOL_GPL(kern_fail_allocation);

bool kern_allocation_failed(void)
{
	return failing_task == current && until_failure == 0;
}
EXPORT_SYMBOL_GPL(kern_allocation_failed);

unsigned int kern_fail_work_allocation(unsigned int nth)
{
	return atomic_xchg(&until_work_failure, nth);
}
EXPORT_SYMBOL_GPL(kern_fail_work_allocation);
#else
static bool fails(void)
{
	return false;
}
#endif

unsigned int kern_noio_enter(void)
{
	return memalloc_noio_save();
}
EXPORT_SYMBOL_GPL(kern_noio_enter);

void kern_noio_leave(unsigned int former)
{
	memalloc_noio_restore(former);
}
EXPORT_SYMBOL_GPL(kern_noio_leave);

bool kern_noio(void)
{
	return current->flags & PF_MEMALLOC_NOIO;
}
EXPORT_SYMBOL_GPL(kern_noio);

void *kern_alloc(size_t size, unsigned int flags)
{
	if (fails())
		return NULL;
	return kmalloc(size, (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_alloc);

void *kern_alloc_array(size_t count, size_t size, unsigned int flags)
{
	if (fails())
		return NULL;
	return kmalloc_array(count, size, (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_alloc_array);

void kern_free(const void *object)
{
	kfree(object);
}
EXPORT_SYMBOL_GPL(kern_free);

void *kern_alloc_large(size_t count, size_t size, unsigned int flags)
{
	if (fails())
		return NULL;
	return kvmalloc_array(count, size, (__force gfp_t)flags);
}
EXPORT_SYMBOL_GPL(kern_alloc_large);

void kern_free_large(const void *object)
{
	kvfree(object);
}
EXPORT_SYMBOL_GPL(kern_free_large);

struct page *kern_alloc_pages(unsigned int order, int node, unsigned int flags)
{
	if (fails())
		return NULL;
	return alloc_pages_node(node, (__force gfp_t)flags | (order ? __GFP_COMP : 0), order);
}
EXPORT_SYMBOL_GPL(kern_alloc_pages);

void kern_free_pages(struct page *page, unsigned int order)
{
	__free_pages(page, order);
}
EXPORT_SYMBOL_GPL(kern_free_pages);

void kern_get_page(struct page *page)
{
	get_page(page);
}
EXPORT_SYMBOL_GPL(kern_get_page);

void kern_put_page(struct page *page)
{
	put_page(page);
}
EXPORT_SYMBOL_GPL(kern_put_page);

void *kern_page_address(struct page *page)
{
	return page_address(page);
}
EXPORT_SYMBOL_GPL(kern_page_address);

int kern_node_id(void)
{
	return numa_node_id();
}
EXPORT_SYMBOL_GPL(kern_node_id);

u64 kern_ram_pages(void)
{
	return totalram_pages();
}
EXPORT_SYMBOL_GPL(kern_ram_pages);
