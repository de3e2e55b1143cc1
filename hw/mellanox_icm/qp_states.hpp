// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Maps QP types and QP state transitions to commands of the card (IBA 10.3;
// Documentation/connectx.rst, "Transitions").
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
 * Returns the command that moves a QP from one state to another. Errors: EINVAL if there is none.
 * The caller handles RESET to RESET, for which the card has no command.
 */
kern::Result<hw::mellanox_icm::Opcode> transition_command(ib_qp_state from, ib_qp_state to);

/*
 * Returns how the command of a transition completes. Up to RTS, the card only stores the QP's
 * attributes, and no event of the QP must be handled first. A connection needs four such commands,
 * so they are polled, and the caller need not sleep in each. Before all other transitions complete,
 * earlier events must be handled, because the caller may free memory.
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

/*
 * Returns the verbs' state for a card's state; the caller must check whether the QP is still
 * draining.
 */
ib_qp_state verbs_state(hw::mellanox_icm::QpState state);

} // namespace mellanox_icm
