// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A failure as it is told: by its seed, and by the shortest interleaving that leads there.
#pragma once
#include <string>
#include "child.hpp"

namespace explore
{

/* Tries the failure's plan again, and without parts of it. */
std::string report(const sim::Case &one, const Failure &found, const Limits &limits);

} // namespace explore
