// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mr.hpp"
#include "family.hpp"
#include <hw/connectx/contexts.hpp>
#include <hw/connectx/wqe.hpp>

namespace connectx {

namespace {

using Entry = wire::MptEntry;

void set_access(u8 *entry, int access)
{
	Entry::local_read.set(entry, 1);
	Entry::local_write.set(entry, (access & IB_ACCESS_LOCAL_WRITE) != 0);
	Entry::remote_read.set(entry, (access & IB_ACCESS_REMOTE_READ) != 0);
	Entry::remote_write.set(entry, (access & IB_ACCESS_REMOTE_WRITE) != 0);
	Entry::remote_atomic.set(entry, (access & IB_ACCESS_REMOTE_ATOMIC) != 0);
	Entry::bind_enable.set(entry, (access & IB_ACCESS_MW_BIND) != 0);
}

} // namespace

kern::Result<ProtectionEntry> ProtectionEntry::create(Hca &hca)
{
	ProtectionEntry entry;
	entry.number_ = TRY(Number::create(hca.mpts()));
	entry.hold_ = TRY(IcmHold::create(hca.table(IcmRegion::dmpt), entry.number_.value()));
	entry.hca_ = &hca;
	return entry;
}

kern::Result<> ProtectionEntry::open(const u8 *entry)
{
	auto mailbox = TRY(hca_->commands().mailbox(Entry::size));
	__builtin_memcpy(mailbox.bytes(), entry, Entry::size);
	Entry::mem_key.set(mailbox.bytes(), wire::mpt_key(key()));
	TRY(hca_->commands().execute_in({.opcode = wire::Opcode::sw2hw_mpt, .in_modifier = number_.value(), .answer = Answer::at_once},
					mailbox));
	live_ = true;
	return {};
}

kern::Result<> ProtectionEntry::close()
{
	if (!live_)
		return {};
	// Windows may be bound to it. Any other refusal is the end of the card, which then knows no keys any more.
	const auto closed = hca_->commands().execute_closing(
		{.opcode = wire::Opcode::hw2sw_mpt, .in_modifier = number_.value(), .op_modifier = 1, .answer = Answer::at_once}, -EBUSY);
	if (!closed && closed.error() == -EBUSY)
		return kern::Error{-EBUSY};
	live_ = false;
	return {};
}

kern::Result<> Mr::start_dma(int access)
{
	u8 entry[Entry::size] = {};
	Entry::status.set(entry, wire::mpt_status::software);
	Entry::physical.set(entry, 1);
	Entry::region.set(entry, 1);
	set_access(entry, access);
	Entry::pd.set(entry, pd_number(verbs_.pd));
	Entry::length.set(entry, ~u64{0});
	entry_ = TRY(ProtectionEntry::create(hca_));
	TRY(entry_.open(entry));
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

kern::Result<> Mr::start_fast(u32 max_pages)
{
	if (max_pages == 0 || max_pages > max_fast_pages)
		return kern::Error{-EINVAL};
	const unsigned int order = kern::log2_ceil(max_pages);
	max_pages_ = max_pages;
	page_list_ = TRY(kern::DmaBuffer::create(hca_.dma_device(), kern::page_size, kern::Gfp::kernel));
	pages_ = TRY(MttRange::create(hca_.mtts(), order));

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
	entry_ = TRY(ProtectionEntry::create(hca_));
	TRY(entry_.open(entry));
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

kern::Result<> Mr::open_user(const UserPages &pages, u64 length, u64 iova, int access, ib_pd *pd)
{
	u8 entry[Entry::size] = {};
	Entry::status.set(entry, wire::mpt_status::software);
	Entry::region.set(entry, 1);
	set_access(entry, access);
	Entry::pd.set(entry, pd_number(pd));
	Entry::start.set(entry, iova);
	Entry::length.set(entry, length);
	Entry::mtt_offset.set(entry, pages.mtt_offset());
	Entry::entity_size.set(entry, pages.page_shift());
	return entry_.open(entry);
}

kern::Result<> Mr::start_user(u64 start, u64 length, u64 iova, int access)
{
	user_pages_ = TRY(UserPages::create(hca_, start, length, iova, ib_access_writable(access)));
	entry_ = TRY(ProtectionEntry::create(hca_));
	TRY(open_user(user_pages_, length, iova, access, verbs_.pd));
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
		fresh = TRY(UserPages::create(hca_, start, length, iova, ib_access_writable(access)));
	} else {
		length = verbs_.length;
		iova = verbs_.iova;
		// What the program may not write itself, nobody may.
		if (ib_access_writable(access) && !user_pages_.memory().writable())
			return kern::Error{-EPERM};
	}
	// From here on an error leaves a region that nothing can be done with.
	TRY(entry_.close());
	TRY(open_user(moves ? fresh : user_pages_, length, iova, access, flags & IB_MR_REREG_PD ? pd : verbs_.pd));
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
	Entry::status.set(entry, verbs_.type == IB_MW_TYPE_2 ? wire::mpt_status::free :
							       wire::mpt_status::software);
	Entry::pd.set(entry, pd_number(verbs_.pd));
	if (verbs_.type == IB_MW_TYPE_2) {
		Entry::fast_register_enable.set(entry, 1);
		Entry::remote_access_enable.set(entry, 1);
		Entry::invalidate_enable.set(entry, 1);
		Entry::remote_invalidate_enable.set(entry, 1);
	}
	entry_ = TRY(ProtectionEntry::create(hca_));
	TRY(entry_.open(entry));
	verbs_.rkey = entry_.key();
	return {};
}

} // namespace connectx
