// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Describes the LIDs, partitions and routes of nodes as the last sweep of the lab's own subnet
// manager has configured them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <ib/types.hpp>

namespace weft::sm
{
struct Subnet;
}

namespace weft::weftd
{

class LabRuntime;

// Returns the subnet. Returns null unless the lab's own subnet manager is master, because the LIDs
// of another manager are not known here.
std::shared_ptr<const sm::Subnet> managed_subnet(LabRuntime &runtime);
// Returns the LID of a port of an end node, numbered from 1. Returns 0 if there is none, or if
// @subnet is null.
ib::Lid lid_of(const sm::Subnet *subnet, ib::Guid node, std::size_t port);
// Answers "fabric.subnet"; weftd(1) documents the contents. Throws std::invalid_argument if no node
// has this name. @guid: of the node, if it belongs to another place of the lab.
nlohmann::json describe_subnet_node(LabRuntime &runtime, const std::string &name,
				    std::optional<ib::Guid> guid = std::nullopt);
// Returns the LIDs of the ports of each node, from port 0, by the node's GUID. Returns an empty
// object if there is no managed_subnet().
nlohmann::json lids_of_subnet(LabRuntime &runtime);

} // namespace weft::weftd
