// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Allocates doorbell records, which contain the index up to which a queue has been filled or read.
 * Each user access region has a table of records in ICM, and objects refer to records by index. The
 * card may scan the records to which doorbells refer (armed CQs, send queues) from the start of the
 * table, and the others from its end. A separator record lies between the two groups.
 * (Documentation/infinihost.rst, "Doorbell records")
 */
#pragma once
#include <kern/memory.hpp>
#include "family.hpp"

namespace mthca
{

class Records;

/* A record, initially zero except for its type and number. */
class Record
{
public:
	Record() = default;
	Record(Record &&other) noexcept
	    : words_(std::exchange(other.words_, nullptr)), index_(std::move(other.index_))
	{
	}
	Record &operator=(Record &&other) noexcept
	{
		std::swap(words_, other.words_);
		index_ = std::move(other.index_);
		return *this;
	}
	~Record()
	{
		if (words_)
			store(words_, 0, 0);
	}

	u32 index() const { return index_.value(); }
	/*
	 * Returns the words of the record in the card's byte order: the counter, and the other
	 * fields.
	 */
	u32 *words() const { return words_; }

private:
	friend class Records;
	static void store(u32 *words, u32 counter, u32 rest)
	{
		__atomic_store_n(words, __builtin_bswap32(counter), __ATOMIC_RELAXED);
		__atomic_store_n(words + 1, __builtin_bswap32(rest), __ATOMIC_RELAXED);
	}

	u32 *words_ = nullptr;
	Number index_;
};

/* Allocates doorbell records in the kernel's own region. */
class Records
{
public:
	/*
	 * Allocates the tables. table: the ICM table of record pages; first_page, log_pages: the
	 * kernel region's part of it. May sleep. Errors: ENOMEM, those of commands.
	 */
	static kern::Result<kern::Owned<Records>> create(IcmTable &table, u32 first_page,
							 u32 log_pages);

	/*
	 * Allocates a record. type: wire::record_type; number: the queue's number. Errors: ENOSPC.
	 * Context: any.
	 */
	kern::Result<Record> get(u32 type, u32 number);

private:
	static constexpr u32 per_page = wire::uar::page_size / wire::DoorbellRecord::size;

	Records(IcmTable &table, u32 first_page) : table_(table), first_page_(first_page) {}
	u32 *words(u32 index) const
	{
		return reinterpret_cast<u32 *>(table_.entry(first_page_ + index / per_page) +
					       index % per_page * wire::DoorbellRecord::size);
	}

	IcmTable &table_;
	u32 first_page_;
	IcmHold pages_;
	kern::Owned<NumberAllocator> rung_, read_;
};

} // namespace mthca
