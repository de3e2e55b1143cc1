// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_ports.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft::weftd
{

namespace
{

// Records the ports of each node that have a link.
class Ports
{
public:
	explicit Ports(const Lab &lab)
	{
		for (const auto &config : lab.switches)
			taken_[config.name].resize(config.ports);
		for (const auto &host : lab.hosts)
			taken_[host.name].resize(host.ports);
		for (const auto &trunk : lab.trunks)
			taken_[trunk.name].resize(1);
	}

	// Returns the ports of a node, which must exist.
	std::vector<bool> &of(const LabLink &link, const LabEnd &end)
	{
		const auto found = taken_.find(end.node);
		if (found == taken_.end())
			throw LabError(
				fmt::format("{}: there is no node '{}'", link.where, end.node));
		return found->second;
	}
	// Returns true if the node has the port and nothing is connected to it.
	bool free(const std::string &node, unsigned port) const
	{
		const auto found = taken_.find(node);
		return found != taken_.end() && port >= 1 && port <= found->second.size() &&
		       !found->second[port - 1];
	}
	// Returns 0 if there is none.
	unsigned first_free(const std::string &node) const
	{
		const auto &ports = taken_.at(node);
		const auto found = std::ranges::find(ports, false);
		return found == ports.end() ? 0 : static_cast<unsigned>(found - ports.begin()) + 1;
	}
	void take(const std::string &node, unsigned port) { taken_.at(node)[port - 1] = true; }

private:
	std::map<std::string, std::vector<bool>> taken_;
};

// Returns true if an end without a port number in the file can use the port of @old.
bool may_be(const Ports &ports, const LabEnd &end, const LabEnd &old)
{
	return end.node == old.node &&
	       (end.port ? end.port == old.port : ports.free(old.node, old.port));
}

// Links between the same nodes keep the ports of the running lab, so that an additional link
// earlier in the file does not move them.
void keep_ports(Lab &lab, Ports &ports, const Lab &running)
{
	std::set<std::string> used;
	std::multimap<std::pair<std::string, std::string>, const LabLink *> known;
	for (const LabLink &old : running.links)
		known.emplace(std::pair{old.ends[0].node, old.ends[1].node}, &old);
	for (LabLink &link : lab.links) {
		if (link.ends[0].port && link.ends[1].port)
			continue;
		for (const unsigned turn : {0u, 1u}) {
			const auto [first, last] =
				known.equal_range({link.ends[turn].node, link.ends[1 - turn].node});
			const auto found = std::find_if(first, last, [&](const auto &entry) {
				const LabLink &old = *entry.second;
				return !used.contains(old.name()) &&
				       may_be(ports, link.ends[turn], old.ends[0]) &&
				       may_be(ports, link.ends[1 - turn], old.ends[1]);
			});
			if (found == last)
				continue;
			used.insert(found->second->name());
			for (const unsigned side : {0u, 1u}) {
				LabEnd &end = link.ends[turn ? 1 - side : side];
				end.port = found->second->ends[side].port;
				ports.take(end.node, end.port);
			}
			break;
		}
	}
}

// Returns the port of the running lab's subnet manager, if it is possible in this lab.
std::optional<LabEnd> present_place_of_manager(const Lab &lab, const Ports &ports,
					       const Lab &running,
					       const ManagerSwitches &near_manager)
{
	for (const LabLink &old : running.links)
		if (const LabEnd &end = old.ends[1];
		    running.sm_enabled && old.ends[0].node == kSmNode &&
		    ports.free(end.node, end.port) &&
		    (lab.sm_switch.empty() || lab.sm_switch == end.node) &&
		    (near_manager.names.empty() || near_manager.names.contains(end.node)) &&
		    std::ranges::find(lab.switches, end.node, &fabric::SwitchConfig::name) !=
			    lab.switches.end())
			return end;
	return std::nullopt;
}

// Returns the port of the running lab's manager on standby, if it is possible in this lab.
std::optional<LabEnd> present_place_of_standby(const Lab &lab, const Ports &ports,
					       const Lab &running)
{
	for (const LabLink &old : running.links)
		if (const LabEnd &end = old.ends[1];
		    !lab.sm_standby.empty() && old.ends[0].node == kStandbyNode &&
		    end.node == lab.sm_standby && ports.free(end.node, end.port))
			return end;
	return std::nullopt;
}

// Returns the port for the subnet manager: a free port of a switch.
LabEnd place_of_manager(Lab &lab, const Ports &ports, const std::string &section,
			const ManagerSwitches &near_manager)
{
	if (!lab.sm_switch.empty() && !ports.first_free(lab.sm_switch))
		throw LabError(
			fmt::format("{}: switch '{}' has no free port for the subnet manager",
				    section, lab.sm_switch));
	const auto choose = [&](auto may_be_used) {
		for (const auto &config : lab.switches)
			if (lab.sm_switch.empty() && ports.first_free(config.name) &&
			    may_be_used(config.name))
				lab.sm_switch = config.name;
	};
	choose([&](const std::string &name) { return near_manager.names.contains(name); });
	if (lab.sm_switch.empty() && !near_manager.required_place.empty())
		throw LabError(fmt::format("{}: place '{}' has no switch with a free port for the "
					   "subnet manager",
					   section, near_manager.required_place));
	choose([](const std::string &) { return true; });
	if (lab.sm_switch.empty())
		throw LabError(section +
			       ": the subnet manager needs a switch with a free port; say "
			       "sm.enabled = false if one of the hosts runs its own");
	return {lab.sm_switch, ports.first_free(lab.sm_switch)};
}

} // namespace

void assign_ports(Lab &lab, const std::string &sm_section, const Lab *running,
		  const ManagerSwitches &near_manager)
{
	Ports ports(lab);
	for (const LabLink &link : lab.links)
		for (const LabEnd &end : link.ends) {
			const auto &own = ports.of(link, end);
			if (!end.port)
				continue;
			if (end.port > own.size())
				throw LabError(fmt::format("{}: '{}' has {} ports", link.where,
							   end.node, own.size()));
			if (own[end.port - 1])
				throw LabError(fmt::format("{}: port {}/{} has a link already",
							   link.where, end.node, end.port));
			ports.take(end.node, end.port);
		}
	std::optional<LabEnd> manager, standby;
	if (running) {
		keep_ports(lab, ports, *running);
		if (lab.sm_enabled)
			manager = present_place_of_manager(lab, ports, *running, near_manager);
		if (manager)
			ports.take(manager->node, manager->port);
		standby = present_place_of_standby(lab, ports, *running);
		if (standby)
			ports.take(standby->node, standby->port);
	}
	for (LabLink &link : lab.links)
		for (LabEnd &end : link.ends) {
			if (end.port)
				continue;
			end.port = ports.first_free(end.node);
			// The subnet manager's port can be used by this link; the manager moves.
			for (auto *of : {&manager, &standby})
				if (!end.port && *of && (*of)->node == end.node) {
					end.port = (*of)->port;
					of->reset();
				}
			if (!end.port)
				throw LabError(fmt::format("{}: no port of '{}' is free",
							   link.where, end.node));
			ports.take(end.node, end.port);
		}
	if (!lab.sm_enabled)
		return;
	const LabEnd place =
		manager ? *manager : place_of_manager(lab, ports, sm_section, near_manager);
	lab.sm_switch = place.node;
	lab.links.push_back({{{kSmNode, 1}, place}, {}, "the subnet manager"});
	if (lab.sm_standby.empty())
		return;
	ports.take(place.node, place.port);
	if (!standby && !ports.first_free(lab.sm_standby))
		throw LabError(fmt::format("{}: switch '{}' has no free port for the subnet "
					   "manager on standby",
					   sm_section, lab.sm_standby));
	const LabEnd second =
		standby ? *standby : LabEnd{lab.sm_standby, ports.first_free(lab.sm_standby)};
	lab.links.push_back({{{kStandbyNode, 1}, second}, {}, "the subnet manager on standby"});
}

} // namespace weft::weftd
