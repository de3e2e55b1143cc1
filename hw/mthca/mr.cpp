// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mr.hpp"
#include <hw/mthca/contexts.hpp>
#include "hca.hpp"
#include "user_context.hpp"

namespace mthca
{

namespace
{

using Entry = wire::MptEntry;

kern::Result<ProtectionEntry> open_entry(Hca &hca, const u8 *entry)
{
	auto made = KERN_TRY(
		ProtectionEntry::create(hca.commands(), hca.mpts(), hca.table(IcmRegion::mpt)));
	KERN_TRY(made.open(entry));
	return made;
}

} // namespace

kern::Result<ProtectionEntry> open_all_memory(Hca &hca, u32 pd, int access)
{
	u8 entry[Entry::size] = {};
	put_all_memory(entry, pd, access);
	return open_entry(hca, entry);
}

kern::Result<> Mr::start_dma(int access)
{
	entry_ = KERN_TRY(open_all_memory(hca_, pd(), access));
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

kern::Result<> Mr::start_user(UserContext *context, u64 start, u64 length, u64 iova, int access)
{
	pages_ = KERN_TRY(UserPages::create(hca_.dma_device(), hca_.mtts(), start, length, iova,
					    ib_access_writable(access)));
	u8 entry[Entry::size] = {};
	put_region(entry, pd(), access);
	Entry::start.set(entry, iova);
	Entry::length.set(entry, length);
	Entry::log_page_size.set(entry, pages_.page_shift() - 12);
	Entry::mtt_address.set(entry, hca_.layout()[IcmRegion::mtt].base + pages_.mtt_offset());
	entry_ = KERN_TRY(open_entry(hca_, entry));
	verbs_.lkey = verbs_.rkey = entry_.key();
	if (context)
		allow_queues(*context);
	return {};
}

void Mr::allow_queues(UserContext &context)
{
	context_ = &context;
	context.add(*this);
}

kern::Result<> Mr::stop()
{
	if (context_)
		KERN_TRY(context_->remove(*this));
	context_ = nullptr;
	return entry_.close();
}

} // namespace mthca
