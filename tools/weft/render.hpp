// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats the description of a fabric that weftd returns on its control socket, as text and as
// drawings.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace weft::cli
{

// All functions throw nlohmann::json::exception if a value is not the result of the command.

// Returns the result of "fabric.show" as text, with a line for every node and link.
std::string fabric_text(const nlohmann::json &fabric);
// Returns the result of "fabric.show" as a drawing, with switches above hosts.
std::string fabric_svg(const nlohmann::json &fabric);
// Formats the result of "counters" as a table. Unless @all is set, omits counters that are zero on
// all ports.
std::string counters_text(const nlohmann::json &counters, bool all);
// Returns a line for each place of the lab that has not answered.
std::string missing_text(const nlohmann::json &missing);
// Returns the result of "log" as text, with a line for each entry.
std::string log_text(const nlohmann::json &log);
// Returns a link's state and settings in one line.
std::string link_text(const nlohmann::json &link);
// Returns the faults that are injected into a link, from its settings: " loss=0.05", or an empty
// string.
std::string link_faults(const nlohmann::json &settings);

// Sort order of `weft top`.
enum class TopOrder { rate, errors, name };
// Returns the order for a key (r, e, n).
std::optional<TopOrder> top_order_of(char key);

struct TopView {
	std::size_t width = 0, height = 0; // size of the screen; 0 means that it is not limited
	TopOrder order = TopOrder::rate;
	std::string title;
};
// Returns a table of "fabric.show" and two results of "fabric.sample", with a line for each link
// and its rates in the interval.
std::string top_text(const nlohmann::json &fabric, const nlohmann::json &before,
		     const nlohmann::json &now, const TopView &view);

// Formats the answer of a card for which a fault was armed for the next @count operations: which
// faults will occur, and which have occurred so far.
std::string fault_text(const std::string &fault, std::uint32_t count, const nlohmann::json &answer);
// Returns the faults that have occurred so far, in one line.
std::string faults_text(const nlohmann::json &answer);

// Formats the answer of "sm.corrupt-replies".
std::string corrupted_replies_text(const nlohmann::json &answer);

// Returns the subnet manager's state in one line.
std::string subnet_manager_text(const nlohmann::json &manager);
// Returns one line that reports whether the manager is enabled, from the answer of sm.enable or
// sm.disable.
std::string subnet_manager_setting_text(const nlohmann::json &answer);

} // namespace weft::cli
