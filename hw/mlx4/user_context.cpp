// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "user_context.hpp"
#include "user_abi.hpp"

namespace mlx4
{

UserContext::UserContext(Hca &hca, ib_ucontext &)
    : hca_(hca), lock_(KERN_LOCK_CLASS("mlx4.user_context"))
{
}

kern::Result<> UserContext::start(ib_udata &udata)
{
	page_ = KERN_TRY(DoorbellPage::create(hca_.uars()));
	const user_abi::ContextResponse response{
		.qp_table_size = hca_.qp_mask() + 1,
		.blueflame_register_bytes = 0,
		.blueflame_registers_per_page = 0,
	};
	return kern::check(ib_copy_to_udata(&udata, &response, sizeof(response)));
}

kern::Result<UserDoorbell> UserDoorbell::create(UserContext &context, u64 address, u32 size)
{
	if (address % size)
		return kern::Error{-EINVAL};
	const u64 start = address & ~u64{kern::page_size - 1};
	kern::Guard guard(context.lock_);
	Page *page = nullptr;
	for (Page &known : context.doorbell_pages_)
		if (known.memory.start() == start && known.memory.of_caller())
			page = &known;
	if (!page) {
		auto fresh = KERN_TRY(kern::make<Page>(kern::Gfp::kernel));
		fresh->memory = KERN_TRY(kern::UserMemory::create(context.hca_.dma_device(), start,
								  kern::page_size, false));
		page = fresh.release();
		context.doorbell_pages_.push_back(*page);
	}
	page->users++;
	UserDoorbell record;
	record.context_ = &context;
	record.page_ = page;
	page->memory.for_each([&](u64 bus, u64) {
		record.bus_address_ = bus + address % kern::page_size;
		return false;
	});
	return record;
}

UserDoorbell::~UserDoorbell()
{
	if (!context_)
		return;
	kern::Guard guard(context_->lock_);
	if (--page_->users)
		return;
	page_->node.unlink();
	kern::destroy(page_);
}

} // namespace mlx4
