// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the port registers, for example the link speed (PTYS). Drivers access them by the
// command ACCESS_REG. Management programs and iPXE access them through the gateway (gateway.hpp).
#pragma once

#include <cstdint>
#include <span>

namespace weft::mlx5
{

class Core;

enum class PortRegister : std::uint8_t {
	ok,
	unsupported, // the card does not have the register, or not this access to it
	bad_port,
	bad_value,
	too_short, // the register is longer than the data
};

// Reads register @number into @data, which also has the port.
PortRegister read_port_register(const Core &core, std::uint32_t number,
				std::span<std::uint8_t> data);
// A new speed or width is used when the link trains next.
PortRegister write_port_register(Core &core, std::uint32_t number,
				 std::span<const std::uint8_t> data);

} // namespace weft::mlx5
