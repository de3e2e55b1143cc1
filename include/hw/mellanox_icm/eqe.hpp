// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines event queue entries, which are the same on the InfiniHost III (mthca) and the ConnectX-2
 * (mlx4). (Documentation/connectx.rst, "EQ and EQE")
 */
#pragma once

#include <hw/mellanox_icm/field.hpp>

namespace hw::mellanox_icm
{

enum class EventType : uint8_t {
	completion = 0x00,
	path_migrated = 0x01,
	communication_established = 0x02,
	sq_drained = 0x03,
	cq_error = 0x04,
	wq_catastrophic = 0x05,
	path_migration_failed = 0x07,
	local_catastrophic = 0x08,
	port_change = 0x09,
	command = 0x0a,
	eq_overflow = 0x0f,
	wq_invalid_request = 0x10,
	wq_access_violation = 0x11,
	srq_catastrophic = 0x12,
	srq_last_wqe = 0x13,
	srq_limit = 0x14,
	port_management_change = 0x1d,
};

namespace port_change_subtype
{
inline constexpr uint8_t down = 1;
inline constexpr uint8_t active = 4;
} // namespace port_change_subtype

namespace port_management_subtype
{
inline constexpr uint8_t guid_info = 0x14;
inline constexpr uint8_t port_info = 0x15;
inline constexpr uint8_t pkey_table = 0x16;
} // namespace port_management_subtype

/* Attributes that a port_info management change reports as changed. */
namespace port_info_changed
{
inline constexpr uint32_t sm_lid = 1u << 0;
inline constexpr uint32_t gid_prefix = 1u << 1;
inline constexpr uint32_t lid = 1u << 2;
inline constexpr uint32_t client_reregister = 1u << 3;
inline constexpr uint32_t sm_sl = 1u << 4;
} // namespace port_info_changed

namespace cq_error_syndrome
{
inline constexpr uint8_t overrun = 1;
inline constexpr uint8_t access_violation = 2;
} // namespace cq_error_syndrome

struct Eqe : Storage<32> {
	static constexpr Field type{0x00, 23, 16};
	static constexpr Field subtype{0x00, 7, 0};
	static constexpr Field number{0x04, 23, 0}; /* CQN, QPN or SRQN */
	static constexpr Field syndrome{0x0c, 7, 0};
	static constexpr Field port{0x0c, 31, 28}; /* port of a port change event */

	static constexpr Field command_token{0x04, 15, 0};
	static constexpr Field command_status{0x0c, 7, 0};
	static constexpr Field64 command_out_param{0x10, 63, 0};

	static constexpr Field management_port{0x04, 7, 0};
	static constexpr Field management_block{0x08, 31, 0};
	static constexpr Field management_entries{0x0c, 31, 0};
	static constexpr Field management_sm_lid{0x08, 31, 16};
	static constexpr Field management_lid{0x08, 15, 0};
	static constexpr Field management_changed{0x0c, 31, 0};
	static constexpr Field management_sm_sl{0x10, 3, 0};
	static constexpr Field64 management_gid_prefix{0x14, 63, 0};

	/* An entry is valid if this bit is equal to bit log2(queue size) of the consumer index. */
	static constexpr Field owner{0x1c, 7, 7};
};
static_assert(sizeof(Eqe) == 32);

} // namespace hw::mellanox_icm
