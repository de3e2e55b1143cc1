// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines what completion queue entries of the InfiniHost III (mthca) and the ConnectX-2 (mlx4)
 * have in common. (Documentation/connectx.rst, "CQE")
 */
#pragma once

#include <cstdint>

namespace hw::mellanox_icm
{

/*
 * The reason why a work request failed. The peer, or the path to it, causes those of the second
 * half.
 */
enum class CqeSyndrome : std::uint8_t {
	none = 0x00,
	local_length = 0x01,
	local_qp_operation = 0x02,
	local_protection = 0x04,
	flushed = 0x05,
	window_bind = 0x06,
	bad_response = 0x10,
	local_access = 0x11,
	remote_invalid_request = 0x12,
	remote_access = 0x13,
	remote_operation = 0x14,
	retry_exceeded = 0x15,
	rnr_retry_exceeded = 0x16,
	remote_aborted = 0x22,
};

} // namespace hw::mellanox_icm
