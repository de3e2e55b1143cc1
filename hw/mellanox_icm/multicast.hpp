// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Multicast groups: a hash table of chains that the card walks for each multicast packet.
#pragma once
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include <hw/mellanox_icm/contexts.hpp>
#include "command.hpp"
#include "icm_table.hpp"
#include "number_allocator.hpp"

namespace mellanox_icm
{

/* A card's format of the number of members in an entry of a group, and of the words of members. */
class GroupFormat
{
public:
	virtual u32 count(const u8 *entry, u32 room) const = 0;
	/* The caller has already written the new members. */
	virtual void set_count(u8 *entry, u32 count, u32 room) const = 0;
	/* Returns the word of a member without its number. */
	virtual u32 member_flags(bool block_loopback) const = 0;

protected:
	~GroupFormat() = default;
};

class MulticastGroups
{
public:
	/*
	 * table: where it lies; its first half is the hash table. format: stays. May sleep. Errors:
	 * ENOMEM.
	 */
	static kern::Result<kern::Owned<MulticastGroups>>
	create(CommandInterface &commands, const IcmExtent &table, const GroupFormat &format);

	/*
	 * block_loopback: the QP must not receive its own packets. owner: the user on whose behalf
	 * it is attached. A program can choose MGIDs freely. It can add no group to a chain, or to
	 * the part of the table behind the hash table, that is three quarters full, so that it
	 * cannot keep the kernel out of a group. Errors: ENOMEM for a full group, table or chain.
	 * May sleep.
	 */
	kern::Result<> attach(const ib_gid &gid, u32 qpn, bool block_loopback,
			      ib_mcast_owner owner);
	/*
	 * Succeeds after the card has failed. Needs no memory, because destroying a QP has to
	 * detach it from its groups. Errors: EINVAL for a QP that is not in; those of commands.
	 */
	kern::Result<> detach(const ib_gid &gid, u32 qpn);

	/* Returns the maximum number of groups, which is the number of table entries. */
	u32 groups() const { return table_size_; }
	u32 members_per_group() const { return members_; }

private:
	/* A place in a chain: the group's own entry, or where one would go. */
	struct Place {
		u32 index;
		u32 previous; // the entry whose `next` names index; none for the chain's head
		u32 length;   // length of the part of the chain that was traversed
		bool found;
	};
	/*
	 * Entries of a chain. The card walks it for each packet, and the driver, with the lock
	 * held, for each change; a program that chooses MGIDs by their hash could make it as long
	 * as the table. With other MGIDs, eight thousand groups have no chain of half that length.
	 */
	static constexpr u32 longest_chain = 32, longest_for_program = 24;
	/* Entries behind the hash table that a program may fill. */
	u32 overflow_for_program() const
	{
		const u32 all = table_size_ - hash_size_;
		return all - all / 4;
	}
	static constexpr u32 none = ~0u;

	MulticastGroups(CommandInterface &commands, const IcmExtent &table,
			const GroupFormat &format, Mailbox entry, Mailbox neighbour)
	    : commands_(commands), format_(format), lock_(KERN_LOCK_CLASS("mellanox.multicast")),
	      entry_(std::move(entry)), neighbour_(std::move(neighbour)),
	      members_((table.entry_bytes - sizeof(hw::mellanox_icm::McgHeader)) /
		       hw::mellanox_icm::McgHeader::member_size),
	      hash_size_(1u << (table.log_entries - 1)), table_size_(1u << table.log_entries)
	{
	}
	u32 count(Mailbox &entry) const { return format_.count(entry.bytes(), members_); }
	kern::Result<u32> hash(const ib_gid &gid, Mailbox &mailbox);
	kern::Result<> read(u32 index, Mailbox &entry);
	kern::Result<> write(u32 index, Mailbox &entry);
	kern::Result<Place> find(const ib_gid &gid, Mailbox &entry);
	kern::Result<> leave(const ib_gid &gid, u32 qpn) KERN_REQUIRES(lock_);
	kern::Result<u32> allocate_overflow(ib_mcast_owner owner) KERN_REQUIRES(lock_);
	void free_overflow(u32 index) KERN_REQUIRES(lock_);

	CommandInterface &commands_;
	const GroupFormat &format_;
	kern::Mutex lock_;
	/* Preallocated for detach(), which must not fail. */
	Mailbox entry_ KERN_GUARDED_BY(lock_);
	Mailbox neighbour_ KERN_GUARDED_BY(lock_);
	kern::Owned<NumberAllocator> overflow_;
	u32 overflow_used_ KERN_GUARDED_BY(lock_) = 0;
	u32 members_;
	u32 hash_size_;
	u32 table_size_;
};

} // namespace mellanox_icm
