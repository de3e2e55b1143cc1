// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines work queue entries of the ConnectX-2 in send, receive and shared receive queues
 * (Documentation/connectx.rst, "Data path"). A send WQE consists of a control segment and the
 * segments that its opcode requires. A receive WQE is a list of data segments. All fields are
 * big-endian.
 */
#pragma once

#include <hw/mellanox_icm/wqe.hpp>
#include <ib/endian.hpp>

namespace hw::mlx4
{

using ib::be16;
using ib::be32;
using ib::be64;
using ib::field_get;
using ib::field_set;
using mellanox_icm::WqeAtomic;
using mellanox_icm::WqeData;
using mellanox_icm::WqeInline;
using mellanox_icm::WqeMaskedAtomic;
using mellanox_icm::WqeOpcode;
using mellanox_icm::WqeRemoteAddress;
using mellanox_icm::grh_room;
using mellanox_icm::wqe_bytes_max;
using mellanox_icm::wqe_unit;
using mellanox_icm::wqe_units_max;

/* Control segment, the first of every send WQE. */
struct WqeControl {
	be32 opcode_word;
	be32 size_word;
	be32 flags_word;
	/* Immediate data, or the key that the receiver must invalidate. */
	be32 immediate;

	static constexpr std::uint32_t owner_bit = 1u << 31;
	/* The LSO header is longer than 60 bytes. */
	static constexpr std::uint32_t long_lso_header = 1u << 6;
	static constexpr std::uint32_t fence = 1u << 6;

	enum Flag : std::uint32_t {
		strong_order = 1u << 7,
		l4_checksum = 1u << 5,
		ip_checksum = 1u << 4,
		/* Both bits together request a completion; a single one does not. */
		completion = 3u << 2,
		solicited = 1u << 1,
		force_loopback = 1u << 0,
	};

	constexpr bool owner() const { return (opcode_word & owner_bit) != 0; }
	constexpr std::uint8_t opcode() const
	{
		return static_cast<std::uint8_t>(field_get<4, 0>(opcode_word.value()));
	}
	/* BlueFlame only: the producer index of this WQE, and its QP number. */
	constexpr std::uint16_t blueflame_index() const
	{
		return static_cast<std::uint16_t>(field_get<23, 8>(opcode_word.value()));
	}
	constexpr std::uint32_t blueflame_qpn() const
	{
		return field_get<31, 8>(size_word.value());
	}
	constexpr bool fenced() const { return (size_word & fence) != 0; }
	/* Size of the WQE in units, including the control segment. */
	constexpr unsigned units() const { return field_get<5, 0>(size_word.value()); }
	constexpr bool has(Flag flag) const { return (flags_word & flag) == flag; }
	/* XRC: the number of the peer's shared receive queue. */
	constexpr std::uint32_t remote_srq() const { return field_get<31, 8>(flags_word.value()); }

	constexpr void set(WqeOpcode opcode, bool owner, unsigned units, std::uint32_t flags)
	{
		opcode_word = static_cast<std::uint32_t>(opcode) | (owner ? owner_bit : 0);
		size_word = units;
		flags_word = flags;
	}
};
static_assert(sizeof(WqeControl) == 16 && offsetof(WqeControl, immediate) == 12);

/* The flags word of a control segment on a special QP, whose WQE contains a whole packet. */
struct MlxFlags {
	std::uint32_t word;

	constexpr bool vl15() const { return field_get<17, 17>(word) != 0; }
	/* The packet is sent with the permissive LID as its source LID. */
	constexpr bool permissive_source() const { return field_get<16, 16>(word) != 0; }
	constexpr unsigned static_rate() const { return field_get<15, 12>(word); }
	constexpr unsigned sl() const { return field_get<11, 8>(word); }
	/* The ICRC is sent as it is in memory. */
	constexpr bool keep_icrc() const { return field_get<4, 4>(word) != 0; }
};

/*
 * Returns the destination LID of a special QP's packet: the upper half of the immediate word in its
 * control segment.
 */
constexpr std::uint16_t mlx_remote_lid(std::uint32_t immediate)
{
	return static_cast<std::uint16_t>(immediate >> 16);
}

/*
 * Address vector: the first 32 bytes of a datagram segment. User space also builds address vectors.
 */
struct AddressVector {
	be32 port_pd;
	std::uint8_t reserved;
	std::uint8_t grh_path_bits;
	be16 dlid;
	std::uint8_t reserved2;
	std::uint8_t sgid_index;
	std::uint8_t static_rate;
	std::uint8_t hop_limit;
	be32 sl_class_flow;
	std::uint8_t dgid[16];

