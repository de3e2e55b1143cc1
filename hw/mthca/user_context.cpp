// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "user_context.hpp"
#include "user_abi.hpp"

namespace mthca
{

namespace
{

constexpr u32 records_per_page = wire::uar::page_size / wire::DoorbellRecord::size;

/* The card's pages of records are pages of the program. */
static_assert(wire::uar::page_size == kern::page_size);

} // namespace

UserContext::UserContext(Hca &hca, ib_ucontext &)
    : hca_(hca), lock_(KERN_LOCK_CLASS("mthca.user_records")),
      regions_lock_(KERN_LOCK_CLASS("mthca.user_regions"))
{
}

kern::Result<> UserContext::start(ib_udata &udata)
{
	const u32 pages = 1u << hca_.layout().log_uarc_pages;
	const u32 bytes = pages << kern::page_shift;
	page_ = KERN_TRY(DoorbellPage::create(hca_.uars()));
	auto records = KERN_TRY(kern::make_array<Page>(kern::Gfp::kernel, pages));
	{
		kern::Guard guard(lock_);
		record_pages_ = std::move(records);
	}
	const user_abi::ContextResponse response{
		.qp_table_size = hca_.qp_mask() + 1,
		.record_table_bytes = bytes,
	};
	return kern::check(ib_copy_to_udata(&udata, &response, sizeof(response)));
}

u64 UserContext::icm_address(u32 page) const
{
	const IcmLayout &layout = hca_.layout();
	return layout[IcmRegion::uarc].base +
	       ((u64{uar_page()} << layout.log_uarc_pages) + page) * wire::uar::page_size;
}

void UserContext::add(Mr &mr)
{
	kern::Guard guard(regions_lock_);
	regions_.push_back(mr);
}

kern::Result<> UserContext::remove(Mr &mr)
{
	kern::Guard guard(regions_lock_);
	if (mr.queues)
		return kern::Error{-EBUSY};
	mr.node.unlink();
	return {};
}

kern::Result<UserRecord> UserRecord::create(UserContext &context, u64 page_address, u32 index)
{
	kern::Guard guard(context.lock_);
	const u32 number = index / records_per_page;
	if (page_address % kern::page_size || number >= context.record_pages_.size())
		return kern::Error{-EINVAL};
	UserContext::Page &page = context.record_pages_[number];
	if (page.users) {
		// After a fork(), two processes may have the context. The page must be that of the
		// same process.
		if (page.memory.start() != page_address || !page.memory.of_caller())
			return kern::Error{-EINVAL};
	} else {
		auto memory = KERN_TRY(kern::UserMemory::create(
			context.hca_.dma_device(), page_address, kern::page_size, false));
		u64 bus = 0;
		memory.for_each([&](u64 address, u64) {
			bus = address;
			return false;
		});
		KERN_TRY(map_program_page(context.hca_.commands(), context.icm_address(number),
					  bus));
		page.memory = std::move(memory);
	}
	page.users++;
	UserRecord record;
	record.context_ = &context;
	record.index_ = index;
	return record;
}

UserRecord::~UserRecord()
{
	if (!context_)
		return;
	kern::Guard guard(context_->lock_);
	const u32 number = index_ / records_per_page;
	UserContext::Page &page = context_->record_pages_[number];
	if (--page.users)
		return;
	unmap_program_page(context_->hca_.commands(), context_->icm_address(number));
	page.memory = {};
}

kern::Result<UserRegion> UserRegion::create(UserContext &context, u32 lkey, u32 pdn)
{
	kern::Guard guard(context.regions_lock_);
	for (Mr &mr : context.regions_) {
		if (mr.key() != lkey || mr.pd() != pdn)
			continue;
		mr.queues++;
		UserRegion region;
		region.mr_ = &mr;
		return region;
	}
	return kern::Error{-EINVAL};
}

UserRegion::~UserRegion()
{
	if (!mr_)
		return;
	kern::Guard guard(mr_->context()->regions_lock_);
	mr_->queues--;
}

} // namespace mthca
