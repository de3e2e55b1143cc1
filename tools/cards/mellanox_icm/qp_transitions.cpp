// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/qp_transitions.hpp"

#include <algorithm>
#include <iterator>

namespace weft::mellanox_icm
{

using hca::QpState;
using hw::mlx4::Opcode;

namespace
{

constexpr Transition kTransitions[] = {
	{Opcode::init2init_qp, QpState::init, QpState::init, Required::none},
	{Opcode::init2rtr_qp, QpState::init, QpState::rtr, Required::to_rtr},
	{Opcode::rtr2rts_qp, QpState::rtr, QpState::rts, Required::to_rts},
	{Opcode::rts2rts_qp, QpState::rts, QpState::rts, Required::none},
	{Opcode::sqerr2rts_qp, QpState::sqer, QpState::rts, Required::none},
	{Opcode::rts2sqd_qp, QpState::rts, QpState::sq_draining, Required::none},
	{Opcode::sqd2sqd_qp, QpState::sqd, QpState::sqd, Required::none},
	{Opcode::sqd2rts_qp, QpState::sqd, QpState::rts, Required::none},
	// A driver may cancel draining.
	{Opcode::sqd2rts_qp, QpState::sq_draining, QpState::rts, Required::none},
};

} // namespace

const Transition *find_transition(Opcode opcode, QpState from)
{
	const auto found = std::ranges::find_if(kTransitions, [&](const Transition &t) {
		return t.opcode == opcode && t.from == from;
	});
	return found == std::end(kTransitions) ? nullptr : found;
}

} // namespace weft::mellanox_icm
