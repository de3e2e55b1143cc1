// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Reads the card's counters for its queues (DIAG_RPRT), which have the same names as in Linux. The
 * counters cover the whole card, not single ports. If the card has only one port, the counters of
 * queue pairs are also reported for that port.
 */
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_hw_counters.h>
#include "hca.hpp"

namespace mlx4
{

/*
 * Returns the counters of the card (port 0) or of a port; nullptr for a port without its own
 * counters. Context: any.
 */
const rdma_hw_counters *counters_of(const Hca &hca, u32 port);

/* Reads the counters. values: has space for all of them. May sleep. Errors: those of commands. */
kern::Result<> read_counters(Hca &hca, const rdma_hw_counters &counters, u64 *values);

} // namespace mlx4
