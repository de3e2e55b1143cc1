// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mtt.hpp"

namespace mellanox_icm
{

u32 log_mtts_for(u64 host_pages, u32 log_limit)
{
	constexpr u32 least = 20;
	const u32 limit = log_limit < Buddy::max_order ? log_limit : Buddy::max_order;
	u32 log = least;

	while (log < limit && u64{1} << log < 4 * host_pages)
		log++;
	return log < limit ? log : limit;
}

kern::Result<MttRange> MttRange::create(MttTable &table, unsigned int order)
{
	return create(table, order, 0);
}

kern::Result<MttRange> MttRange::create_for_program(MttTable &table, unsigned int order,
						    const kern_user &user)
{
	if (order < table.least_order)
		order = table.least_order;
	if (order > Buddy::max_order)
		return kern::Error{-ENOSPC};
	auto charge = KERN_TRY(table.for_programs.take(user, 1u << order));
	auto range = KERN_TRY(create(table, order, table.entries.size() / 16));
	range.charge_ = std::move(charge);
	return range;
}

kern::Result<MttRange> MttRange::create(MttTable &table, unsigned int order, u32 keep)
{
	MttRange range;
	if (order < table.least_order)
		order = table.least_order;
	range.first_ = KERN_TRY(table.entries.allocate(order, keep));
	range.order_ = order;
	range.table_ = &table;
	range.hold_ = KERN_TRY(IcmHold::create(table.icm, range.first_, 1u << order));
	return range;
}

MttRange::~MttRange()
{
	if (table_)
		table_->entries.free(first_, order_);
}

kern::Result<QueueBuffer> QueueBuffer::create(struct device *dma_device, MttTable &table,
					      size_t bytes)
{
	QueueBuffer buffer;
	if (bytes > max_bytes)
		return kern::Error{-EINVAL};
	buffer.log_bytes_ = bytes <= 4096 ? 12 : kern::log2_ceil(bytes);
	// The kernel's coherent blocks are aligned to their size, rounded up to a power of two of
	// pages.
	buffer.memory_ =
		KERN_TRY(kern::DmaBuffer::create(dma_device, size_t{1} << buffer.log_bytes_,
						 kern::Gfp::kernel | kern::Gfp::no_warn));
	const u64 bus = buffer.memory_.address();
	if (KERN_WARN_ON(bus & (buffer.size() - 1)))
		return kern::Error{-EIO};
	buffer.mtt_ = KERN_TRY(MttRange::create(table, 0));
	buffer.mtt_.write(0, bus);
	return buffer;
}

} // namespace mellanox_icm
