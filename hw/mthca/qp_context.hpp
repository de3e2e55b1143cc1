// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts QP attributes to the card's QP context and back.
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>
#include <hw/mthca/contexts.hpp>
#include "capabilities.hpp"

namespace mthca
{

/*
 * Writes the attributes in `mask` into a context. Returns the mask of optional parameters; without
 * their bits, the card would ignore some of the attributes. port: the port of the primary path.
 * Context: any. Errors: EINVAL for values out of range and for automatic path migration, which the
 * card does not support.
 */
kern::Result<u32> put_attributes(u8 *context, const Capabilities &capabilities,
				 const ib_qp_attr &attr, int mask, u32 port);

/* Reads the attributes from a context, except the state and the access rights. */
void get_attributes(const u8 *context, u32 num_ports, bool connected, ib_qp_attr &attr);

/* Writes an address path; `path` must be zero. Errors: EINVAL. */
kern::Result<> put_path(u8 *path, const Capabilities &capabilities, const rdma_ah_attr &address,
			u32 port);
/* Reads an address path. */
rdma_ah_attr get_path(const u8 *path, u32 num_ports);

} // namespace mthca
