// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "records.hpp"

namespace mthca
{

namespace
{

u32 describe(u32 type, u32 number)
{
	return wire::DoorbellRecord::number.in(number) | wire::DoorbellRecord::type.in(type);
}

} // namespace

kern::Result<kern::Owned<Records>> Records::create(IcmTable &table, u32 first_page, u32 log_pages)
{
	auto records = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Records(table, first_page)));
	records->pages_ = KERN_TRY(IcmHold::create(table, first_page, 1u << log_pages));
	const u32 count = per_page << log_pages;
	const u32 separator = count / 2;
	records->rung_ = KERN_TRY(NumberAllocator::create(0, separator));
	records->read_ = KERN_TRY(NumberAllocator::create(separator + 1, count));
	Record::store(records->words(separator), 0, describe(wire::record_type::separator, 0));
	return records;
}

kern::Result<Record> Records::get(u32 type, u32 number)
{
	const bool rung =
		type == wire::record_type::cq_arm || type == wire::record_type::send_queue;
	Record record;
	record.index_ = KERN_TRY(Number::create(rung ? *rung_ : *read_));
	record.words_ = words(record.index_.value());
	Record::store(record.words_, 0, describe(type, number));
	return record;
}

} // namespace mthca
