// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages one table of contexts in ICM, the card's context memory. Only the parts whose entries are
// in use are backed by host memory.
#pragma once
#include <kern/lock.hpp>
#include "page_area.hpp"

namespace mellanox_icm
{

/* The position of a table in the card's own address space (ICM). */
struct IcmExtent {
	u64 base;
	u32 entry_bytes;
	u32 log_entries;

	u64 bytes() const { return u64{entry_bytes} << log_entries; }
};

/*
 * Grows and shrinks in chunks: a chunk is mapped while one of its entries is in use. The chunks of
 * the first `reserved` entries, which belong to the card, are mapped as long as the table exists.
 * The last chunk that became unused stays mapped, so that repeatedly creating and destroying an
 * object maps memory only once.
 */
class IcmTable
{
public:
	static constexpr size_t chunk_bytes = 256 * 1024;

	/* Maps the reserved entries. May sleep. Errors: ENOMEM, those of commands. */
	static kern::Result<kern::Owned<IcmTable>> create(CommandInterface &commands,
							  struct device *dma_device,
							  const IcmExtent &extent, u32 reserved);
	/* Unmaps all chunks. The card does not use the entries any more. */
	~IcmTable();

	/*
	 * Ensures that entries first .. first + count - 1 have memory. Errors: ENOMEM, those of
	 * commands. May sleep.
	 */
	kern::Result<> get(u32 first, u32 count = 1);
	void put(u32 first, u32 count = 1);

	/* Returns the CPU's address of an entry that is in use. */
	u8 *entry(u32 index) const { return entries_from(index).data(); }
	/*
	 * Like entry(), but returns all memory from this entry to the end of the contiguous block,
	 * including entries that are not in use.
	 */
	std::span<u8> entries_from(u32 index) const;

	/* Returns the amount of host memory in use, for debugfs. */
	size_t resident_bytes() const { return resident_.load_relaxed(); }

private:
	struct Chunk {
		PageArea area;
		u32 users = 0;
	};

	IcmTable(CommandInterface &commands, struct device *dma_device, const IcmExtent &extent);

	kern::Result<> get_chunk(u32 index) KERN_REQUIRES(lock_);
	void put_chunk(u32 index) KERN_REQUIRES(lock_);
	void unmap(Chunk &chunk) KERN_REQUIRES(lock_);
	u32 chunk_of(u32 entry) const { return entry >> log_entries_per_chunk_; }

	CommandInterface &commands_;
	struct device *dma_device_;
	IcmExtent extent_;
	u32 log_entries_per_chunk_;
	u32 reserved_ = 0;
	kern::Mutex lock_;
	kern::OwnedArray<Chunk> chunks_;
	/* A mapped chunk that is not in use, or nullptr. */
	Chunk *spare_ KERN_GUARDED_BY(lock_) = nullptr;
	kern::Atomic<size_t> resident_{0};
};

/* Keeps the chunks of an object's entries mapped until it is destroyed. */
class IcmHold
{
public:
	IcmHold() = default;
	static kern::Result<IcmHold> create(IcmTable &table, u32 first, u32 count = 1)
	{
		KERN_TRY(table.get(first, count));
		return IcmHold(table, first, count);
	}
	IcmHold(IcmHold &&other) noexcept
	    : table_(std::exchange(other.table_, nullptr)), first_(other.first_),
	      count_(other.count_)
	{
	}
	IcmHold &operator=(IcmHold &&other) noexcept
	{
		std::swap(table_, other.table_);
		std::swap(first_, other.first_);
		std::swap(count_, other.count_);
		return *this;
	}
	~IcmHold()
	{
		if (table_)
			table_->put(first_, count_);
	}

private:
	IcmHold(IcmTable &table, u32 first, u32 count)
	    : table_(&table), first_(first), count_(count)
	{
	}

	IcmTable *table_ = nullptr;
	u32 first_ = 0;
	u32 count_ = 0;
};

} // namespace mellanox_icm
