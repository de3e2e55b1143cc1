// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Maintains the card's multicast groups: a hash table of chains, which the card walks for each
// multicast packet.
#pragma once
#include <kern/lock.hpp>
#include <rdma/ib_verbs.h>
#include <hw/mellanox_icm/contexts.hpp>
#include "command.hpp"
#include "icm_table.hpp"
#include "number_allocator.hpp"

namespace mellanox_icm
{

/* A card's format of a group's number of members, and of the flags of a member. */
class GroupFormat
{
public:
	virtual u32 count(const u8 *entry, u32 max_members) const = 0;
	/* Sets the number of members. The caller has already written the members. */
	virtual void set_count(u8 *entry, u32 count, u32 max_members) const = 0;
	/* Returns a member's word without its QP number. */
	virtual u32 member_flags(bool block_loopback) const = 0;

protected:
	~GroupFormat() = default;
};

class MulticastGroups
{
public:
	/*
	 * table: the table in ICM; its first half is the hash table. format: must outlive this
	 * object. May sleep. Errors: ENOMEM.
	 */
	static kern::Result<kern::Owned<MulticastGroups>>
	create(CommandInterface &commands, const IcmExtent &table, const GroupFormat &format);

	/*
	 * Adds a QP to a group. block_loopback: the QP must not receive its own packets. owner: the
	 * kernel or a program, on whose behalf the QP is attached. A program can choose MGIDs
	 * freely. So it cannot add a group to a chain, or to the overflow part of the table, that
	 * is three quarters full; a quarter is left to the kernel. Errors: ENOMEM if the group,
	 * table or chain is full. May sleep.
	 */
	kern::Result<> attach(const ib_gid &gid, u32 qpn, bool block_loopback,
			      ib_mcast_owner owner);
	/*
	 * Removes a QP from a group. Succeeds after the card has failed. Allocates no memory,
	 * because destroying a QP must be able to detach it from its groups. Errors: EINVAL for a
	 * QP that is not in the group; those of commands.
	 */
	kern::Result<> detach(const ib_gid &gid, u32 qpn);

	/* Returns the maximum number of groups, which is the number of table entries. */
	u32 groups() const { return table_size_; }
	u32 members_per_group() const { return members_; }

private:
	/*
	 * A position in a chain: that of the group, or the end of the chain if the group was not
	 * found.
	 */
	struct Place {
		u32 index;
		u32 previous; // the entry whose `next` is index; none for the head of the chain
		u32 length;   // the number of entries that were read
		bool found;
	};
	/*
	 * Maximum numbers of entries in a chain. The card walks the chain for each packet, and the
	 * driver for each change with the lock held. Without a limit, a program that chooses MGIDs
	 * by their hash could make it as long as the table. With other MGIDs, eight thousand groups
	 * have no chain of half this length.
	 */
	static constexpr u32 longest_chain = 32, longest_for_program = 24;
	/*
	 * A program may add an entry to the overflow part only while fewer entries than this are
	 * used.
	 */
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
