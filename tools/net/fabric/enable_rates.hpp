// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sets the enabled rates in PortInfo for a driver that selects the rates of its own port. Usually
 * the subnet manager does this.
 */
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
