// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the segments of work queue entries that the InfiniHost III (mthca) and the ConnectX-2
 * (mlx4) have in common, all big-endian. (Documentation/connectx.rst, "Data path")
 */
#pragma once

#include <ib/endian.hpp>

namespace hw::mellanox_icm
{

using ib::be32;
using ib::be64;

/* The unit of a WQE's size, and the alignment of its segments. */
constexpr unsigned wqe_unit = 16;
/* The size of a send WQE in units has six bits. */
constexpr unsigned wqe_units_max = 63;
constexpr unsigned wqe_bytes_max = wqe_unit * wqe_units_max;

/* Opcodes of the send queue; completions of sends carry the same number. */
enum class WqeOpcode : std::uint8_t {
	nop = 0x00,
	send_invalidate = 0x01,
	rdma_write = 0x08,
	rdma_write_imm = 0x09,
	send = 0x0a,
	send_imm = 0x0b,
	lso = 0x0e,
	rdma_read = 0x10,
	compare_swap = 0x11,
	fetch_add = 0x12,
	masked_compare_swap = 0x14,
	masked_fetch_add = 0x15,
	bind_window = 0x18,
	fast_register = 0x19,
	local_invalidate = 0x1b,
	config = 0x1f,
};

struct WqeRemoteAddress {
	be64 address;
	be32 rkey;
	be32 reserved;
};
static_assert(sizeof(WqeRemoteAddress) == 16);

struct WqeAtomic {
	be64 swap_or_add;
	/* In a masked fetch-and-add: the field boundaries. */
	be64 compare;
};
static_assert(sizeof(WqeAtomic) == 16);

struct WqeMaskedAtomic {
	be64 swap;
	be64 compare;
	be64 swap_mask;
	be64 compare_mask;
};
static_assert(sizeof(WqeMaskedAtomic) == 32);

/* A data segment of a send or receive request. */
struct WqeData {
	be32 byte_count;
	be32 lkey;
	be64 address;

	static constexpr std::uint32_t inline_bit = 1u << 31;
	/* The key that, with a byte count of 0, marks the end of a short receive list. */
	static constexpr std::uint32_t terminator_lkey = 0x00000100;
};
static_assert(sizeof(WqeData) == 16);

/*
 * Header of an inline segment. `length` bytes follow, and the next segment begins at the next unit.
 */
struct WqeInline {
	be32 byte_count;

	static constexpr std::uint32_t length_mask = 0x7fffffff;
	constexpr std::uint32_t length() const { return byte_count & length_mask; }
};
static_assert(sizeof(WqeInline) == 4);

/*
 * Number of bytes that precede the payload in the receive buffer of a datagram QP: space for the
 * GRH.
 */
constexpr unsigned grh_room = 40;

/* A bit in the Q_Key of a datagram: use the QP's own Q_Key (IBA 10.2.5). */
constexpr std::uint32_t own_qkey = 1u << 31;

} // namespace hw::mellanox_icm
