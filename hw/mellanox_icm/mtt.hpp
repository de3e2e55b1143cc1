// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates and writes page lists (MTTs), and allocates queue buffers that page lists describe to
// the card.
#pragma once
#include <ib/endian.hpp>
#include <kern/dma.hpp>
#include <kern/shares.hpp>
#include <hw/mellanox_icm/commands.hpp>
#include "buddy.hpp"
#include "icm_table.hpp"

namespace mellanox_icm
{

/*
 * Returns log2 of the number of entries for page lists on a host with @host_pages of memory, at
 * most @log_limit. The factor of four allows all memory to be registered twice, and one user gets
 * half of the table. Unused entries cost no memory. Context: any.
 */
u32 log_mtts_for(u64 host_pages, u32 log_limit);

/* The table from which page lists are allocated. */
struct MttTable {
	MttTable(IcmTable &its_icm, Buddy &its_entries, unsigned int its_least_order)
	    : icm(its_icm), entries(its_entries), least_order(its_least_order),
	      for_programs(its_entries.size(), -EDQUOT, KERN_LOCK_CLASS("mellanox.page_shares"))
	{
	}

	IcmTable &icm;
	Buddy &entries;
	/* The smallest list that the firmware supports, as a power of two. */
	unsigned int least_order;
	/*
	 * If the table is large enough (log_mtts_for()), RLIMIT_MEMLOCK is reached before this
	 * limit.
	 */
	kern::SharedPool for_programs;
};

/* A page list of 2^order consecutive entries, at least the firmware's minimum. */
class MttRange
{
public:
	MttRange() = default;
	/* Errors: ENOSPC, ENOMEM, those of commands. May sleep. */
	static kern::Result<MttRange> create(MttTable &table, unsigned int order);
	/*
	 * Creates a list for memory of a program, charged to its user. Programs together, including
	 * those of root, leave a sixteenth of the table to the kernel's queues and keys. Errors:
	 * those of create(), EDQUOT.
	 */
	static kern::Result<MttRange> create_for_program(MttTable &table, unsigned int order,
							 const kern_user &user);
	MttRange(MttRange &&other) noexcept
	    : table_(std::exchange(other.table_, nullptr)), charge_(std::move(other.charge_)),
	      hold_(std::move(other.hold_)), first_(other.first_), order_(other.order_)
	{
	}
	MttRange &operator=(MttRange &&other) noexcept
	{
		std::swap(table_, other.table_);
		charge_ = std::move(other.charge_);
		hold_ = std::move(other.hold_);
		std::swap(first_, other.first_);
		std::swap(order_, other.order_);
		return *this;
	}
	~MttRange();

	void write(u32 index, u64 bus_address) { Writer(*this, index).write(bus_address); }
	/* Writes entries in order. */
	class Writer
	{
	public:
		explicit Writer(MttRange &range, u32 first = 0) : range_(range), next_(first) {}
		void write(u64 bus_address)
		{
			if (run_.empty())
				run_ = range_.table_->icm.entries_from(range_.first_ + next_);
			const u64 raw =
				ib::be64(bus_address | hw::mellanox_icm::MttEntry::present).raw();
			__atomic_store_n(reinterpret_cast<u64 *>(run_.data()), raw,
					 __ATOMIC_RELAXED);
			run_ = run_.subspan(hw::mellanox_icm::MttEntry::size);
			next_++;
		}
		u32 next() const { return next_; }

	private:
		MttRange &range_;
		u32 next_;
		std::span<u8> run_;
	};
	/* The list's position in the format of contexts: bytes from the start of the table. */
	u64 offset() const { return u64{first_} * hw::mellanox_icm::MttEntry::size; }
	u32 entries() const { return 1u << order_; }

private:
	static kern::Result<MttRange> create(MttTable &table, unsigned int order, u32 keep);

	MttTable *table_ = nullptr;
	/* Charged to the user, for memory of a program. */
	kern::Charge charge_;
	IcmHold hold_;
	u32 first_ = 0;
	unsigned int order_ = 0;
};

/*
 * The memory of a queue: one contiguous block. One entry, whose page is as large as the block,
 * describes it to the card, and the CPU finds a slot by a shift and an addition.
 */
class QueueBuffer
{
public:
	QueueBuffer() = default;
	QueueBuffer(QueueBuffer &&) = default;
	QueueBuffer &operator=(QueueBuffer &&) = default;
	/*
	 * Allocates zeroed memory of at least `bytes`, which is at most max_bytes. Errors: ENOMEM,
	 * EINVAL, those of MttRange. May sleep.
	 */
	static kern::Result<QueueBuffer> create(struct device *dma_device, MttTable &table,
						size_t bytes);

	static constexpr size_t max_bytes = 4 << 20;

	u8 *address() const { return memory_.as<u8>(); }
	/* For contexts: log2 of the page size, minus 12, and the offset of the page list. */
	u32 log_page_size() const { return log_bytes_ - 12; }
	u64 mtt_offset() const { return mtt_.offset(); }
	size_t size() const { return size_t{1} << log_bytes_; }

private:
	kern::DmaBuffer memory_;
	MttRange mtt_;
	unsigned int log_bytes_ = 0;
};

} // namespace mellanox_icm
