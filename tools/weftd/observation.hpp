// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Samples the state of a running lab that `weft top` and `weft web` poll. One response contains the
// counters of all ports. To create it, weftd takes no lock that forwarding a packet takes. Clients
// compute rates from two responses.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "net/fabric/counters.hpp"

namespace weft::fabric
{
class Port;
}

namespace weft::sm
{
class SubnetManager;
}

namespace weft::weftd
{

class LabRuntime;

// Returns counters by their names on the control socket.
nlohmann::json counters_of(const fabric::Port &port);
// Returns all ports of switches and of end nodes.
std::vector<fabric::Port *> all_ports(LabRuntime &runtime);
// Returns the state of the active subnet manager, or null if the lab has none.
nlohmann::json state_of_manager(const LabRuntime &runtime);
// Returns the states of all.
nlohmann::json states_of_managers(const LabRuntime &runtime);

// Answers "fabric.sample"; weftd(1) documents the contents.
nlohmann::json observe(LabRuntime &runtime);

} // namespace weft::weftd
