// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Derives the numbers of hosts and links, and the order of ports, from the lab file, so that they
// are the same in each part of a lab and at each start.
#pragma once

#include <vector>

#include "weftd/lab.hpp"

namespace weft::weftd
{

// Hosts and links of the @running lab keep their numbers; others get the first free number (hosts),
// or one that no link has had yet.
void number_hosts(Lab &lab, const Lab *running);
void number_links(Lab &lab, const Lab *running);

// Returns the end ports in the order in which a subnet manager discovers them if all links are up;
// none if the lab has no subnet manager.
std::vector<sm::ExpectedPort> expected_ports(const Lab &lab);

} // namespace weft::weftd
