// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory of the simulated kernel. Checks that everything allocated in a run has been freed at its
// end, and that nothing is freed while it is in use.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace sim::memory
{

/* Returns the allocations that were not freed, with their callers; empty if there are none. */
std::string left();
/* A new run begins. */
void reset();
/*
 * Decides whether an allocation with flags KERN_GFP_… fails that the kernel makes on behalf of the
 * running fiber. caller: the code that allocates.
 */
bool fails(unsigned int flags, const void *caller);
/* Returns the callers whose allocations have failed by choice of the strategy, in order. */
const std::vector<const void *> &failed_by_choice();

} // namespace sim::memory
