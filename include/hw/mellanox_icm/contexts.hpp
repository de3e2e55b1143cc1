// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines what the object contexts of the InfiniHost III (mthca) and the ConnectX-2 (mlx4) have in
 * common: states, numbers and bits that have the same meaning on both cards, at different
 * positions. (Documentation/connectx.rst, "Contexts")
 */
#pragma once

#include <hw/mellanox_icm/field.hpp>

namespace hw::mellanox_icm
{

enum class QpState : uint8_t {
	reset = 0,
	init = 1,
	rtr = 2,
	rts = 3,
	sqer = 4,
	sqd = 5,
	err = 6,
	sq_draining = 7,
};

enum class ServiceType : uint8_t {
	rc = 0,
	uc = 1,
	rd = 2,
	ud = 3,
	xrc = 6,
	mlx = 7, /* software builds the whole packet: QP0 and QP1 */
};

enum class MigrationState : uint8_t { armed = 0, rearm = 1, migrated = 3 };

inline constexpr size_t qp_mailbox_context = 8;
inline constexpr Field qp_mailbox_opt_mask{0x00, 31, 0};

/* Bits of the optional parameter mask: the optional parameters that a transition has. */
namespace qp_opt
{
inline constexpr uint32_t alternate_path = 1u << 0;
inline constexpr uint32_t remote_read = 1u << 1;
inline constexpr uint32_t remote_atomic = 1u << 2;
inline constexpr uint32_t remote_write = 1u << 3;
inline constexpr uint32_t pkey_index = 1u << 4;
inline constexpr uint32_t qkey = 1u << 5;
inline constexpr uint32_t min_rnr_timer = 1u << 6;
inline constexpr uint32_t primary_path = 1u << 7;
inline constexpr uint32_t sra_max = 1u << 8;
inline constexpr uint32_t rra_max = 1u << 9;
inline constexpr uint32_t migration_state = 1u << 10;
inline constexpr uint32_t port = 1u << 11; /* InfiniHost */
inline constexpr uint32_t retry_count = 1u << 12;
inline constexpr uint32_t rnr_retry = 1u << 13;
inline constexpr uint32_t ack_timeout = 1u << 14;
inline constexpr uint32_t sched_queue = 1u << 16;
} // namespace qp_opt

namespace cq_status
{
inline constexpr uint32_t ok = 0;
inline constexpr uint32_t overflow = 9;
inline constexpr uint32_t write_failure = 10;
} // namespace cq_status

namespace cq_state
{
inline constexpr uint32_t idle = 0;
inline constexpr uint32_t armed_solicited = 6;
inline constexpr uint32_t armed = 9;
inline constexpr uint32_t fired = 10;
} // namespace cq_state

namespace eq_state
{
inline constexpr uint32_t armed = 9;
inline constexpr uint32_t fired = 10;
inline constexpr uint32_t always_armed = 11;
} // namespace eq_state

/* A memory protection entry: one memory region or window. */
struct MptEntry : Storage<64> {
	static constexpr Field status{0x00, 31, 28};
	static constexpr Field bind_enable{0x00, 15, 15};
	static constexpr Field remote_atomic{0x00, 14, 14};
	static constexpr Field remote_write{0x00, 13, 13};
	static constexpr Field remote_read{0x00, 12, 12};
	static constexpr Field local_write{0x00, 11, 11};
	static constexpr Field local_read{0x00, 10, 10};
	/* addresses are bus addresses; there is no page list */
	static constexpr Field physical{0x00, 9, 9};
	static constexpr Field region{0x00, 8, 8}; /* 0 for a window */
	static constexpr Field mem_key{0x08, 31, 0};
	static constexpr Field pd{0x0c, 23, 0};
	static constexpr Field64 start{0x10, 63, 0};
	static constexpr Field64 length{0x18, 63, 0};
};
static_assert(sizeof(MptEntry) == 64);

namespace mpt_status
{
inline constexpr uint32_t valid = 0x0;
inline constexpr uint32_t free = 0x3;
inline constexpr uint32_t software = 0xf;
} // namespace mpt_status

/*
 * A 32-bit memory key is index << 8 | variant. The MPT entry contains it rotated right by 8 bits.
 */
constexpr uint32_t mpt_key(uint32_t memory_key)
{
	return memory_key >> 8 | memory_key << 24;
}
constexpr uint32_t memory_key(uint32_t mpt_key)
{
	return mpt_key << 8 | mpt_key >> 24;
}

/*
 * The header of a multicast group's entry. Dwords for the members follow, each with a QP number in
 * its low bits.
 */
struct McgHeader : Storage<32> {
	static constexpr Field next{0x00, 31, 6};
	static constexpr size_t gid = 0x10;
	static constexpr size_t member_size = 4;
};

} // namespace hw::mellanox_icm
