// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Renders the control socket's description of a fabric for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace weft::cli
{

// All functions throw nlohmann::json::exception for values that are not the result of the command.

// Text of "fabric.show": a line for every node and link.
std::string fabric_text(const nlohmann::json &fabric);
// Drawing of "fabric.show": switches above, hosts below.
std::string fabric_svg(const nlohmann::json &fabric);
// Formats the result of "counters" as a table. Counters that are zero everywhere are left out
// unless @all is set.
std::string counters_text(const nlohmann::json &counters, bool all);
// Text of "log": a line for each entry.
std::string log_text(const nlohmann::json &log);
// A link's state and settings, on a line.
std::string link_text(const nlohmann::json &link);
// Faults that are injected into a link, from its settings: " loss=0.05", or nothing.
std::string link_faults(const nlohmann::json &settings);

// Sort order of `weft top`.
enum class TopOrder { rate, errors, name };
// Returns the order for a key: r, e, n.
std::optional<TopOrder> top_order_of(char key);

struct TopView {
	std::size_t width = 0, height = 0; // size of the screen; 0 means unlimited
	TopOrder order = TopOrder::rate;
	std::string title;
};
// Table of "fabric.show" and two results of "fabric.sample": a line for each link, with its rates
// in between.
std::string top_text(const nlohmann::json &fabric, const nlohmann::json &before,
		     const nlohmann::json &now, const TopView &view);

// A card's answer to a fault that was armed for the next @count operations: what will happen, and
// which faults have happened so far.
std::string fault_text(const std::string &fault, std::uint32_t count, const nlohmann::json &answer);
// The faults that have happened so far, on a line.
std::string faults_text(const nlohmann::json &answer);

// The subnet manager's state, on a line.
std::string subnet_manager_text(const nlohmann::json &manager);
// One line that reports if the manager is enabled, from the answer of sm.enable or sm.disable.
std::string subnet_manager_setting_text(const nlohmann::json &answer);

} // namespace weft::cli
