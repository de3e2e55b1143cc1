// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the performance management agent (IBA 16.1) for nodes of any type. It reports
 * ClassPortInfo, PortCounters and PortCountersExtended from the counters of a node's ports.
 */
#pragma once

#include <functional>

#include <ib/pma.hpp>

#include "net/fabric/counters.hpp"

namespace weft::fabric
{

/*
 * Replaces a Get or Set by its response. Returns false if there is no response. @ports is the
 * number of the node's external ports. @counters_of returns the counters of ports 1 to @ports, or
 * null. Thread-safe.
 */
bool answer_perf_mad(ib::PerfMad &mad, unsigned ports,
		     const std::function<Counters *(unsigned port)> &counters_of);

} // namespace weft::fabric
