// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Pins the memory of processes, so that devices can access it. */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <kern/abi/user_memory.h>

/*
 * The program and the device use the memory at the same time, and a page may belong to several
 * regions, so ownership is never transferred by the DMA API. This requires cache-coherent DMA,
 * which x86 has.
 */
#define SHARED DMA_ATTR_SKIP_CPU_SYNC

/* Reschedules after this number of small pieces of a region, or after one large piece. */
static inline void resched_every(unsigned int piece, size_t size)
{
	if (piece % 64 == 0 || size >= SZ_1M)
		cond_resched();
}

struct kern_user_memory {
	struct device *device;
	/* The address space to which the pages are accounted. The process may have exited. */
	struct mm_struct *mm;
	struct sg_append_table table;
	unsigned long pages;
	bool writable;
};

/* Returns the first page-aligned address after a range, or 0 if there is none. */
static u64 end_of(u64 start, u64 length)
{
	u64 end;

	if (check_add_overflow(start, length, &end) || end > ULONG_MAX - PAGE_SIZE)
		return 0;
	return PAGE_ALIGN(end);
}

static int account(struct mm_struct *mm, unsigned long pages)
{
	const unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	const u64 pinned = atomic64_add_return(pages, &mm->pinned_vm);

	if (pinned <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(pages, &mm->pinned_vm);
	return -ENOMEM;
}

static int pin_pages(struct kern_user_memory *memory, unsigned long from, unsigned int flags)
{
	/*
	 * A queue's ring usually has at most this number of pages. For more, a page is allocated
	 * for the list, which takes longer.
	 */
	struct page *few[8];
	struct page **list = few;
	unsigned int most = ARRAY_SIZE(few);
	unsigned long left = memory->pages;
	int status = 0;

	if (left > most) {
		list = (struct page **)__get_free_page(GFP_KERNEL);
		if (!list)
			return -ENOMEM;
		most = PAGE_SIZE / sizeof(*list);
	}
	while (left) {
		int got;

		cond_resched();
		if (fatal_signal_pending(current)) {
			status = -EINTR;
			break;
		}
		got = pin_user_pages_fast(from, min_t(unsigned long, left, most), flags, list);
		if (got <= 0) {
			status = got ? got : -EFAULT;
			break;
		}
		from += (unsigned long)got << PAGE_SHIFT;
		left -= got;
		status = sg_alloc_append_table_from_pages(
			&memory->table, list, got, 0, (unsigned long)got << PAGE_SHIFT,
			dma_get_max_seg_size(memory->device), left, GFP_KERNEL_ACCOUNT);
		if (status) {
			unpin_user_pages(list, got);
			break;
		}
	}
	if (list != few)
		free_page((unsigned long)list);
	return status;
}

static void unpin_pages(struct kern_user_memory *memory)
{
	struct scatterlist *at;
	unsigned int i;

	for_each_sgtable_sg(&memory->table.sgt, at, i)
	{
		unpin_user_page_range_dirty_lock(sg_page(at), DIV_ROUND_UP(at->length, PAGE_SIZE),
						 memory->writable);
		resched_every(i, at->length);
	}
	sg_free_append_table(&memory->table);
	memset(&memory->table, 0, sizeof(memory->table));
}

/*
 * Flags for pinning memory that the process cannot write and the device need not write. From 6.2
 * on, pinning for reading gives a private page its final location (FAULT_FLAG_UNSHARE), so that
 * file mappings can be pinned, too. Before 6.2, only a write fault on the page does so, which
 * shared mappings refuse.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define PIN_FOR_READING (FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE)
#else
#define PIN_FOR_READING FOLL_LONGTERM
#endif

/*
 * Pages are pinned for writing if possible: then a private page already has its final location when
 * the device gets its address, and the region can be made writable later.
 */
static int pin_all(struct kern_user_memory *memory, unsigned long from, bool must_write)
{
	int status;

	memory->writable = true;
	status = pin_pages(memory, from, FOLL_LONGTERM | FOLL_WRITE);
	if (status == -EFAULT && !must_write) {
		memory->writable = false;
		unpin_pages(memory);
		status = pin_pages(memory, from, PIN_FOR_READING);
	}
	return status;
}

struct kern_user_memory *kern_user_memory_pin(struct device *device, u64 start, u64 length,
					      bool must_write)
{
	const u64 from = start & PAGE_MASK;
	const u64 end = end_of(start, length);
	struct kern_user_memory *memory;
	int status;

	if (end <= from || (end - from) >> PAGE_SHIFT > UINT_MAX || !current->mm)
		return ERR_PTR(-EINVAL);
	if (!can_do_mlock())
		return ERR_PTR(-EPERM);
	memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	memory->device = device;
	memory->pages = (end - from) >> PAGE_SHIFT;
	memory->mm = current->mm;
	mmgrab(memory->mm);

	status = account(memory->mm, memory->pages);
	if (status)
		goto forget;
	status = pin_all(memory, from, must_write);
	if (!status)
		status = dma_map_sgtable(device, &memory->table.sgt, DMA_BIDIRECTIONAL, SHARED);
	if (!status)
		return memory;
	memory->writable = false; /* the device has not written */
	unpin_pages(memory);
	atomic64_sub(memory->pages, &memory->mm->pinned_vm);
forget:
	mmdrop(memory->mm);
	kfree(memory);
	return ERR_PTR(status);
}
EXPORT_SYMBOL_GPL(kern_user_memory_pin);

void kern_user_memory_release(struct kern_user_memory *memory)
{
	dma_unmap_sgtable(memory->device, &memory->table.sgt, DMA_BIDIRECTIONAL, SHARED);
	unpin_pages(memory);
	atomic64_sub(memory->pages, &memory->mm->pinned_vm);
	mmdrop(memory->mm);
	kfree(memory);
}
EXPORT_SYMBOL_GPL(kern_user_memory_release);

bool kern_user_memory_writable(const struct kern_user_memory *memory)
{
	return memory->writable;
}
EXPORT_SYMBOL_GPL(kern_user_memory_writable);

bool kern_user_memory_of_caller(const struct kern_user_memory *memory)
{
	return memory->mm == current->mm;
}
EXPORT_SYMBOL_GPL(kern_user_memory_of_caller);

unsigned int kern_user_memory_pieces(struct kern_user_memory *memory,
				     struct kern_user_cursor *cursor,
				     struct kern_user_piece *pieces, unsigned int most)
{
	const struct sg_table *table = &memory->table.sgt;
	struct scatterlist *at = cursor->gone ? cursor->next : table->sgl;
	unsigned int count = 0;

	while (cursor->gone < table->nents) {
		const u64 address = sg_dma_address(at);
		const size_t size = sg_dma_len(at);

		if (count && address == pieces[count - 1].address + pieces[count - 1].size)
			pieces[count - 1].size += size;
		else if (count < most)
			pieces[count++] = (struct kern_user_piece){address, size};
		else
			break;
		resched_every(cursor->gone++, size);
		at = sg_next(at);
	}
	cursor->next = at;
	return count;
}
EXPORT_SYMBOL_GPL(kern_user_memory_pieces);
