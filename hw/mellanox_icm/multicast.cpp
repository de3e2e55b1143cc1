// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "multicast.hpp"
#include <kern/log.hpp>

namespace mellanox_icm
{

namespace
{

namespace wire = hw::mellanox_icm;
using Header = wire::McgHeader;
constexpr u32 qpn_mask = 0xffffff;

u8 *member(Mailbox &entry, u32 index)
{
	return entry.bytes() + sizeof(Header) + index * Header::member_size;
}

u32 member_qpn(Mailbox &entry, u32 index)
{
	return wire::load_be32(member(entry, index), 0) & qpn_mask;
}

} // namespace

kern::Result<kern::Owned<MulticastGroups>> MulticastGroups::create(CommandInterface &commands,
								   const IcmExtent &table,
								   const GroupFormat &format)
{
	auto entry = KERN_TRY(commands.mailbox());
	auto neighbour = KERN_TRY(commands.mailbox());
	auto groups = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) MulticastGroups(
		commands, table, format, std::move(entry), std::move(neighbour))));
	// Groups whose hash bucket is in use go to the overflow part of the table.
	groups->overflow_ =
		KERN_TRY(NumberAllocator::create(groups->hash_size_, groups->table_size_));
	return groups;
}

kern::Result<u32> MulticastGroups::hash(const ib_gid &gid, Mailbox &mailbox)
{
	__builtin_memcpy(mailbox.bytes(), gid.raw, sizeof(gid.raw));
	const u32 index = static_cast<u32>(KERN_TRY(commands_.execute_in_immediate(
						   {.opcode = wire::Opcode::mgid_hash}, mailbox)) &
					   0xffff);
	if (index >= hash_size_) {
		kern_error_limited("the card's multicast hash %#x is beyond its table\n", index);
		return kern::Error{-EPROTO};
	}
	return index;
}

kern::Result<> MulticastGroups::read(u32 index, Mailbox &entry)
{
	return commands_.execute_out({.opcode = wire::Opcode::read_mcg, .in_modifier = index},
				     entry);
}

kern::Result<> MulticastGroups::write(u32 index, Mailbox &entry)
{
	return commands_.execute_in({.opcode = wire::Opcode::write_mcg, .in_modifier = index},
				    entry);
}

/*
 * Finds a group. Afterwards `entry` contains the group, or if it was not found, the last entry of
 * its chain.
 */
kern::Result<MulticastGroups::Place> MulticastGroups::find(const ib_gid &gid, Mailbox &entry)
{
	Place place{
		.index = KERN_TRY(hash(gid, entry)), .previous = none, .length = 1, .found = false};
	// Limit the length, because a faulty card might write a circular chain.
	for (; place.length <= longest_chain; place.length++) {
		KERN_TRY(read(place.index, entry));
		const u32 present = count(entry);
		if (present > members_)
			return kern::Error{-EPROTO};
		if (present &&
		    __builtin_memcmp(entry.bytes() + Header::gid, gid.raw, sizeof(gid.raw)) == 0) {
			place.found = true;
			return place;
		}
		const u32 next = Header::next.get(entry.bytes());
		if (!next)
			return place;
		if (next >= table_size_)
			return kern::Error{-EPROTO};
		place.previous = place.index;
		place.index = next;
	}
	return kern::Error{-EPROTO};
}

/* Allocates an entry in the overflow part of the table. Errors: ENOMEM. */
kern::Result<u32> MulticastGroups::allocate_overflow(ib_mcast_owner owner)
{
	if (owner == IB_MCAST_USER && overflow_used_ >= overflow_for_program())
		return kern::Error{-ENOMEM};
	const auto index = overflow_->allocate();
	if (!index)
		return kern::Error{-ENOMEM};
	overflow_used_++;
	return index;
}

void MulticastGroups::free_overflow(u32 index)
{
	overflow_->free(index);
	overflow_used_--;
}

kern::Result<> MulticastGroups::attach(const ib_gid &gid, u32 qpn, bool block_loopback,
				       ib_mcast_owner owner)
{
	kern::Guard guard(lock_);
	auto entry = KERN_TRY(commands_.mailbox());
	const Place place = KERN_TRY(find(gid, entry));
	const u32 count = this->count(entry);
	const u32 word = (qpn & qpn_mask) | format_.member_flags(block_loopback);

	if (place.found) {
		for (u32 i = 0; i < count; i++)
			if (member_qpn(entry, i) == qpn)
				return {};
		if (count == members_)
			return kern::Error{-ENOMEM};
		wire::store_be32(member(entry, count), 0, word);
		format_.set_count(entry.bytes(), count + 1, members_);
		return write(place.index, entry);
	}

	// The first entry of a chain may be empty although other entries follow it; then find() has
	// returned the last entry.
	u32 index = place.index;
	const bool fresh = count != 0 || place.previous != none;
	if (fresh && place.length >= (owner == IB_MCAST_USER ? longest_for_program : longest_chain))
		return kern::Error{-ENOMEM};
	auto group = KERN_TRY(commands_.mailbox());
	if (fresh)
		index = KERN_TRY(allocate_overflow(owner));
	__builtin_memcpy(group.bytes() + Header::gid, gid.raw, sizeof(gid.raw));
	wire::store_be32(member(group, 0), 0, word);
	format_.set_count(group.bytes(), 1, members_);
	kern::Result<> written = write(index, group);
	if (written && fresh) {
		Header::next.set(entry.bytes(), index);
		if (const auto linked = write(place.index, entry); !linked) {
			free_overflow(index);
			return linked;
		}
	} else if (!written && fresh) {
		free_overflow(index);
	}
	return written;
}

kern::Result<> MulticastGroups::detach(const ib_gid &gid, u32 qpn)
{
	kern::Guard guard(lock_);
	// A card that has failed has no groups any more, and may still have the mailboxes.
	if (commands_.failed() || !entry_ || !neighbour_)
		return {};
	const auto left = leave(gid, qpn);
	return commands_.failed() ? kern::Result<>{} : left;
}

kern::Result<> MulticastGroups::leave(const ib_gid &gid, u32 qpn)
{
	Mailbox &entry = entry_;
	const Place place = KERN_TRY(find(gid, entry));
	if (!place.found)
		return kern::Error{-EINVAL};
	const u32 count = this->count(entry);
	u32 at = 0;
	while (at < count && member_qpn(entry, at) != qpn)
		at++;
	if (at == count)
		return kern::Error{-EINVAL};
	wire::store_be32(member(entry, at), 0, wire::load_be32(member(entry, count - 1), 0));
	wire::store_be32(member(entry, count - 1), 0, 0);
	format_.set_count(entry.bytes(), count - 1, members_);
	const u32 next = Header::next.get(entry.bytes());
	if (count > 1 || (place.previous == none && !next)) {
		if (count == 1)
			__builtin_memset(entry.bytes() + Header::gid, 0, 16);
		return write(place.index, entry);
	}
	if (place.previous != none) {
		// Remove the entry from the middle or the end of the chain.
		Mailbox &previous = neighbour_;
		KERN_TRY(read(place.previous, previous));
		Header::next.set(previous.bytes(), next);
		KERN_TRY(write(place.previous, previous));
		if (place.index >= hash_size_)
			free_overflow(place.index);
		return {};
	}
	// The first entry of the chain is removed: copy the second one to its place.
	if (next >= table_size_)
		return kern::Error{-EPROTO};
	Mailbox &second = neighbour_;
	KERN_TRY(read(next, second));
	KERN_TRY(write(place.index, second));
	if (next >= hash_size_)
		free_overflow(next);
	return {};
}

} // namespace mellanox_icm
