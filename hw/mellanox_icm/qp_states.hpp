// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// QP types, and QP state transitions as commands (IBA 10.3; Documentation/connectx.rst,
// "Transitions").
#pragma once
#include <hw/mellanox_icm/commands.hpp>
#include <hw/mellanox_icm/contexts.hpp>
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>
#include "command.hpp"

namespace mellanox_icm
{

/* The kind of a QP determines how work requests are translated to descriptors. */
enum class QpKind : u8 {
	connected, // RC, UC, XRC
	datagram,
	special, // SMI, GSI: whole packets
};

QpKind kind_of(ib_qp_type type);
/* Returns the service type in the card's format; RC for types that no card supports. */
hw::mellanox_icm::ServiceType service_of(ib_qp_type type);

/*
 * The command that takes a QP from one state to another. Errors: EINVAL where there is none. RESET
 * to RESET is no command either; the caller sees to it.
 */
kern::Result<hw::mellanox_icm::Opcode> transition_command(ib_qp_state from, ib_qp_state to);

/*
 * Completion method of a transition. On the way to RTS the card only takes the QP's attributes, and
 * the events of a QP in that phase may come at any time: a connection needs four such transitions,
 * and would sleep in each. All others are followed by an event that must be handled first, or by
 * freeing memory.
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

/* The verbs state for the card's state, and whether it is still draining. */
ib_qp_state verbs_state(hw::mellanox_icm::QpState state);

} // namespace mellanox_icm
