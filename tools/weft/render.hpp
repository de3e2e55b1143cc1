// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A fabric, as the control socket describes it, for people to look at.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace weft::cli
{

// All throw nlohmann::json::exception for what is not the result of the command.

// Of "fabric.show": a line for every node and link.
std::string fabric_text(const nlohmann::json &fabric);
// Of "fabric.show": a drawing, switches above, hosts below.
std::string fabric_svg(const nlohmann::json &fabric);
// Of "counters": a table, without those that are zero everywhere unless @all.
std::string counters_text(const nlohmann::json &counters, bool all);
// A link's state and settings, on a line.
std::string link_text(const nlohmann::json &link);

// The subnet manager's state, on a line.
std::string subnet_manager_text(const nlohmann::json &manager);

} // namespace weft::cli
