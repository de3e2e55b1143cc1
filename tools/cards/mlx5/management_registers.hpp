// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the registers that management programs such as mstflint read: general information, and
// the components of the firmware.
#pragma once

#include <cstdint>
#include <span>

namespace weft::mlx5
{

class Core;

// Reads register @number into @data, which also has the input. Returns a status of
// hw::mlx5::RegisterAccess.
std::uint32_t read_management_register(const Core &core, std::uint32_t number,
				       std::span<std::uint8_t> data);

} // namespace weft::mlx5
