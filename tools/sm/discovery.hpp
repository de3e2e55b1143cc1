// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Discovers the nodes, switches and links of a subnet. */
#pragma once

#include <optional>

#include "sm/mad_client.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Walk the subnet by directed routes from the manager's own port, breadth first, a level at a time
 * (IBA 14.4.3). A node that does not answer, or sends invalid answers, is left out and logged. The
 * result has nodes, switches, links and PortInfo as they are; nothing is changed.
 */
Subnet discover(MadClient &client);

/*
 * The same, of what a sweep before has found: only switches that say that a port's state has
 * changed are read anew, and only what is behind such ports is looked for. Nothing if that does not
 * do: discover(). A change of a node that changes no link (its description, a capability) is not
 * seen.
 */
std::optional<Subnet> discover_changes(MadClient &client, const Subnet &before);

} // namespace weft::sm
