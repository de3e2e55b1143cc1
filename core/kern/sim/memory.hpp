// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory of the simulated kernel. Checks that everything allocated in a run has been freed at its
// end, and that nothing is freed while it is in use.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace sim::memory
{

/* Allocations that were not freed, with their callers; empty if none. */
std::string left();
/* A new run begins. */
void reset();
/*
 * An allocation, of KERN_GFP_…, that the kernel makes on behalf of the running one, from `caller`:
 * whether it fails.
 */
bool fails(unsigned int flags, const void *caller);
/* The callers whose allocations have failed because the strategy chose that, in their order. */
const std::vector<const void *> &failed_by_choice();

} // namespace sim::memory
