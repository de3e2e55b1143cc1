// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates doorbell records: words in memory in which the driver stores the index up to which a
// queue has been filled or read.
#pragma once
#include <kern/bits.hpp>
#include <kern/dma.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>

namespace mlx4
{

class DoorbellPool;

/*
 * A record, initially zero. Each has its own cache line, so that queues on different CPUs do not
 * contend.
 */
class DoorbellRecord
{
public:
	DoorbellRecord() = default;
	DoorbellRecord(DoorbellRecord &&other) noexcept
	    : pool_(std::exchange(other.pool_, nullptr)), page_(other.page_), index_(other.index_)
	{
	}
	DoorbellRecord &operator=(DoorbellRecord &&other) noexcept
	{
		std::swap(pool_, other.pool_);
		std::swap(page_, other.page_);
		std::swap(index_, other.index_);
		return *this;
	}
	~DoorbellRecord();

	u32 *address() const;
	u64 bus_address() const;

private:
	friend class DoorbellPool;
	struct Page {
		kern::ListNode node;
		kern::DmaBuffer buffer;
		u64 free;
	};
	static constexpr size_t stride = 64;
	static constexpr unsigned int per_page = 4096 / stride;
	static_assert(per_page == 64);

	DoorbellPool *pool_ = nullptr;
	Page *page_ = nullptr;
	unsigned int index_ = 0;
};

/* Allocates pages of records. A page without records in use is freed. */
class DoorbellPool
{
public:
	explicit DoorbellPool(struct device *dma_device)
	    : dma_device_(dma_device), lock_(KERN_LOCK_CLASS("mlx4.doorbells"))
	{
	}

	/* Errors: ENOMEM. May sleep. */
	kern::Result<DoorbellRecord> get()
	{
		kern::Guard guard(lock_);
		DoorbellRecord record;
		Page *page = pages_.front();
		if (!page || !page->free) {
			auto fresh = KERN_TRY(kern::make<Page>(kern::Gfp::kernel));
			fresh->buffer = KERN_TRY(
				kern::DmaBuffer::create(dma_device_, 4096, kern::Gfp::kernel));
			fresh->free = ~u64{0};
			page = fresh.release();
			pages_.push_front(*page);
		}
		record.index_ = static_cast<unsigned int>(__builtin_ctzll(page->free));
		page->free &= page->free - 1;
		record.page_ = page;
		record.pool_ = this;
		if (!page->free) {
			// Pages without free records are at the end of the list.
			Pages::remove(*page);
			pages_.push_back(*page);
		}
		__builtin_memset(record.address(), 0, DoorbellRecord::stride);
		return record;
	}

private:
	friend class DoorbellRecord;
	using Page = DoorbellRecord::Page;
	using Pages = kern::List<Page, &Page::node>;

	void put(Page *page, unsigned int index)
	{
		kern::Guard guard(lock_);
		page->free |= u64{1} << index;
		Pages::remove(*page);
		if (page->free == ~u64{0})
			kern::destroy(page);
		else
			pages_.push_front(*page);
	}

	struct device *dma_device_;
	kern::Mutex lock_;
	Pages pages_ KERN_GUARDED_BY(lock_);
};

inline DoorbellRecord::~DoorbellRecord()
{
	if (pool_)
		pool_->put(page_, index_);
}
inline u32 *DoorbellRecord::address() const
{
	return reinterpret_cast<u32 *>(page_->buffer.as<u8>() + index_ * stride);
}
inline u64 DoorbellRecord::bus_address() const
{
	return page_->buffer.address() + index_ * stride;
}

} // namespace mlx4
