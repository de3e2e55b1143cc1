// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "protection_entry.hpp"

namespace mellanox_icm
{

using Entry = hw::mellanox_icm::MptEntry;
using hw::mellanox_icm::Opcode;

kern::Result<ProtectionEntry> ProtectionEntry::create(CommandInterface &commands,
						      NumberAllocator &numbers, IcmTable &table)
{
	ProtectionEntry entry;
	entry.number_ = KERN_TRY(Number::create(numbers));
	entry.hold_ = KERN_TRY(IcmHold::create(table, entry.number_.value()));
	entry.commands_ = &commands;
	return entry;
}

kern::Result<> ProtectionEntry::open(const u8 *entry)
{
	auto mailbox = KERN_TRY(commands_->mailbox(Entry::size));
	__builtin_memcpy(mailbox.bytes(), entry, Entry::size);
	Entry::mem_key.set(mailbox.bytes(), hw::mellanox_icm::mpt_key(key()));
	KERN_TRY(commands_->execute_in({.opcode = Opcode::sw2hw_mpt,
					.in_modifier = number_.value(),
					.answer = Answer::at_once},
				       mailbox));
	live_ = true;
	return {};
}

kern::Result<> ProtectionEntry::close()
{
	if (!live_)
		return {};
	// If windows are bound to the region, it remains. After any other refusal the card counts
	// as failed, and cannot use the key any more.
	const auto closed = commands_->execute_closing({.opcode = Opcode::hw2sw_mpt,
							.in_modifier = number_.value(),
							.op_modifier = 1,
							.answer = Answer::at_once},
						       -EBUSY);
	if (!closed && closed.error() == -EBUSY)
		return kern::Error{-EBUSY};
	live_ = false;
	return {};
}

void put_region(u8 *entry, u32 pd, int access)
{
	Entry::status.set(entry, hw::mellanox_icm::mpt_status::software);
	Entry::region.set(entry, 1);
	Entry::local_read.set(entry, 1);
	Entry::local_write.set(entry, (access & IB_ACCESS_LOCAL_WRITE) != 0);
	Entry::remote_read.set(entry, (access & IB_ACCESS_REMOTE_READ) != 0);
	Entry::remote_write.set(entry, (access & IB_ACCESS_REMOTE_WRITE) != 0);
	Entry::remote_atomic.set(entry, (access & IB_ACCESS_REMOTE_ATOMIC) != 0);
	Entry::bind_enable.set(entry, (access & IB_ACCESS_MW_BIND) != 0);
	Entry::pd.set(entry, pd);
}

void put_all_memory(u8 *entry, u32 pd, int access)
{
	put_region(entry, pd, access);
	Entry::physical.set(entry, 1);
	Entry::length.set(entry, ~u64{0});
}

} // namespace mellanox_icm
