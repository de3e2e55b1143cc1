// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reports events about ports to the driver: state changes, and changes by the subnet manager.
#pragma once

#include <cstdint>

#include "cards/mlx4/names.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/hca/port.hpp"

namespace weft::mlx4
{

// @changed consists of bits of port_info_changed.
void raise_port_info(EventQueues &events, const CardPort &port, std::uint32_t changed);
// @entries has a bit for each entry of @block of the table of P_Keys (32 per block) or GUIDs (8 per
// block).
void raise_pkey_table(EventQueues &events, unsigned port, std::uint32_t block,
		      std::uint32_t entries);
void raise_guid_info(EventQueues &events, unsigned port, std::uint32_t block,
		     std::uint32_t entries);

} // namespace weft::mlx4
