// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the memory of the simulated kernel. It checks that everything that is allocated in a
// run is freed by its end, and that nothing is freed while it is used.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace sim::memory
{

/*
 * Returns a list of the allocations that were not freed, with their callers; empty if there are
 * none.
 */
std::string left();
/* Called when a new run begins. */
void reset();
/*
 * Returns true if an allocation with these flags (KERN_GFP_…) shall fail. Called for allocations
 * that the simulation makes on behalf of the running fiber. @caller: the code that allocates.
 */
bool fails(unsigned int flags, const void *caller);
/* Returns the callers whose allocations the strategy has made fail, in order. */
const std::vector<const void *> &failed_by_choice();

} // namespace sim::memory
