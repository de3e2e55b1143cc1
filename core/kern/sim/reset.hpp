// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the functions that reset the parts of the simulation when a run begins, and report
// objects that still exist at the end of a run.
#pragma once
#include <string>

namespace sim
{

void reset_rcu();
void reset_works();
void reset_devices();
void reset_messages();
void reset_kunit();
void reset_interfaces();
void reset_functions();

/*
 * These return the name of a work queue that was not destroyed, and of a DMA mapping or device that
 * was not released; empty if there is none.
 */
std::string left_queues();
std::string left_mappings();
/*
 * Returns the name of an interface or link type that was not unregistered; empty if there is none.
 */
std::string left_interfaces();
/* Returns the kernel log of the run. */
std::string messages();

} // namespace sim
