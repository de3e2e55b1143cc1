// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The card's counters for its queues (DIAG_RPRT), with their names in Linux. They cover the whole
 * card, not single ports. If the card has only one port, the counters of queue pairs are therefore
 * also reported for the port.
 */
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_hw_counters.h>
#include "hca.hpp"

namespace mlx4
{

/* Returns nullptr for a port without separate counters; port 0 is the card. Context: any. */
const rdma_hw_counters *counters_of(const Hca &hca, u32 port);

/* values: as many as counters_of() has. May sleep. Errors: those of commands. */
kern::Result<> read_counters(Hca &hca, const rdma_hw_counters &counters, u64 *values);

} // namespace mlx4
