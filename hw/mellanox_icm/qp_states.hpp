// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What a QP is, and its states, as commands (IBA 10.3; Documentation/mlx4.rst, "Transitions").
#pragma once
#include <hw/mellanox_icm/commands.hpp>
#include <hw/mellanox_icm/contexts.hpp>
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>
#include "command.hpp"

namespace mellanox_icm
{

/* How requests become descriptors. */
enum class QpKind : u8 {
	connected, // RC, UC, XRC
	datagram,
	special, // SMI, GSI: whole packets
};

QpKind kind_of(ib_qp_type type);
/* As the card has it; RC for what no card serves. */
hw::mellanox_icm::ServiceType service_of(ib_qp_type type);

/*
 * The command that takes a QP from one state to another. Errors: EINVAL where there is none. RESET
 * to RESET is no command either; the caller sees to it.
 */
kern::Result<hw::mellanox_icm::Opcode> transition_command(ib_qp_state from, ib_qp_state to);

/*
 * How the card answers it. On the way to RTS all it does is to take the QP's attributes, and what
 * it tells of a QP then may come whenever it comes: whoever makes a connection takes four such
 * steps, and would sleep in each. Of all others somebody hears an event, or frees memory behind
 * them.
 */
constexpr Answer answer_of(hw::mellanox_icm::Opcode transition)
{
	switch (transition) {
	case hw::mellanox_icm::Opcode::rst2init_qp:
	case hw::mellanox_icm::Opcode::init2init_qp:
	case hw::mellanox_icm::Opcode::init2rtr_qp:
	case hw::mellanox_icm::Opcode::rtr2rts_qp:
		return Answer::at_once;
	default:
		return Answer::event;
	}
}

/* Our state for the card's, and whether it is still draining. */
ib_qp_state verbs_state(hw::mellanox_icm::QpState state);

} // namespace mellanox_icm
