// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the layout of a multicast group's members in the card's table: entries in order, each
// with a valid bit.
#pragma once
#include <hw/mthca/contexts.hpp>
#include "family.hpp"

namespace mthca
{

struct MarkedGroup final : GroupFormat {
	static constexpr size_t place(u32 index)
	{
		return sizeof(wire::McgHeader) + index * wire::McgMember::size;
	}

	u32 count(const u8 *entry, u32 max_members) const override
	{
		u32 count = 0;
		while (count < max_members && wire::McgMember::in_use.get(entry + place(count)))
			count++;
		return count;
	}
	void set_count(u8 *entry, u32 count, u32 max_members) const override
	{
		if (count < max_members)
			wire::McgMember::in_use.set(entry + place(count), 0);
	}
	/* The card has no flag that prevents a QP from receiving its own packets. */
	u32 member_flags(bool) const override { return wire::McgMember::in_use.mask(); }
};
inline constexpr MarkedGroup marked_group;

} // namespace mthca
