// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Minimises a plan that fails: removes the parts that the failure does not need.
#pragma once
#include <functional>
#include <kern/sim/strategy.hpp>

namespace explore
{

/*
 * Delta debugging: removes parts of the plan as long as the rest makes the case fail. @fails runs a
 * plan. @attempts is the maximum number of runs.
 */
sim::Plan minimise(sim::Plan plan, unsigned int attempts,
		   const std::function<bool(const sim::Plan &)> &fails);

} // namespace explore
