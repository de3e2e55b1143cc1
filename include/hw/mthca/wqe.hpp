// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines work queue entries of the InfiniHost III. A WQE begins with a link that describes the
 * next one; segments follow. The segments for data, remote addresses and atomics are the same as
 * mlx4's (hw/mellanox_icm/wqe.hpp). (Documentation/infinihost.rst, "Work queues")
 */
#pragma once

#include <hw/mellanox_icm/wqe.hpp>

namespace hw::mthca
{

using ib::be32;
using ib::field_get;

/* This card supports the family's opcodes up to fetch-and-add, except those that refer to keys. */
using mellanox_icm::WqeAtomic;
using mellanox_icm::WqeData;
using mellanox_icm::WqeInline;
using mellanox_icm::WqeOpcode;
using mellanox_icm::WqeRemoteAddress;
using mellanox_icm::own_qkey;
using mellanox_icm::wqe_bytes_max;
using mellanox_icm::wqe_unit;

struct WqeNext {
	be32 next_word; /* address and opcode of the next WQE */
	be32 size_word; /* size of the next WQE */
	be32 flags;     /* of this WQE */
	be32 immediate; /* of this WQE */

	static constexpr std::uint32_t address_mask = ~std::uint32_t{0x3f};
	static constexpr std::uint32_t doorbell = 1u << 7;
	static constexpr std::uint32_t fence_bit = 1u << 6;
	static constexpr std::uint32_t units_mask = 0x3f;

	enum Flag : std::uint32_t {
		l4_checksum = 1u << 5,
		ip_checksum = 1u << 4,
		completion = 1u << 3,
		event = 1u << 2,
		solicited = 1u << 1,
		always = 1u << 0,
	};
	/* Used on special QPs. */
	static constexpr std::uint32_t vl15 = 1u << 17;
	static constexpr std::uint32_t permissive_source = 1u << 16;

	constexpr std::uint32_t next_address() const { return next_word & address_mask; }
	constexpr std::uint8_t opcode() const
	{
		return static_cast<std::uint8_t>(field_get<4, 0>(next_word.value()));
	}
	constexpr bool fence() const { return (size_word & fence_bit) != 0; }
	/* Size of the next WQE in units of 16 bytes. */
	constexpr unsigned units() const { return field_get<5, 0>(size_word.value()); }
	constexpr bool has(Flag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(WqeNext) == 16 && offsetof(WqeNext, flags) == 8 &&
	      offsetof(WqeNext, immediate) == 12);

/* The first 32 bytes of a datagram segment. User space also builds address vectors. */
struct AddressVector {
	be32 port_pd;
	std::uint8_t reserved;
	std::uint8_t grh_path_bits;
	ib::be16 dlid;
	std::uint8_t reserved2;
	std::uint8_t sgid_index; /* index over both ports, with 32 for each */
	std::uint8_t rate;       /* rate and maximum message size */
	std::uint8_t hop_limit;
	be32 sl_class_flow;
	std::uint8_t dgid[16];

	static constexpr unsigned gids_per_port = 32;

	constexpr unsigned port() const { return field_get<25, 24>(port_pd.value()); }
	constexpr std::uint32_t pd() const { return field_get<23, 0>(port_pd.value()); }
	constexpr bool grh() const { return field_get<7, 7>(grh_path_bits) != 0; }
	constexpr unsigned path_bits() const { return field_get<6, 0>(grh_path_bits); }
	constexpr unsigned gid() const { return sgid_index % gids_per_port; }
	constexpr unsigned sl() const { return field_get<31, 28>(sl_class_flow.value()); }
	constexpr unsigned traffic_class() const
	{
		return field_get<27, 20>(sl_class_flow.value());
	}
	constexpr std::uint32_t flow_label() const
	{
		return field_get<19, 0>(sl_class_flow.value());
	}
};
static_assert(sizeof(AddressVector) == 32 && offsetof(AddressVector, sgid_index) == 9 &&
	      offsetof(AddressVector, dgid) == 16);

struct WqeDatagram {
	AddressVector address;
	be32 qpn_word;
	be32 qkey;
	be32 reserved[2];

	constexpr std::uint32_t qpn() const { return field_get<23, 0>(qpn_word.value()); }
};
static_assert(sizeof(WqeDatagram) == 48 && offsetof(WqeDatagram, qkey) == 36);

/* The length of an inline segment has ten bits on this card. */
inline constexpr std::uint32_t inline_length_mask = 0x3ff;
/* The key that ends a receive list, whatever its byte count is. */
inline constexpr std::uint32_t terminator_lkey = 0x00000100;

} // namespace hw::mthca
