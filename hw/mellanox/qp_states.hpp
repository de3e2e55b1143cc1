// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What a QP is, and its states, as commands (IBA 10.3; Documentation/connectx.rst, "Transitions").
#pragma once
#include <hw/mellanox/commands.hpp>
#include <hw/mellanox/contexts.hpp>
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>

namespace mellanox
{

/* How requests become descriptors. */
enum class QpKind : u8 {
	connected, // RC, UC, XRC
	datagram,
	special, // SMI, GSI: whole packets
};

QpKind kind_of(ib_qp_type type);
/* As the card has it; RC for what no card serves. */
hw::mellanox::ServiceType service_of(ib_qp_type type);

/*
 * The command that takes a QP from one state to another. Errors: EINVAL where there is none. RESET
 * to RESET is no command either; the caller sees to it.
 */
kern::Result<hw::mellanox::Opcode> transition_command(ib_qp_state from, ib_qp_state to);

/* Our state for the card's, and whether it is still draining. */
ib_qp_state verbs_state(hw::mellanox::QpState state);

} // namespace mellanox
