// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Minimises a plan that fails: removes the parts that the failure does not need.
#pragma once
#include <functional>
#include <kern/sim/strategy.hpp>

namespace explore
{

/*
 * Delta debugging: takes parts of the plan away for as long as it fails by what is left. fails:
 * tries one. attempts: no more tries than that.
 */
sim::Plan minimise(sim::Plan plan, unsigned int attempts,
		   const std::function<bool(const sim::Plan &)> &fails);

} // namespace explore
