// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Assigns numbers to the hosts, links and Ethernet ports of a lab, and determines the order of
// ports, from the contents of the lab file. Therefore the numbers are the same at each start, and
// in each daemon if several daemons run parts of the lab.
#pragma once

#include <vector>

#include "weftd/lab.hpp"

namespace weft::weftd
{

// Hosts and links of the @running lab keep their numbers; others get the first free number (hosts),
// or one that no link has had yet.
void number_hosts(Lab &lab, const Lab *running);
void number_links(Lab &lab, const Lab *running);
// Attachments that stay on their Ethernet keep their ports; others get the first free one, in the
// order of their names.
void number_attachments(Lab &lab, const Lab *running);

// Returns the end ports in the order in which a subnet manager discovers them if all links are up;
// none if the lab has no subnet manager.
std::vector<sm::ExpectedPort> expected_ports(const Lab &lab);

} // namespace weft::weftd
