// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Assigns each end of a lab's links to a port of its node.
#pragma once

#include <string>

#include "weftd/lab.hpp"

namespace weft::weftd
{

/*
 * Every end names a port that is there and is not taken; ends without a number get that which they
 * have in the @running lab, if there is one, or the first that no link asks for. The subnet manager
 * is plugged in last, where a port is left; @sm_section is where the file speaks of it, for errors.
 * Throws LabError.
 */
void assign_ports(Lab &lab, const std::string &sm_section, const Lab *running);

} // namespace weft::weftd
