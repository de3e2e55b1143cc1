// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats a fabric, its links and its counters as text.
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "weft/render.hpp"

namespace weft::cli
{

using nlohmann::json;
using std::string;

namespace
{

string text(const json &object, const char *key)
{
	return printable(object.at(key).get<string>());
}

// Returns the settings that differ from a link's defaults.
string unusual(const json &settings)
{
	static const std::map<string, string> kUsual{
		{"state", "up"},     {"training", "250ms"},   {"delay", "0ms"},
		{"jitter", "0ms"},   {"loss", "0"},           {"duplication", "0"},
		{"reordering", "0"}, {"corruption", "0"},     {"silent_corruption", "0"},
		{"cm_loss", "0"},    {"cm_duplication", "0"}, {"cm_corruption", "0"},
		{"cm_lateness", "0"}};
	string result;
	for (const auto &[name, value] : settings.items()) {
		const auto found = kUsual.find(name);
		if (found != kUsual.end() && found->second != value.get<string>())
			result += fmt::format(" {}={}", printable(name),
					      printable(value.get<string>()));
	}
	return result;
}

// Uses the names of PortPhysicalState. A link that is plugged in but not up is polling until
// training ends, or while an end is disabled.
const char *link_state(const json &link)
{
	if (link.at("up").get<bool>())
		return "up";
	return link.at("settings").value("state", "down") == "up" ? "polling" : "down";
}

void add_ports(string &out, const json &node)
{
	for (const auto &port : node.at("ports"))
		if (!port.at("link").is_null())
			out += fmt::format("    {:<16} {:<4}  {}\n", text(port, "name"),
					   port.at("up").get<bool>() ? "up" : "down",
					   text(port, "link"));
}

string trunk_text(const json &trunk)
{
	string out = fmt::format("trunk  {:<16} {} {}  ", text(trunk, "name"), text(trunk, "role"),
				 text(trunk, "address"));
	out += trunk.at("connected").get<bool>()
		       ? fmt::format("connected to {}", text(trunk, "peer"))
		       : fmt::format("not connected: {}", text(trunk, "reason"));
	for (const char *const count : {"refused", "violations"})
		if (const auto number = trunk.at(count).get<std::uint64_t>(); number != 0)
			out += fmt::format(" {}={}", count, number);
	out += '\n';
	// The refused client may be any program, so it is not given as the reason why there is no
	// connection.
	if (!trunk.at("refusal").is_null())
		out += fmt::format("    last refused {}\n", text(trunk, "refusal"));
	return out;
}

string ethernet_text(const json &ethernet)
{
	string out;
	for (const auto &node : ethernet.at("switches"))
		out += fmt::format("Ethernet {:<14} knows {} addresses\n", text(node, "name"),
				   node.at("addresses").get<unsigned>());
	for (const auto &attachment : ethernet.at("attachments"))
		out += fmt::format("    {:<16} {}  {}\n", text(attachment, "name"),
				   attachment.at("guest").get<bool>() ? "guest on" : "no guest",
				   attachment.value("socket", "by its card"));
	for (const auto &link : ethernet.at("links"))
		out += "link   " + link_text(link);
	return out;
}

} // namespace

string link_text(const json &link)
{
	const auto &settings = link.at("settings");
	const string kind = settings.contains("width")
				    ? fmt::format("{} {} MTU {}", text(settings, "width"),
						  text(settings, "speed"), text(settings, "mtu"))
				    : "Ethernet";
	string line = fmt::format("{:<28} {:<4}  {}{}", text(link, "name"), link_state(link), kind,
				  unusual(settings));
	if (const auto captured = link.find("captured_packets"); captured != link.end())
		line += fmt::format(" captured={}", captured->get<std::uint64_t>());
	return line + '\n';
}

string link_faults(const json &settings)
{
	json faults = settings;
	for (const char *const other : {"state", "training"})
		faults.erase(other);
	return unusual(faults);
}

string fabric_text(const json &fabric)
{
	string out = fmt::format("seed {}\n", text(fabric, "seed"));
	for (const auto &node : fabric.at("switches")) {
		out += fmt::format("switch {:<16} {}  LID {}  {} ports\n", text(node, "name"),
				   text(node, "guid"), node.at("lid").get<unsigned>(),
				   node.at("ports").size());
		add_ports(out, node);
	}
	for (const auto &node : fabric.at("hosts")) {
		const bool pluggable = node.at("socket").is_string();
		out += fmt::format("host   {:<16} {}  {}  {}\n", text(node, "name"),
				   text(node, "guid"),
				   node.at("guest").get<bool>() ? "guest on" : "no guest",
				   text(node, pluggable ? "socket" : "model"));
		add_ports(out, node);
	}
	for (const auto &link : fabric.at("links"))
		out += "link   " + link_text(link);
	if (const auto trunks = fabric.find("trunks"); trunks != fabric.end())
		for (const auto &trunk : *trunks)
			out += trunk_text(trunk);
	if (const auto ethernet = fabric.find("ethernet"); ethernet != fabric.end())
		out += ethernet_text(*ethernet);
	if (const auto managers = fabric.find("subnet_managers"); managers != fabric.end())
		for (const auto &manager : *managers)
			out += subnet_manager_text(manager);
	else if (const auto &manager = fabric.at("subnet_manager"); !manager.is_null())
		out += subnet_manager_text(manager);
	if (const auto missing = fabric.find("missing"); missing != fabric.end())
		out += missing_text(*missing);
	return out;
}

string missing_text(const json &missing)
{
	string out;
	for (const auto &place : missing)
		out += fmt::format("missing: place {} ({}): {}\n", text(place, "place"),
				   text(place, "host"), text(place, "reason"));
	return out;
}

string subnet_manager_text(const json &manager)
{
	return fmt::format("subnet manager on {}: {}, {} sweeps{}\n", text(manager, "node"),
			   text(manager, "state"), manager.at("sweeps").get<std::uint64_t>(),
			   manager.at("complete").get<bool>() ? "" : ", the last one not complete");
}

string faults_text(const json &answer)
{
	string happened;
	for (const auto &[name, times] : answer.items())
		if (times != 0)
			happened +=
				fmt::format(" {}={}", printable(name), times.get<std::uint64_t>());
	return fmt::format("faults so far:{}\n", happened.empty() ? " none" : happened);
}

string fault_text(const string &fault, std::uint32_t count, const json &answer)
{
	return fmt::format("armed: {}, {} time{}\n", printable(fault), count,
			   count == 1 ? "" : "s") +
	       faults_text(answer);
}

string corrupted_replies_text(const json &answer)
{
	return fmt::format("corrupted replies so far: {}\n",
			   answer.at("corrupted").get<std::uint64_t>());
}

string subnet_manager_setting_text(const json &answer)
{
	return fmt::format("subnet manager on {}: {}\n", text(answer, "node"),
			   answer.at("enabled").get<bool>() ? "enabled" : "disabled");
}

string log_text(const json &log)
{
	string out;
	for (const auto &line : log.at("lines")) {
		const string part = text(line, "part") + ": ";
		string message = text(line, "text");
		// Some components put their names in front of their messages.
		if (message.starts_with(part))
			message.erase(0, part.size());
		out += fmt::format("{} {:<7} {}{}{}\n", text(line, "time"), text(line, "level"),
				   line.contains("place") ? text(line, "place") + "/" : "", part,
				   message);
	}
	return out;
}

string counters_text(const json &counters, bool all)
{
	std::vector<string> shown;
	std::size_t longest = 0;
	for (const auto &[port, values] : counters.items()) {
		longest = std::max(longest, port.size());
		for (const auto &[name, value] : values.items())
			if ((all || value.get<std::uint64_t>()) &&
			    std::ranges::find(shown, name) == shown.end())
				shown.push_back(name);
	}
	string out;
	for (const auto &[port, values] : counters.items()) {
		out += fmt::format("{:<{}}", printable(port), longest);
		for (const auto &name : shown)
			if (const auto value = values.find(name);
			    value != values.end() && (*value != 0 || all))
				out += fmt::format("  {}={}", name, value->get<std::uint64_t>());
		out += '\n';
	}
	return out;
}

} // namespace weft::cli
