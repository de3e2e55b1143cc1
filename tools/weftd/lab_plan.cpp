// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_plan.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "weftd/placement.hpp"

namespace weft::weftd
{

namespace
{

using PlaceOf = std::map<std::string, std::size_t, std::less<>>;

// Assigns the nodes of a lab to places. Links may have ends that do not exist.
class Assignment
{
public:
	Assignment(const Lab &lab, const std::vector<LabPlace> &places) : lab_(lab), places_(places)
	{
		for (const auto &config : lab.switches)
			switches_.emplace(config.name, switches_.size());
		for (const LabHost &host : lab.hosts)
			hosts_.emplace(host.name, &host);
		for (const LabLink &link : lab.links)
			for (const unsigned side : {0u, 1u})
				if (hosts_.contains(link.ends[side].node))
					peers_[link.ends[side].node].push_back(
						link.ends[1 - side].node);
	}

	PlaceOf run()
	{
		place_switches();
		place_hosts();
		for (const LabTrunk &trunk : lab_.trunks)
			for (const LabLink &link : lab_.links)
				if (link.ends[1] == trunk.end)
					follow(trunk.name, link.ends[0].node);
		return std::move(place_of_);
	}

private:
	std::optional<std::size_t> specified(const std::string &name) const
	{
		const auto node = lab_.places->nodes.find(name);
		if (node == lab_.places->nodes.end() || node->second.place.empty())
			return std::nullopt;
		const auto place = std::ranges::find(places_, node->second.place, &LabPlace::name);
		return static_cast<std::size_t>(place - places_.begin());
	}

	// Returns true if the node @follower has the place of another one.
	bool follow(const std::string &follower, const std::string &leader)
	{
		const auto found = place_of_.find(leader);
		return found != place_of_.end() &&
		       place_of_.emplace(follower, found->second).second;
	}

	// The weight of a switch is that of its hosts, and one for itself, so that switches without
	// hosts are spread, too.
	void place_switches()
	{
		PlacementGraph graph;
		for (const auto &config : lab_.switches)
			graph.nodes.push_back({1, specified(config.name), {}});
		for (const LabHost &host : lab_.hosts)
			if (!specified(host.name))
				for (const auto &peer : peers_[host.name])
					if (const auto found = switches_.find(peer);
					    found != switches_.end()) {
						++graph.nodes[found->second].weight;
						break;
					}
		for (const LabLink &link : lab_.links) {
			const auto a = switches_.find(link.ends[0].node),
				   b = switches_.find(link.ends[1].node);
			if (a != switches_.end() && b != switches_.end())
				graph.add_edge(a->second, b->second);
		}
		const auto result = divide(graph, places_.size());
		for (const auto &[name, index] : switches_)
			place_of_.emplace(name, result[index]);
	}

	// A host without a place follows its first switch, or else another host to which it is
	// linked, or else a host of its Ethernet.
	void place_hosts()
	{
		for (const LabHost &host : lab_.hosts)
			if (const auto place = specified(host.name))
				place_of_.emplace(host.name, *place);
		for (const LabHost &host : lab_.hosts)
			for (const auto &peer : peers_[host.name])
				if (switches_.contains(peer) && follow(host.name, peer))
					break;
		for (bool any = true; any;) {
			any = false;
			for (const LabHost &host : lab_.hosts)
				for (const auto &peer : peers_[host.name])
					any |= follow(host.name, peer);
		}
		std::map<std::string_view, std::string_view> leaders; // of each Ethernet
		for (const LabAttachment &each : lab_.attachments)
			if (place_of_.contains(each.host))
				leaders.emplace(each.network, each.host);
		std::map<std::string_view, std::vector<std::string_view>> rest;
		for (const LabAttachment &each : lab_.attachments)
			if (const auto leader = leaders.find(each.network); leader != leaders.end())
				follow(each.host, std::string(leader->second));
			else
				rest[each.network].push_back(each.host);
		// Hosts of an Ethernet without any other link are spread evenly, in the order of
		// the file.
		for (const auto &[network, hosts] : rest)
			for (std::size_t i = 0; i < hosts.size(); ++i)
				place_of_.emplace(hosts[i], i * places_.size() / hosts.size());
		for (const LabHost &host : lab_.hosts)
			place_of_.emplace(host.name, 0);
	}

