// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mr.hpp"
#include "family.hpp"
#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/wqe.hpp>

namespace mlx4
{

namespace
{

using Entry = wire::MptEntry;

} // namespace

kern::Result<> Mr::start_dma(int access)
{
	u8 entry[Entry::size] = {};
	put_all_memory(entry, pd_number(verbs_.pd), access);
	entry_ = KERN_TRY(make_entry());
	KERN_TRY(entry_.open(entry));
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

kern::Result<> Mr::start_fast(u32 max_pages)
{
	if (max_pages == 0 || max_pages > max_fast_pages)
		return kern::Error{-EINVAL};
	const unsigned int order = kern::log2_ceil(max_pages);
	max_pages_ = max_pages;
	page_list_ = KERN_TRY(
		kern::DmaBuffer::create(hca_.dma_device(), kern::page_size, kern::Gfp::kernel));
	pages_ = KERN_TRY(MttRange::create(hca_.mtts(), order));

	u8 entry[Entry::size] = {};
	Entry::status.set(entry, wire::mpt_status::free);
	Entry::region.set(entry, 1);
	Entry::pd.set(entry, pd_number(verbs_.pd));
	Entry::remote_access_enable.set(entry, 1);
	Entry::fast_register_enable.set(entry, 1);
	Entry::invalidate_enable.set(entry, 1);
	Entry::remote_invalidate_enable.set(entry, 1);
	Entry::mtt_offset.set(entry, pages_.offset());
	Entry::mtt_size.set(entry, pages_.entries());
	entry_ = KERN_TRY(make_entry());
	KERN_TRY(entry_.open(entry));
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

kern::Result<> Mr::open_user(const UserPages &pages, u64 length, u64 iova, int access, ib_pd *pd)
{
	u8 entry[Entry::size] = {};
	put_region(entry, pd_number(pd), access);
	Entry::start.set(entry, iova);
	Entry::length.set(entry, length);
	Entry::mtt_offset.set(entry, pages.mtt_offset());
	Entry::entity_size.set(entry, pages.page_shift());
	return entry_.open(entry);
}

kern::Result<> Mr::start_user(UserContext *, u64 start, u64 length, u64 iova, int access)
{
	user_pages_ = KERN_TRY(UserPages::create(hca_.dma_device(), hca_.mtts(), start, length,
						 iova, ib_access_writable(access)));
	entry_ = KERN_TRY(make_entry());
	KERN_TRY(open_user(user_pages_, length, iova, access, verbs_.pd));
	access_ = access;
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

kern::Result<> Mr::change_user(int flags, u64 start, u64 length, u64 iova, int access, ib_pd *pd)
{
	const bool moves = flags & IB_MR_REREG_TRANS;
	if (!(flags & IB_MR_REREG_ACCESS))
		access = access_;
	UserPages fresh;
	if (moves) {
		fresh = KERN_TRY(UserPages::create(hca_.dma_device(), hca_.mtts(), start, length,
						   iova, ib_access_writable(access)));
	} else {
		length = verbs_.length;
		iova = verbs_.iova;
		// A program must not get write access to memory that it may not write itself.
		if (ib_access_writable(access) && !user_pages_.memory().writable())
			return kern::Error{-EPERM};
	}
	// From here on, an error leaves a region that can only be deregistered.
	KERN_TRY(entry_.close());
	KERN_TRY(open_user(moves ? fresh : user_pages_, length, iova, access,
			   flags & IB_MR_REREG_PD ? pd : verbs_.pd));
	if (moves)
		user_pages_ = std::move(fresh);
	access_ = access;
	return {};
}

int Mr::map(const ib_dma_segment *segments, int count, unsigned int *offset)
{
	mapped_ = 0;
	return ib_sg_to_pages(&verbs_, segments, count, offset, [](ib_mr *verbs, u64 page) -> int {
		Mr &mr = of(verbs);
		if (mr.mapped_ == mr.max_pages_)
			return -ENOMEM;
		mr.page_list_.as<wire::PageListEntry>()[mr.mapped_++].word =
			page | wire::PageListEntry::present;
		return 0;
	});
}

kern::Result<> Mw::start()
{
	u8 entry[Entry::size] = {};
	Entry::status.set(entry, verbs_.type == IB_MW_TYPE_2 ? wire::mpt_status::free
							     : wire::mpt_status::software);
	Entry::pd.set(entry, pd_number(verbs_.pd));
	if (verbs_.type == IB_MW_TYPE_2) {
		Entry::fast_register_enable.set(entry, 1);
		Entry::remote_access_enable.set(entry, 1);
		Entry::invalidate_enable.set(entry, 1);
		Entry::remote_invalidate_enable.set(entry, 1);
	}
	entry_ = KERN_TRY(
		ProtectionEntry::create(hca_.commands(), hca_.mpts(), hca_.table(IcmRegion::dmpt)));
	KERN_TRY(entry_.open(entry));
	verbs_.rkey = entry_.key();
	return {};
}

} // namespace mlx4
