// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines completion queue entries of the InfiniHost III. The card owns an entry while its owner
 * bit is set, in every pass through the ring. The card clears the bit, and software sets it again.
 * (Documentation/infinihost.rst, "Completions")
 */
#pragma once

#include <hw/mellanox_icm/cqe.hpp>
#include <ib/endian.hpp>

namespace hw::mthca
{

using ib::be32;
using mellanox_icm::CqeSyndrome;

struct Cqe {
	be32 qpn;
	be32 eec_word;
	be32 remote_qpn;
	be32 source_word;
	/*
	 * Immediate data, or the P_Key index in the upper half. In an error: the syndrome in the
	 * top byte.
	 */
	be32 immediate;
	be32 byte_count;
	be32 wqe_address; /* units of 64 bytes */
	std::uint8_t opcode;
	std::uint8_t is_send;
	std::uint8_t reserved;
	std::uint8_t owner;

	static constexpr std::uint8_t owner_bit = 0x80;
	static constexpr std::uint8_t send_bit = 0x80;
	static constexpr std::uint8_t send_error = 0xff;
	static constexpr std::uint8_t receive_error = 0xfe;
	/* The card does not use this opcode; the driver marks entries of destroyed QPs with it. */
	static constexpr std::uint8_t stale = 0x7f;

	constexpr void set_source(unsigned sl, bool grh, unsigned path_bits, std::uint16_t lid)
	{
		source_word = sl << 28 | (grh ? 1u << 23 : 0) | (path_bits & 0x7f) << 16 | lid;
	}
	constexpr void set_syndrome(std::uint8_t syndrome)
	{
		immediate = std::uint32_t{syndrome} << 24;
	}
	constexpr std::uint8_t syndrome() const
	{
		return static_cast<std::uint8_t>(immediate.value() >> 24);
	}
	constexpr bool is_error() const { return opcode == send_error || opcode == receive_error; }
};
static_assert(sizeof(Cqe) == 32 && offsetof(Cqe, immediate) == 0x10 &&
	      offsetof(Cqe, wqe_address) == 0x18);
static_assert(offsetof(Cqe, opcode) == 0x1c && offsetof(Cqe, owner) == 0x1f);

/* Opcode of a completed receive: that of its packet. Drivers distinguish only these. */
enum class ReceiveOpcode : std::uint8_t {
	send = 0x04,
	send_imm = 0x05,
	rdma_write_imm = 0x0b,
};

} // namespace hw::mthca