	const Lab &lab_;
	const std::vector<LabPlace> &places_;
	std::map<std::string, std::size_t, std::less<>> switches_; // indices in lab_
	std::map<std::string, const LabHost *, std::less<>> hosts_;
	// Nodes to which a host is linked, in the order of the file.
	std::map<std::string, std::vector<std::string>, std::less<>> peers_;
	PlaceOf place_of_;
};

std::vector<LabPlace> places_of(const Lab &lab, const PlanOptions &options)
{
	std::vector<LabPlace> places = lab.places->places;
	if (options.places && !places.empty())
		throw std::invalid_argument(
			fmt::format("--places: the lab file has {} places already", places.size()));
	if (options.places > kMostPlaces)
		throw std::invalid_argument(
			fmt::format("--places: a lab has at most {} places", kMostPlaces));
	if (places.empty() && !options.places)
		throw LabError(
			fmt::format("{}: the lab has no [[place]]; add them, or use --places",
				    lab.places->where));
	for (std::size_t number = 1; number <= options.places; ++number)
		places.push_back({fmt::format("p{}", number), std::nullopt, lab.places->where});
	return places;
}

std::string where_of(const Lab &lab, const std::string &node)
{
	const auto found = lab.places->nodes.find(node);
	return found == lab.places->nodes.end() ? lab.places->where : found->second.where;
}

// An untrusted host is in the same daemon as the switch that restricts it.
void check_nodes(const Lab &lab, const Plan &plan)
{
	const auto name_of = [&](const std::string &node) {
		return plan.places[plan.place_of.at(node)].name;
	};
	std::set<std::string_view> untrusted;
	for (const LabHost &host : lab.hosts)
		if (!host.trusted)
			untrusted.insert(host.name);
	for (const PlannedTrunk &trunk : plan.trunks)
		for (const unsigned side : {0u, 1u}) {
			if (!trunk.network.empty())
				continue;
			const auto &host = lab.links[trunk.link].ends[side].node,
				   &peer = lab.links[trunk.link].ends[1 - side].node;
			if (untrusted.contains(host))
				throw LabError(fmt::format(
					"{}: host '{}' is not trusted, so it must be at the place "
					"of '{}', which is '{}'",
					where_of(lab, host), host, peer, name_of(peer)));
		}
}

// Checks that the ports of all trunks exist and that no two places use the same. Addresses without
// a port get one later.
void check_addresses(const Plan &plan)
{
	constexpr unsigned last_port = 65535;
	std::vector<unsigned> trunks(plan.places.size());
	for (const PlannedTrunk &trunk : plan.trunks)
		++trunks[trunk.listens];
	for (std::size_t i = 0; i < plan.places.size(); ++i) {
		const LabPlace &place = plan.places[i];
		if (!place.address || !place.address->has_port() || !trunks[i])
			continue;
		const unsigned first = place.address->port();
		if (first + trunks[i] - 1 > last_port)
			throw LabError(fmt::format(
				"{}: place '{}' listens for {} trunks from port {} on; there are "
				"not as many ports",
				place.where, place.name, trunks[i], first));
		for (std::size_t other = 0; other < i; ++other) {
			const auto &address = plan.places[other].address;
			if (!address || !address->has_port() || !trunks[other] ||
			    address->with_port(1).text() != place.address->with_port(1).text())
				continue;
			if (first < address->port() + trunks[other] &&
			    address->port() < first + trunks[i])
				throw LabError(fmt::format(
					"{}: place '{}' listens at {} ports from {} on, but place "
					"'{}' listens at {} ports from {} on",
					place.where, place.name, trunks[i], place.address->text(),
					plan.places[other].name, trunks[other], address->text()));
		}
	}
}

} // namespace

bool has_trunk_port(const std::string &address)
{
	return address.find(':') != std::string::npos && !address.ends_with(']');
}

std::string with_trunk_port(const std::string &address)
{
	return has_trunk_port(address) ? address : fmt::format("{}:{}", address, kTrunkPort);
}

ManagerSwitches manager_switches(const Lab &lab)
{
	const LabPlaces::Node &manager = lab.places->manager;
	if (lab.places->places.empty() || !lab.sm_enabled)
		return {};
	const PlaceOf place_of = Assignment(lab, lab.places->places).run();
	const auto &wanted =
		manager.place.empty() ? lab.places->places.front().name : manager.place;
	ManagerSwitches result;
	if (lab.sm_switch.empty()) {
		result.required_place = manager.place;
		for (const auto &config : lab.switches)
			if (lab.places->places[place_of.at(config.name)].name == wanted)
				result.names.insert(config.name);
		return result;
	}
	const auto &place = lab.places->places[place_of.at(lab.sm_switch)].name;
	if (!manager.place.empty() && place != wanted)
		throw LabError(fmt::format("{}: the subnet manager is to run at place '{}', but "
					   "its switch '{}' is at place '{}'",
					   manager.where, wanted, lab.sm_switch, place));
	return {};
}

std::size_t Plan::find(const std::string &name) const
{
	const auto found = std::ranges::find(places, name, &LabPlace::name);
	if (found == places.end()) {
		std::vector<std::string> names;
		for (const LabPlace &place : places)
			names.push_back(place.name);
		throw std::invalid_argument(fmt::format("there is no place '{}'; there is {}", name,
							fmt::join(names, ", ")));
	}
	return static_cast<std::size_t>(found - places.begin());
}

std::string Plan::part_name(const std::string &network, std::size_t place) const
{
	return fmt::format("{}@{}", network, places[place].name);
}

std::string Plan::port_name(const std::string &network, std::size_t place, std::size_t peer) const
{
	return fmt::format("{}/{}", part_name(network, place), places[peer].name);
}

void Plan::use_default_ports()
{
	for (LabPlace &place : places)
		if (place.address && !place.address->has_port())
			place.address = place.address->with_port(kTrunkPort);
	check_addresses(*this);
}

Plan make_plan(const Lab &lab, const PlanOptions &options)
{
	Plan plan;
	plan.places = places_of(lab, options);
	if (lab.name.empty())
		throw LabError(fmt::format("{}: a lab with several places needs a name, from which "
					   "each place derives the same GUIDs",
					   lab.places->where));
	for (const auto &[name, address] : options.peers)
		plan.places[plan.find(name)].address = address;
	plan.place_of = Assignment(lab, plan.places).run();
	if (lab.sm_enabled)
		plan.place_of[kSmNode] = plan.place_of.at(lab.sm_switch);
	if (!lab.sm_standby.empty())
		plan.place_of[kStandbyNode] = plan.place_of.at(lab.sm_standby);
	std::vector<unsigned> trunks(plan.places.size());
	for (std::size_t i = 0; i < lab.links.size(); ++i) {
		const auto &ends = lab.links[i].ends;
		const std::size_t a = plan.place_of.at(ends[0].node),
				  b = plan.place_of.at(ends[1].node);
		if (a == b)
			continue;
		const std::size_t listens = std::min(a, b);
		plan.trunks.push_back(
			{lab.links[i].name(), "", i, listens, std::max(a, b), trunks[listens]++});
	}
	for (const LabAttachment &attachment : lab.attachments)
		++plan.ethernets[attachment.network][plan.place_of.at(attachment.host)];
	for (const LabEthernet &ethernet : lab.ethernets) {
		auto &parts = plan.ethernets[ethernet.name];
		if (parts.empty())
			parts[0] = 0;
		for (auto a = parts.begin(); a != parts.end(); ++a)
			for (auto b = std::next(a); b != parts.end(); ++b)
				plan.trunks.push_back(
					{fmt::format(
						 "{}-{}",
						 plan.port_name(ethernet.name, a->first, b->first),
						 plan.port_name(ethernet.name, b->first, a->first)),
					 ethernet.name, std::numeric_limits<std::size_t>::max(),
					 a->first, b->first, trunks[a->first]++});
	}
	check_nodes(lab, plan);
	check_addresses(plan);
	return plan;
}

} // namespace weft::weftd
