// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines completion queue entries of the ConnectX-2: 32 bytes, big-endian
 * (Documentation/connectx.rst, "CQE"). The owner bit of the entry with free-running index n is bit
 * log2(size) of n.
 */
#pragma once

#include <hw/mellanox_icm/cqe.hpp>
#include <ib/endian.hpp>

namespace hw::mlx4
{

using ib::be16;
using ib::be32;
using ib::be64;
using ib::field_get;
using ib::field_set;
using mellanox_icm::CqeSyndrome;

/* Opcode of a completed receive. A completed send has its WqeOpcode instead. */
enum class CqeReceiveOpcode : std::uint8_t {
	rdma_write_imm = 0x00,
	send = 0x01,
	send_imm = 0x02,
	send_invalidate = 0x03,
};

constexpr std::uint8_t cqe_opcode_resize = 0x16;
constexpr std::uint8_t cqe_opcode_error = 0x1e;

struct Cqe {
	be32 qpn_word;
	/*
	 * Immediate data, the invalidated key, or the P_Key index of a datagram without immediate
	 * data.
	 */
	be32 immediate;
	be32 remote_word;
	be16 sl_word;
	be16 source_lid;
	be16 status;
	std::uint8_t ipv6_extension_mask;
	std::uint8_t checksum_flags;
	be32 byte_count;
	be16 wqe_index;
	be16 checksum;
	std::uint8_t reserved[3];
	std::uint8_t owner_opcode;

	enum Status : std::uint16_t {
		ipv4 = 1u << 6,
		ipv4_fragment = 1u << 7,
		ipv6 = 1u << 8,
		ipv4_options = 1u << 9,
		tcp = 1u << 10,
		udp = 1u << 11,
		ip_checksum_ok = 1u << 12,
	};
	static constexpr std::uint8_t l4_checksum_ok = 1u << 2;
	/* Value of the checksum field for a packet with a correct L4 checksum. */
	static constexpr std::uint16_t checksum_correct = 0xffff;

	static constexpr std::uint8_t owner_bit = 1u << 7;
	static constexpr std::uint8_t send_bit = 1u << 6;
	static constexpr std::uint8_t opcode_mask = 0x1f;

	constexpr std::uint32_t qpn() const { return field_get<23, 0>(qpn_word.value()); }
	constexpr bool grh() const { return field_get<31, 31>(remote_word.value()) != 0; }
	constexpr unsigned path_bits() const { return field_get<30, 24>(remote_word.value()); }
	/* Source QP number; for XRC, the number of the shared receive queue. */
	constexpr std::uint32_t remote_qpn() const { return field_get<23, 0>(remote_word.value()); }
	constexpr void set_remote(bool has_grh, unsigned bits, std::uint32_t number)
	{
		remote_word =
			field_set<31, 31>(field_set<30, 24>(number & 0xffffff, bits), has_grh);
	}
	constexpr unsigned sl() const { return field_get<15, 12>(sl_word.value()); }
	constexpr void set_sl(unsigned value)
	{
		sl_word = field_set<15, 12>(std::uint16_t{0}, value);
	}
	constexpr bool owner() const { return (owner_opcode & owner_bit) != 0; }
	constexpr bool is_send() const { return (owner_opcode & send_bit) != 0; }
	constexpr std::uint8_t opcode() const { return field_get<4, 0>(owner_opcode); }
};
static_assert(sizeof(Cqe) == 32);
static_assert(offsetof(Cqe, source_lid) == 0x0e && offsetof(Cqe, byte_count) == 0x14);
static_assert(offsetof(Cqe, wqe_index) == 0x18 && offsetof(Cqe, owner_opcode) == 0x1f);

/* The same 32 bytes if the opcode is cqe_opcode_error. */
struct ErrorCqe {
	be32 qpn_word;
	be32 reserved[5];
	be16 wqe_index;
	std::uint8_t vendor_syndrome;
	std::uint8_t syndrome;
	std::uint8_t reserved2[3];
	std::uint8_t owner_opcode;
};
static_assert(sizeof(ErrorCqe) == 32 && offsetof(ErrorCqe, syndrome) == 0x1b);

} // namespace hw::mlx4
