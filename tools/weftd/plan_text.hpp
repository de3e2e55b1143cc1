// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats the plan of a lab that several daemons run together (lab_plan.hpp) for `weft lab plan`:
// as text for users, and as JSON for programs.
#pragma once

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "weftd/lab_plan.hpp"

namespace weft::weftd
{

// @shown: names of the places to describe; empty for all. Throws std::invalid_argument if there is
// no such place.
nlohmann::json describe(const Lab &lab, const Plan &plan, const std::set<std::string> &shown);
std::string plan_text(const Lab &lab, const Plan &plan, const std::set<std::string> &shown);

} // namespace weft::weftd
