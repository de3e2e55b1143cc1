// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "mr.hpp"
#include <hw/infinihost/contexts.hpp>
#include "hca.hpp"

namespace infinihost {

ProtectionEntry::~ProtectionEntry()
{
	if (commands_)
		kern::ignore(commands_->execute_closing({.opcode = wire::Opcode::hw2sw_mpt,
							 .in_modifier = number_.value(),
							 .op_modifier = 1,
							 .answer = Answer::at_once}));
}

kern::Result<ProtectionEntry> ProtectionEntry::create(Hca &hca, u32 pd, int access)
{
	using Entry = wire::MptEntry;
	ProtectionEntry made;
	made.number_ = TRY(Number::create(hca.mpts()));
	made.hold_ = TRY(IcmHold::create(hca.table(IcmRegion::mpt), made.number_.value()));

	auto mailbox = TRY(hca.commands().mailbox(Entry::size));
	u8 *const entry = mailbox.bytes();
	Entry::status.set(entry, wire::mpt_status::software);
	Entry::physical.set(entry, 1);
	Entry::region.set(entry, 1);
	Entry::local_read.set(entry, 1);
	Entry::local_write.set(entry, (access & IB_ACCESS_LOCAL_WRITE) != 0);
	Entry::remote_read.set(entry, (access & IB_ACCESS_REMOTE_READ) != 0);
	Entry::remote_write.set(entry, (access & IB_ACCESS_REMOTE_WRITE) != 0);
	Entry::remote_atomic.set(entry, (access & IB_ACCESS_REMOTE_ATOMIC) != 0);
	Entry::mem_key.set(entry, wire::mpt_key(made.key()));
	Entry::pd.set(entry, pd);
	Entry::length.set(entry, Entry::whole);
	TRY(hca.commands().execute_in(
		{.opcode = wire::Opcode::sw2hw_mpt, .in_modifier = made.number_.value(), .answer = Answer::at_once}, mailbox));
	made.commands_ = &hca.commands();
	return made;
}

kern::Result<> Mr::start_dma(int access)
{
	entry_ = TRY(ProtectionEntry::create(hca_, pd_number(verbs_.pd), access));
	verbs_.lkey = verbs_.rkey = entry_.key();
	return {};
}

} // namespace infinihost
