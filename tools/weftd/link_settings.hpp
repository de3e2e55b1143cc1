// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and applies the settings of a link, by their names in lab files and `weft link set`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/ethernet/link.hpp"
#include "net/fabric/link.hpp"

namespace weft::weftd
{

// Returns the present settings of @link.
fabric::LinkConfig config_of(const fabric::Link &link);
// Changes @link to @wanted. Only differences take effect, so that a link is not trained again
// without need.
void change_link(fabric::Link &link, const fabric::LinkConfig &wanted);

// The names, in the order in which they are best shown.
const std::vector<std::string_view> &link_setting_names();

// Sets @name to @value, both as text. Throws std::invalid_argument with the reason if there is no
// such setting or no such value.
void apply_link_setting(fabric::LinkConfig &config, std::string_view name, std::string_view value);

// The value of @name as text that apply_link_setting() takes.
std::string link_setting(const fabric::LinkConfig &config, std::string_view name);

// The same of an Ethernet link, which has some of these settings.
const std::vector<std::string_view> &ethernet_setting_names();
void apply_ethernet_setting(ethernet::LinkSettings &settings, std::string_view name,
			    std::string_view value);
std::string ethernet_setting(const ethernet::LinkSettings &settings, std::string_view name);

} // namespace weft::weftd
