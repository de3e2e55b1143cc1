// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Discovers the nodes, switches and links of a subnet. */
#pragma once

#include <optional>

#include "sm/mad_client.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Explores the subnet by directed routes from the manager's own port, breadth first, one level at a
 * time (IBA 14.4.3). A node that does not respond, or sends invalid responses, is skipped and
 * logged. The result describes nodes, switches, links and PortInfo as they are; nothing is changed.
 */
Subnet discover(MadClient &client);

/*
 * Explores the subnet based on the result of an earlier sweep. Reads only switches that report a
 * change of a port's state, and searches only behind such ports for nodes. Returns nothing if this
 * is not sufficient, and discover() must be used. Does not detect changes that do not affect links
 * (of a node description or a capability).
 */
std::optional<Subnet> discover_changes(MadClient &client, const Subnet &before);

} // namespace weft::sm
