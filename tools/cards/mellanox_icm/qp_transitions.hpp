// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lists the commands that change the state of a queue pair, and the parameters that each requires
// (IBA 10.3.1).
#pragma once

#include <cstdint>

#include <hw/mlx4/commands.hpp>

#include "cards/hca/types.hpp"

namespace weft::mellanox_icm
{

// Sets of parameters that a transition requires, without bits of the opt mask.
enum class Required : std::uint8_t { none, to_rtr, to_rts };

struct Transition {
	hw::mlx4::Opcode opcode;
	hca::QpState from;
	hca::QpState to;
	Required required;
};

// Returns the transition, or null if the opcode is not permitted in this state.
const Transition *find_transition(hw::mlx4::Opcode opcode, hca::QpState from);

} // namespace weft::mellanox_icm
