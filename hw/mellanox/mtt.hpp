// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Page lists (MTTs), and the queue buffers that the card finds through them.
#pragma once
#include <ib/endian.hpp>
#include <kern/dma.hpp>
#include <kern/shares.hpp>
#include <hw/mellanox/commands.hpp>
#include "buddy.hpp"
#include "icm_table.hpp"

namespace mellanox
{

/* What one user's programs have of the page lists, by all the files that he has open. */
class PageShare : public kern::UserShare
{
public:
	explicit PageShare(u32 its_user) : UserShare(its_user) {}
	bool idle() const { return entries.taken() == 0; }

	/* A quarter of the table. */
	kern::Budget entries{1u << 18, -EDQUOT};
};

/* Where page lists come from. */
struct MttTable {
	IcmTable &icm;
	Buddy &entries;
	/* The smallest run that the firmware knows, as a power of two. */
	unsigned int least_order = 0;
	kern::Shares<PageShare> users{KERN_LOCK_CLASS("mellanox.page_shares")};
};

/* A run of 2^order entries, or of the least that there is. */
class MttRange
{
public:
	MttRange() = default;
	/* Errors: ENOSPC, ENOMEM, those of commands. May sleep. */
	static kern::Result<MttRange> create(MttTable &table, unsigned int order);
	/*
	 * For memory of a program of that user's, from his share. All together leave a sixteenth of
	 * the table, for queues and keys of the kernel. Errors: EDQUOT, too.
	 */
	static kern::Result<MttRange> create_for_program(MttTable &table, unsigned int order,
							 u32 user);
	MttRange(MttRange &&other) noexcept
	    : table_(std::exchange(other.table_, nullptr)), share_(std::move(other.share_)),
	      hold_(std::move(other.hold_)), first_(other.first_), order_(other.order_)
	{
	}
	MttRange &operator=(MttRange &&other) noexcept
	{
		std::swap(table_, other.table_);
		share_ = std::move(other.share_);
		hold_ = std::move(other.hold_);
		std::swap(first_, other.first_);
		std::swap(order_, other.order_);
		return *this;
	}
	~MttRange();

	void write(u32 index, u64 bus_address) { Writer(*this, index).write(bus_address); }
	/* One entry after the other. */
	class Writer
	{
	public:
		explicit Writer(MttRange &range, u32 first = 0) : range_(range), next_(first) {}
		void write(u64 bus_address)
		{
			if (run_.empty())
				run_ = range_.table_->icm.entries_from(range_.first_ + next_);
			const u64 raw =
				ib::be64(bus_address | hw::mellanox::MttEntry::present).raw();
			__atomic_store_n(reinterpret_cast<u64 *>(run_.data()), raw,
					 __ATOMIC_RELAXED);
			run_ = run_.subspan(hw::mellanox::MttEntry::size);
			next_++;
		}
		u32 next() const { return next_; }

	private:
		MttRange &range_;
		u32 next_;
		std::span<u8> run_;
	};
	/* How contexts name it: bytes from the start of the table. */
	u64 offset() const { return u64{first_} * hw::mellanox::MttEntry::size; }
	u32 entries() const { return 1u << order_; }

private:
	static kern::Result<MttRange> create(MttTable &table, unsigned int order, u32 keep);

	MttTable *table_ = nullptr;
	/* Of the user's, if he is a program's. */
	kern::Portion share_;
	IcmHold hold_;
	u32 first_ = 0;
	unsigned int order_ = 0;
};

/*
 * The memory of a queue: one contiguous block, so that one entry with a page as large as the block
 * describes it and the CPU reaches any slot by a shift and an addition.
 */
class QueueBuffer
{
public:
	QueueBuffer() = default;
	QueueBuffer(QueueBuffer &&) = default;
	QueueBuffer &operator=(QueueBuffer &&) = default;
	/*
	 * bytes: as they are needed; at most max_bytes. Zeroed. Errors: ENOMEM, EINVAL, those of
	 * MttRange. May sleep.
	 */
	static kern::Result<QueueBuffer> create(struct device *dma_device, MttTable &table,
						size_t bytes);

	static constexpr size_t max_bytes = 4 << 20;

	u8 *address() const { return memory_.as<u8>(); }
	/* For the contexts: log2 of the page size, less 12, and the MTT offset. */
	u32 log_page_size() const { return log_bytes_ - 12; }
	u64 mtt_offset() const { return mtt_.offset(); }
	size_t size() const { return size_t{1} << log_bytes_; }

private:
	kern::DmaBuffer memory_;
	MttRange mtt_;
	unsigned int log_bytes_ = 0;
};

} // namespace mellanox
