// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Calls the card's own management agents by the command MAD_IFC.
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_mad.h>
#include <ib/smp.hpp>
#include "command.hpp"

namespace mellanox_icm
{

/* The completion and GRH of a MAD that was received. */
struct MadOrigin {
	const ib_wc *wc;
	const ib_grh *grh;
};

/*
 * Passes a MAD of 256 bytes to the agents of a port, and returns their response. A refusal is
 * reported in the response's own status. flags: hw::mellanox_icm::MadIfc::op_…; origin: the origin
 * of a received MAD, or nullptr. May sleep. Errors: those of commands.
 */
kern::Result<> ask_agent(CommandInterface &commands, u32 port, u8 flags, const MadOrigin *origin,
			 const void *request, void *answer);

/*
 * Reads an attribute of the port's subnet management agent into smp.data. Errors: EIO if the agent
 * refuses.
 */
kern::Result<> get_attribute(CommandInterface &commands, u32 port, ib::SmAttribute attribute,
			     u32 modifier, ib::Smp &smp);

/*
 * Implements the method process_mad of a device: handles a MAD that was received, or that a local
 * client has sent to its own port.
 */
int process_mad(CommandInterface &commands, u32 port, int flags, const ib_wc *wc, const ib_grh *grh,
		const ib_mad &in, ib_mad &out);

} // namespace mellanox_icm
