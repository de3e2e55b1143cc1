// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "user_queue.hpp"

namespace connectx {

kern::Result<UserPages> UserPages::create(Hca &hca, u64 start, u64 length, u64 iova, bool must_write)
{
	UserPages pages;
	pages.memory_ = TRY(kern::UserMemory::create(hca.dma_device(), start, length, must_write));
	pages.page_shift_ = pages.memory_.page_shift_for(iova, max_page_shift);
	const u64 count = ((iova + length - 1) >> pages.page_shift_) - (iova >> pages.page_shift_) + 1;
	if (count > hca.mtts().entries.size())
		return kern::Error{-ENOMEM};
	pages.mtt_ = TRY(MttRange::create(hca.mtts(), kern::log2_ceil(count)));
	u32 index = 0;
	pages.memory_.for_each_page(iova, pages.page_shift_, [&](u64 address) { pages.mtt_.write(index++, address); });
	kern_assert(index == count);
	return pages;
}

kern::Result<UserPages> UserQueue::make_pages(Hca &hca, u64 address, u64 bytes, bool must_write)
{
	// The card counts from the beginning of a page.
	if (address % kern::page_size)
		return kern::Error{-EINVAL};
	return UserPages::create(hca, address, bytes, 0, must_write);
}

kern::Result<UserQueue> UserQueue::create(Hca &hca, UserContext &context, u64 address, u64 bytes, u64 doorbell,
					  u32 doorbell_bytes, bool must_write)
{
	UserQueue queue;
	queue.uar_page_ = context.uar_page();
	if (bytes)
		queue.pages_ = TRY(make_pages(hca, address, bytes, must_write));
	if (doorbell_bytes)
		queue.doorbell_ = TRY(UserDoorbell::create(context, doorbell, doorbell_bytes));
	return queue;
}

} // namespace connectx
