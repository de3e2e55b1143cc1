// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes QP state transitions as commands of the card (IBA 10.3; Documentation/connectx.rst,
// "Transitions").
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>
#include <hw/mlx4/commands.hpp>
#include <hw/mlx4/contexts.hpp>
#include "../mellanox_icm/qp_states.hpp"
#include "capabilities.hpp"

namespace mlx4
{

using mellanox_icm::transition_command;
using mellanox_icm::verbs_state;

/*
 * Writes the attributes in `mask` into a context. Returns the mask of optional parameters; without
 * their bits, the card would ignore some of the attributes. port: the port of the primary path.
 * Context: any. Errors: EINVAL for values out of range.
 */
kern::Result<u32> put_attributes(u8 *context, const Capabilities &capabilities,
				 const ib_qp_attr &attr, int mask, u32 port, ib_qp_type type);

/* Writes an address path; `path` must be zero. Errors: EINVAL. */
kern::Result<> put_path(u8 *path, const Capabilities &capabilities, const rdma_ah_attr &address,
			u32 port);
/* Reads an address path. */
rdma_ah_attr get_path(const u8 *path, u32 num_ports);

} // namespace mlx4
