// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Assigns each end of a lab's links to a port of its node.
#pragma once

#include <string>

#include "weftd/lab.hpp"

namespace weft::weftd
{

/*
 * Every end must name a port that exists and is free. Ends without a number get the port that they
 * have in the @running lab, if there is one, or the first that no link requests. The subnet manager
 * is connected last, to a port that is left; @sm_section is the place in the file that configures
 * it, for errors. Throws LabError.
 */
void assign_ports(Lab &lab, const std::string &sm_section, const Lab *running);

} // namespace weft::weftd
