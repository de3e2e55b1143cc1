// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the packet lifetime that path records and multicast groups report, and the order in which
 * their selectors compare rates, MTUs and lifetimes (IBA volume 1, 15.2.5.16 and 15.2.5.17).
 */
#pragma once

#include <cstdint>

#include "ib/types.hpp"

namespace weft::sm
{

/* The maximum time that a packet spends in the subnet: 4.096 us * 2^18, about a second. */
inline constexpr std::uint8_t kPacketLifetime = 18;

/* The codes of rates are not sorted by rate. */
inline unsigned rate_order(unsigned code)
{
	return ib::rate_tenths(static_cast<ib::Rate>(code));
}
/* The codes of MTUs and lifetimes are sorted by value. */
inline unsigned plain_order(unsigned code)
{
	return code;
}

} // namespace weft::sm
