// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the addresses, limits and encodings that packets and MADs share: GID, LID ranges, MTU,
 * rate.
 */
#pragma once

#include "endian.hpp"

#include <compare>

namespace ib
{

using Lid = std::uint16_t;
using Pkey = std::uint16_t;
using Guid = std::uint64_t;

/* LID ranges, IBA 4.1.3. */
constexpr Lid lid_reserved = 0x0000;
constexpr Lid lid_unicast_last = 0xbfff;
constexpr Lid lid_multicast_first = 0xc000;
constexpr Lid lid_multicast_last = 0xfffe;
constexpr Lid lid_permissive = 0xffff;

constexpr bool lid_is_unicast(Lid lid)
{
	return lid != lid_reserved && lid <= lid_unicast_last;
}
constexpr bool lid_is_multicast(Lid lid)
{
	return lid >= lid_multicast_first && lid <= lid_multicast_last;
}

constexpr unsigned lmc_max = 7;

/* P_Keys, IBA 10.9. Bit 15 is set for full members; 0 in the low bits matches nothing. */
constexpr Pkey pkey_default_full = 0xffff;
constexpr Pkey pkey_default_limited = 0x7fff;
constexpr Pkey pkey_full_bit = 0x8000;
constexpr Pkey pkey_base(Pkey pkey)
{
	return static_cast<Pkey>(pkey & 0x7fff);
}
constexpr bool pkey_is_full(Pkey pkey)
{
	return (pkey & pkey_full_bit) != 0;
}

/*
 * Returns true if a packet with one of these keys is accepted by a port with the other (IBA
 * 10.9.3).
 */
constexpr bool pkey_match(Pkey a, Pkey b)
{
	return pkey_base(a) == pkey_base(b) && pkey_base(a) != 0 && ((a | b) & pkey_full_bit) != 0;
}

/* Well-known QP numbers and Q_Keys, IBA 3.5.10 and 10.2.4. */
constexpr std::uint32_t qpn_smi = 0;
constexpr std::uint32_t qpn_gsi = 1;
constexpr std::uint32_t qpn_multicast = 0xffffff;
constexpr std::uint32_t qkey_gsi = 0x80010000;

constexpr std::uint8_t vl_management = 15;

/* A global identifier, IBA 4.1.1. */
struct Gid {
	std::uint8_t raw[16];

	constexpr bool operator==(const Gid &) const = default;
	constexpr auto operator<=>(const Gid &other) const = default;

	static constexpr Gid from_parts(std::uint64_t prefix, std::uint64_t interface_id)
	{
		Gid gid{};
		for (unsigned i = 0; i < 8; i++) {
			gid.raw[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
			gid.raw[8 + i] = static_cast<std::uint8_t>(interface_id >> (56 - 8 * i));
		}
		return gid;
	}
	constexpr std::uint64_t subnet_prefix() const { return half(0); }
	constexpr Guid interface_id() const { return half(8); }
	constexpr bool is_multicast() const { return raw[0] == 0xff; }
	constexpr bool is_zero() const { return half(0) == 0 && half(8) == 0; }

private:
	constexpr std::uint64_t half(unsigned at) const
	{
		std::uint64_t value = 0;
		for (unsigned i = 0; i < 8; i++)
			value = value << 8 | raw[at + i];
		return value;
	}
};

static_assert(sizeof(Gid) == 16 && alignof(Gid) == 1);

constexpr std::uint64_t gid_prefix_link_local = 0xfe80000000000000;

/* MTU encoding of PortInfo, PathRecord and MCMemberRecord, IBA 14.2.5.6. */
enum class Mtu : std::uint8_t { mtu_256 = 1, mtu_512, mtu_1024, mtu_2048, mtu_4096 };

/* Bytes of an encoded MTU; 0 for an encoding that does not exist. */
constexpr unsigned mtu_bytes(Mtu mtu)
{
	auto code = static_cast<unsigned>(mtu);
	return code >= 1 && code <= 5 ? 128u << code : 0;
}

/* The largest encoding of at most that many bytes; mtu_256 for fewer. */
constexpr Mtu mtu_from_bytes(unsigned bytes)
{
	unsigned code = 1;
	while (code < 5 && (128u << (code + 1)) <= bytes)
		code++;
	return static_cast<Mtu>(code);
}

/* Rate encoding of PathRecord and MCMemberRecord, IBA 15.2.5.16. */
enum class Rate : std::uint8_t {
	gbps_2_5 = 2,
	gbps_10 = 3,
	gbps_30 = 4,
	gbps_5 = 5,
	gbps_20 = 6,
	gbps_40 = 7,
	gbps_60 = 8,
	gbps_80 = 9,
	gbps_120 = 10,
	gbps_14 = 11,
	gbps_56 = 12,
	gbps_112 = 13,
	gbps_168 = 14,
	gbps_25 = 15,
	gbps_100 = 16,
	gbps_200 = 17,
	gbps_300 = 18,
};

/* A rate in units of 0.1 Gbit/s, so that rates can be ordered; 0 for an unknown encoding. */
constexpr unsigned rate_tenths(Rate rate)
{
	constexpr unsigned table[] = {0,    0,   25,  100,  300,  50,  200,  400,  600, 800,
				      1200, 140, 560, 1120, 1680, 250, 1000, 2000, 3000};
	auto code = static_cast<unsigned>(rate);
	return code < sizeof(table) / sizeof(table[0]) ? table[code] : 0;
}

/* Link width bits and speed bits of PortInfo, IBA 14.2.5.6. */
enum LinkWidth : std::uint8_t { width_1x = 1, width_4x = 2, width_8x = 4, width_12x = 8 };
enum LinkSpeed : std::uint8_t { speed_sdr = 1, speed_ddr = 2, speed_qdr = 4 };
enum LinkSpeedExt : std::uint8_t { speed_ext_none = 0, speed_fdr = 1, speed_edr = 2 };

constexpr unsigned width_lanes(std::uint8_t width)
{
	switch (width) {
	case width_1x:
		return 1;
	case width_4x:
		return 4;
	case width_8x:
		return 8;
	case width_12x:
		return 12;
	default:
		return 0;
	}
}

/* The rate of a link of one width and one speed (an extended speed wins over the other). */
constexpr Rate link_rate(std::uint8_t width, std::uint8_t speed, std::uint8_t speed_ext = 0)
{
	unsigned lane = speed_ext == speed_edr   ? 250
			: speed_ext == speed_fdr ? 140
			: speed == speed_qdr     ? 100
			: speed == speed_ddr     ? 50
						 : 25;
	unsigned tenths = lane * width_lanes(width);
	for (unsigned code = 2; code <= 18; code++)
		if (rate_tenths(static_cast<Rate>(code)) == tenths)
			return static_cast<Rate>(code);
	return Rate::gbps_2_5;
}

/* Port states of PortInfo, IBA 14.2.5.6. */
enum class PortState : std::uint8_t { nop = 0, down = 1, init = 2, armed = 3, active = 4 };
enum class PhysState : std::uint8_t {
	nop = 0,
	sleep = 1,
	polling = 2,
	disabled = 3,
	training = 4,
	link_up = 5,
	recovery = 6,
};

enum class NodeType : std::uint8_t { channel_adapter = 1, switch_ = 2, router = 3 };

} // namespace ib
