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

/* 4.096 us * 2^18, about a second: the longest time that a packet spends in the subnet. */
inline constexpr std::uint8_t kPacketLifetime = 18;

/* Codes of rates are not in the order of the rates. */
inline unsigned rate_order(unsigned code)
{
	return ib::rate_tenths(static_cast<ib::Rate>(code));
}
/* The codes of MTUs and of lifetimes are in the order of the values. */
inline unsigned plain_order(unsigned code)
{
	return code;
}

} // namespace weft::sm
