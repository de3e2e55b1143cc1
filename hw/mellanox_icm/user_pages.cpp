// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "user_pages.hpp"
#include <kern/user.hpp>

namespace mellanox_icm
{

kern::Result<UserPages> UserPages::create(struct device *dma_device, MttTable &mtts, u64 start,
					  u64 length, u64 iova, bool must_write)
{
	UserPages pages;
	pages.memory_ = KERN_TRY(kern::UserMemory::create(dma_device, start, length, must_write));
	pages.page_shift_ = pages.memory_.page_shift_for(iova, max_page_shift);
	const u64 count =
		((iova + length - 1) >> pages.page_shift_) - (iova >> pages.page_shift_) + 1;
	if (count > mtts.entries.size())
		return kern::Error{-ENOMEM};
	pages.mtt_ = KERN_TRY(
		MttRange::create_for_program(mtts, kern::log2_ceil(count), kern_current_user()));
	MttRange::Writer entries(pages.mtt_);
	pages.memory_.for_each_page(iova, pages.page_shift_,
				    [&](u64 address) { entries.write(address); });
	kern_assert(entries.next() == count);
	return pages;
}

} // namespace mellanox_icm
