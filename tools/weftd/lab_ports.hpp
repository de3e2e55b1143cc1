// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Assigns each end of a lab's links to a port of its node.
#pragma once

#include <string>

#include "weftd/lab.hpp"
#include "weftd/lab_plan.hpp"

namespace weft::weftd
{

/*
 * Assigns a port to each end of a link. A port number in the file must exist and be free. Ends
 * without a number get the port that they have in the @running lab, if there is one, or else the
 * first port that no link requests. The subnet manager is connected last, to a remaining port of
 * one of its switches (@near_manager) if there are such; @sm_section is the location of its
 * settings, for errors. Throws LabError.
 */
void assign_ports(Lab &lab, const std::string &sm_section, const Lab *running,
		  const ManagerSwitches &near_manager);

} // namespace weft::weftd
