// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The settings of a link by name, as a lab file and `weft link set` give them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabric/link.hpp"

namespace weft::weftd
{

// The names, in the order in which they are best shown.
const std::vector<std::string_view> &link_setting_names();

// Sets @name to @value, both as text. Throws std::invalid_argument with the reason if there is no
// such setting or no such value.
void apply_link_setting(fabric::LinkConfig &config, std::string_view name, std::string_view value);

// The value of @name as text that apply_link_setting() takes.
std::string link_setting(const fabric::LinkConfig &config, std::string_view name);

} // namespace weft::weftd
