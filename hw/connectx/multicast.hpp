// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Multicast groups: a hash table of chains that the card walks for each multicast packet.
#pragma once
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include <hw/connectx/contexts.hpp>
#include "family.hpp"
#include "icm_layout.hpp"

namespace connectx {

class MulticastGroups {
public:
	static kern::Result<kern::Owned<MulticastGroups>> create(CommandInterface &commands, const IcmLayout &layout);

	/*
	 * block_loopback: the QP is not to get what it sends itself.
	 * Errors: ENOMEM for a full group, table or chain; EINVAL if a QP that is to be taken out is not in. May sleep.
	 */
	kern::Result<> attach(const ib_gid &gid, u32 qpn, bool block_loopback);
	/* Of a card that has failed it succeeds. */
	kern::Result<> detach(const ib_gid &gid, u32 qpn);

	u32 members_per_group() const { return members_; }

private:
	/* A place in a chain: the group's own entry, or where one would go. */
	struct Place {
		u32 index;
		u32 previous; // the entry whose `next` names index; none for the chain's head
		u32 length;   // of the chain, as far as it was walked
		bool found;
	};
	/*
	 * Entries of a chain. The card walks it for each packet, and the driver, with the lock held, for each change; whoever chooses MGIDs by
	 * their hash could make it as long as the table. Where they are not so chosen, eight thousand groups have no chain of half of that.
	 */
	static constexpr u32 longest_chain = 32;
	static constexpr u32 none = ~0u;

	MulticastGroups(CommandInterface &commands, const IcmLayout &layout)
	    : commands_(commands), lock_(KERN_LOCK_CLASS("connectx.multicast")),
	      members_((layout[IcmRegion::mcg].entry_bytes - sizeof(wire::McgHeader)) / wire::McgMember::size),
	      hash_size_(1u << layout.log_mcg_hash)
	{
	}
	kern::Result<u32> hash(const ib_gid &gid);
	kern::Result<> read(u32 index, Mailbox &entry);
	kern::Result<> write(u32 index, Mailbox &entry);
	kern::Result<Place> find(const ib_gid &gid, Mailbox &entry);
	kern::Result<> leave(const ib_gid &gid, u32 qpn) REQUIRES(lock_);

	CommandInterface &commands_;
	kern::Mutex lock_;
	kern::Owned<NumberAllocator> overflow_;
	u32 members_;
	u32 hash_size_;
	u32 table_size_ = 0;
};

} // namespace connectx
