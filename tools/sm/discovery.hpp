// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include "sm/mad_client.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Walk the subnet by directed routes from the manager's own port, breadth first, a level at a time
 * (IBA 14.4.3). What does not answer, or answers nonsense, is left out and logged. The result has
 * nodes, switches, links and PortInfo as they are; nothing is changed.
 */
Subnet discover(MadClient &client);

} // namespace weft::sm
