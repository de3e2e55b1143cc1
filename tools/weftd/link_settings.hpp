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

// Returns the current settings of @link.
fabric::LinkConfig config_of(const fabric::Link &link);
// Changes the settings of @link to @wanted. Sets only those that differ, so that the link does not
// retrain unnecessarily.
void change_link(fabric::Link &link, const fabric::LinkConfig &wanted);

// Returns the names of the settings, in display order.
const std::vector<std::string_view> &link_setting_names();

// Sets @name to @value. Throws std::invalid_argument with the reason if the setting or the value
// does not exist.
void apply_link_setting(fabric::LinkConfig &config, std::string_view name, std::string_view value);

// Returns the value of @name in the form that apply_link_setting() accepts.
std::string link_setting(const fabric::LinkConfig &config, std::string_view name);

// The same functions for Ethernet links, which have some of these settings.
const std::vector<std::string_view> &ethernet_setting_names();
void apply_ethernet_setting(ethernet::LinkSettings &settings, std::string_view name,
			    std::string_view value);
std::string ethernet_setting(const ethernet::LinkSettings &settings, std::string_view name);

} // namespace weft::weftd
