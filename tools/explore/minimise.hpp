// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Minimises the recorded decisions of a failing run (Plan in core/kern/sim/strategy.hpp): removes
// the context switches and other decisions that are not needed to reproduce the failure.
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
