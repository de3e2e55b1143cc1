// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the layout of a multicast group's members in the card's table: their number, and for each
// member a bit that blocks loopback of its own messages.
#pragma once
#include <hw/mlx4/contexts.hpp>
#include "family.hpp"

namespace mlx4
{

struct CountedGroup final : GroupFormat {
	u32 count(const u8 *entry, u32) const override
	{
		return wire::McgHeader::member_count.get(entry);
	}
	void set_count(u8 *entry, u32 count, u32) const override
	{
		wire::McgHeader::protocol.set(entry, 0);
		wire::McgHeader::member_count.set(entry, count);
	}
	u32 member_flags(bool block_loopback) const override
	{
		return wire::McgMember::block_loopback.in(block_loopback);
	}
};
inline constexpr CountedGroup counted_group;

} // namespace mlx4
