// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/plan_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace weft::weftd
{

using nlohmann::json;

namespace
{

// Number of names of one kind that the text shows; one more is shown instead of "1 more".
constexpr std::size_t kMostNames = 8;

// Returns null if the address of the listening place has no port.
json port_of(const Plan &plan, const PlannedTrunk &trunk)
{
	const auto &address = plan.places[trunk.listens].address;
	return address && address->has_port() ? json(address->port() + trunk.index) : json();
}

json address_of(const LabPlace &place)
{
	if (!place.address)
		return {};
	return place.address->has_port() ? place.address->text() : place.address->host_text();
}

json describe_place(const Lab &lab, const Plan &plan, std::size_t here)
{
	json result{{"name", plan.places[here].name},
		    {"address", address_of(plan.places[here])},
		    {"subnet_manager", lab.sm_enabled && plan.place_of.at(kSmNode) == here},
		    {"standby", !lab.sm_standby.empty() && plan.place_of.at(kStandbyNode) == here},
		    {"switches", json::array()},
		    {"hosts", json::array()},
		    {"ethernets", json::object()},
		    {"peers", json::object()},
		    {"trunks", json::array()}};
	for (const auto &config : lab.switches)
		if (plan.place_of.at(config.name) == here)
			result["switches"].push_back(config.name);
	for (const LabHost &host : lab.hosts)
		if (plan.place_of.at(host.name) == here)
			result["hosts"].push_back(host.name);
	// The ports of the hosts of each Ethernet.
	for (const LabEthernet &ethernet : lab.ethernets)
		if (plan.ethernets.at(ethernet.name).contains(here))
			result["ethernets"][ethernet.name] = json::array();
	for (const LabAttachment &attachment : lab.attachments)
		if (plan.place_of.at(attachment.host) == here)
			result["ethernets"][attachment.network].push_back(attachment.port);
	for (const PlannedTrunk &trunk : plan.trunks) {
		if (trunk.listens != here && trunk.connects != here)
			continue;
		const bool listens = trunk.listens == here;
		const LabPlace &peer = plan.places[listens ? trunk.connects : trunk.listens];
		result["peers"][peer.name] = address_of(peer);
		result["trunks"].push_back(
			{{"link", trunk.name},
			 {"ethernet", trunk.network.empty() ? json() : json(trunk.network)},
			 {"role", listens ? "listens" : "connects"},
			 {"peer", peer.name},
			 {"index", trunk.index},
			 {"port", port_of(plan, trunk)}});
	}
	return result;
}

std::string names_text(const json &names, const char *kind)
{
	std::string text = fmt::format("    {} ({}):", kind, names.size());
	const std::size_t shown = names.size() > kMostNames + 1 ? kMostNames : names.size();
	for (std::size_t i = 0; i < shown; ++i)
		text += fmt::format(" {}", names[i].get<std::string>());
	if (shown < names.size())
		text += fmt::format(" and {} more", names.size() - shown);
	return names.empty() ? std::string() : text + '\n';
}

std::string place_text(const json &place)
{
	const auto &address = place.at("address");
	std::string text = fmt::format(
		"place  {:<16} {}{}{}\n", place.at("name").get<std::string>(),
		address.is_null() ? "no address" : address.get<std::string>(),
		place.at("subnet_manager").get<bool>() ? "  runs the subnet manager" : "",
		place.at("standby").get<bool>() ? "  runs the subnet manager on standby" : "");
	text += names_text(place.at("switches"), "switches");
	text += names_text(place.at("hosts"), "hosts");
	json ethernets = json::array();
	for (const auto &[name, ports] : place.at("ethernets").items())
		ethernets.push_back(name);
	text += names_text(ethernets, "Ethernets");
	const auto &trunks = place.at("trunks");
	const std::size_t shown = trunks.size() > kMostNames + 1 ? kMostNames : trunks.size();
	for (std::size_t i = 0; i < shown; ++i) {
		const auto &trunk = trunks[i];
		const auto peer = trunk.at("peer").get<std::string>();
		const unsigned port = trunk.at("port").is_null()
					      ? kTrunkPort + trunk.at("index").get<unsigned>()
					      : trunk.at("port").get<unsigned>();
		text += fmt::format("    trunk {:<28} ", trunk.at("link").get<std::string>());
		text += trunk.at("role") == "listens"
				? fmt::format("listens at port {} for {}\n", port, peer)
				: fmt::format("connects to {} at port {}\n", peer, port);
	}
	if (shown < trunks.size())
		text += fmt::format("    and {} more trunks\n", trunks.size() - shown);
	return text;
}

} // namespace

json describe(const Lab &lab, const Plan &plan, const std::set<std::string> &shown)
{
	for (const auto &name : shown)
		plan.find(name);
	json places = json::array();
	for (std::size_t i = 0; i < plan.places.size(); ++i)
		if (shown.empty() || shown.contains(plan.places[i].name))
			places.push_back(describe_place(lab, plan, i));
	return {{"places", places}, {"trunks", plan.trunks.size()}};
}

std::string plan_text(const Lab &lab, const Plan &plan, const std::set<std::string> &shown)
{
	const json described = describe(lab, plan, shown);
	std::string text;
	for (const auto &place : described.at("places"))
		text += place_text(place);
	const auto of_ethernets = std::ranges::count_if(
		plan.trunks, [](const auto &trunk) { return !trunk.network.empty(); });
	const auto of_links = std::ssize(plan.trunks) - of_ethernets;
	text += fmt::format("{} of {} links are trunks between places", of_links, lab.links.size());
	if (of_ethernets)
		text += fmt::format("; {} more trunks connect Ethernets", of_ethernets);
	return text + '\n';
}

} // namespace weft::weftd