	constexpr bool force_loopback() const { return field_get<31, 31>(port_pd.value()) != 0; }
	constexpr unsigned port() const { return field_get<25, 24>(port_pd.value()); }
	constexpr std::uint32_t pd() const { return field_get<23, 0>(port_pd.value()); }
	constexpr bool grh() const { return field_get<7, 7>(grh_path_bits) != 0; }
	constexpr unsigned path_bits() const { return field_get<6, 0>(grh_path_bits); }
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
static_assert(sizeof(AddressVector) == 32 && offsetof(AddressVector, dgid) == 16);

struct WqeDatagram {
	AddressVector address;
	be32 qpn_word;
	be32 qkey;
	/* VLAN and MAC address, for Ethernet only. */
	std::uint8_t ethernet[8];

	static constexpr std::uint32_t own_qkey = mellanox_icm::own_qkey;

	constexpr std::uint32_t qpn() const { return field_get<23, 0>(qpn_word.value()); }
};
static_assert(sizeof(WqeDatagram) == 48 && offsetof(WqeDatagram, qkey) == 36);

struct WqeFastRegister {
	be32 flags;
	be32 key;
	be64 page_list;
	be64 start;
	be64 length;
	be32 first_byte_offset;
	be32 page_shift;
	be64 reserved;

	enum Flag : std::uint32_t {
		remote_atomic = 1u << 31,
		remote_write = 1u << 30,
		remote_read = 1u << 29,
		local_write = 1u << 28,
		local_read = 1u << 27,
		first_byte_offset_enable = 1u << 26,
		length_bit_64 = 1u << 25,
		bind_enable = 1u << 21,
	};
};
static_assert(sizeof(WqeFastRegister) == 48 && offsetof(WqeFastRegister, length) == 24);

/* An entry of the page list of a fast registration. */
struct PageListEntry {
	be64 word;

	static constexpr std::uint64_t present = 1;
	constexpr std::uint64_t address() const { return word & ~std::uint64_t{7}; }
};
static_assert(sizeof(PageListEntry) == 8);

struct WqeLocalInvalidate {
	be64 reserved;
	be32 key;
	be32 reserved2[5];
};
static_assert(sizeof(WqeLocalInvalidate) == 32 && offsetof(WqeLocalInvalidate, key) == 8);

struct WqeBindWindow {
	be32 access;
	be32 type;
	be32 new_rkey;
	be32 region_lkey;
	be64 address;
	be64 length;

	enum Access : std::uint32_t {
		remote_atomic = 1u << 31,
		remote_write = 1u << 30,
		remote_read = 1u << 29,
	};
	enum Type : std::uint32_t {
		type_2 = 1u << 31,
		zero_based = 1u << 30,
	};
};
static_assert(sizeof(WqeBindWindow) == 32);

/* Header of the large-send segment. header_bytes() bytes follow, padded to a unit. */
struct WqeLso {
	be32 word;

	constexpr unsigned mss() const { return field_get<31, 16>(word.value()); }
	constexpr unsigned header_bytes() const { return field_get<15, 0>(word.value()); }
};
static_assert(sizeof(WqeLso) == 4);

/* Header of a shared receive queue's WQE: the index of the next WQE. */
struct SrqNext {
	std::uint8_t reserved[2];
	be16 next_index;
	std::uint8_t reserved2[12];
};
static_assert(sizeof(SrqNext) == 16 && offsetof(SrqNext, next_index) == 2);

/* Send doorbell, at this offset of a UAR page: the QP number, shifted left by 8 bits. */
constexpr unsigned send_doorbell_offset = 0x14;
constexpr unsigned send_doorbell_qpn_shift = 8;
/*
 * Set in the number of an XRC target QP, also on the wire and in completions. The other bits are
 * the index of its context.
 */
constexpr std::uint32_t xrc_target_qpn = 1u << 23;

} // namespace hw::mlx4
