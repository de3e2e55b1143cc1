// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats the report of a failed test case: the seed, and the shortest interleaving that leads to
// the failure.
#pragma once
#include <string>
#include "child.hpp"

namespace explore
{

/* Repeats the failure's plan, minimises it, and returns the report. */
std::string report(const sim::Case &one, const Failure &found, const Limits &limits);

} // namespace explore
