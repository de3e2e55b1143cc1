// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "user_queue.hpp"

namespace mlx4
{

kern::Result<UserPages> UserQueue::make_pages(Hca &hca, u64 address, u64 bytes, bool must_write)
{
	// Positions in a queue are relative to the start of a page.
	if (address % kern::page_size)
		return kern::Error{-EINVAL};
	return UserPages::create(hca.dma_device(), hca.mtts(), address, bytes, 0, must_write);
}

kern::Result<UserQueue> UserQueue::create(Hca &hca, UserContext &context, u64 address, u64 bytes,
					  u64 doorbell, u32 doorbell_bytes, bool must_write)
{
	UserQueue queue;
	queue.uar_page_ = context.uar_page();
	if (bytes)
		queue.pages_ = KERN_TRY(make_pages(hca, address, bytes, must_write));
	if (doorbell_bytes)
		queue.doorbell_ = KERN_TRY(UserDoorbell::create(context, doorbell, doorbell_bytes));
	return queue;
}

} // namespace mlx4
