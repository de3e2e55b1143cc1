// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Enables the link rates that a driver, instead of the subnet manager, selects for its own port. */
#pragma once

#include <ib/smp.hpp>

#include "net/fabric/port.hpp"

namespace weft::fabric
{

/*
 * Enables the rates of @wanted that the port supports. Returns false, and changes nothing, if it
 * supports no width or no speed of them.
 */
bool enable_rates(ib::PortInfo &info, const EnabledRates &wanted);

} // namespace weft::fabric
