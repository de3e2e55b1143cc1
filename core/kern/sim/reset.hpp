// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// State that each part of the simulation resets when a run begins, and checks at its end.
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
 * A queue of works that has not been destroyed, a mapping for DMA or a device that has not been
 * ended: its name, or empty.
 */
std::string left_queues();
std::string left_mappings();
/* A network interface, or a kind of them. */
std::string left_interfaces();
/* The kernel's log of the run. */
std::string messages();

} // namespace sim
