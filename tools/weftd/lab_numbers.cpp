// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_numbers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace weft::weftd
{

void number_hosts(Lab &lab, const Lab *running)
{
	std::map<std::string_view, unsigned> known;
	if (running)
		for (const LabHost &host : running->hosts)
			known[host.name] = host.number;
	std::set<unsigned> used;
	for (LabHost &host : lab.hosts)
		if (const auto found = known.find(host.name);
		    host.model->pluggable && found != known.end()) {
			host.number = found->second;
			used.insert(host.number);
		}
	unsigned next = 1;
	for (LabHost &host : lab.hosts) {
		if (!host.model->pluggable || host.number)
			continue;
		while (used.contains(next))
			++next;
		host.number = next++;
	}
}

void number_links(Lab &lab, const Lab *running)
{
	std::map<std::string, std::size_t> known;
	if (running)
		for (const LabLink &link : running->links)
			known[link.name()] = link.number;
	lab.links_numbered = running ? running->links_numbered : 0;
	for (LabLink &link : lab.links) {
		const auto found = known.find(link.name());
		link.number = found != known.end() ? found->second : ++lab.links_numbered;
	}
}

void number_attachments(Lab &lab, const Lab *running)
{
	std::map<std::string, const LabAttachment *> known;
	if (running)
		for (const LabAttachment &attachment : running->attachments)
			known[attachment.name()] = &attachment;
	std::map<std::string, LabAttachment *> rest;
	std::map<std::string_view, std::set<unsigned>> used; // by Ethernet
	for (LabAttachment &attachment : lab.attachments) {
		const auto found = known.find(attachment.name());
		if (found == known.end() || found->second->network != attachment.network) {
			rest[attachment.name()] = &attachment;
			continue;
		}
		attachment.port = found->second->port;
		used[attachment.network].insert(attachment.port);
	}
	for (const auto &[name, attachment] : rest) {
		unsigned port = 1;
		while (!used[attachment->network].insert(port).second)
			++port;
		attachment->port = port;
	}
}

std::vector<sm::ExpectedPort> expected_ports(const Lab &lab)
{
	if (!lab.sm_enabled)
		return {};
	// The linked ports of each node, and the nodes at the other ends.
	std::map<std::string_view, std::map<unsigned, std::string_view>> peers;
	for (const LabLink &link : lab.links)
		for (const unsigned side : {0u, 1u})
			peers[link.ends[side].node][link.ends[side].port] =
				link.ends[1 - side].node;
	std::map<std::string_view, const fabric::SwitchConfig *> switches;
	for (const auto &config : lab.switches)
		switches[config.name] = &config;
	std::map<std::string_view, const LabHost *> hosts;
	for (const LabHost &host : lab.hosts)
		hosts[host.name] = &host;

	std::vector<sm::ExpectedPort> ports{{lab.sm.guid + 1, false}};
	std::vector<std::string_view> order{kSmNode};
	std::set<std::string_view> seen{kSmNode};
	for (std::size_t done = 0; done < order.size(); ++done) {
		const auto node = order[done];
		if (node == kStandbyNode) {
			ports.push_back({lab.standby().guid + 1, false});
			continue;
		}
		if (const auto found = switches.find(node); found != switches.end())
			ports.push_back({found->second->guid, true});
		if (const auto found = hosts.find(node); found != hosts.end()) {
			for (const auto &[number, peer] : peers[node])
				ports.push_back({found->second->guid + number, false});
			continue; // a host does not forward requests
		}
		for (const auto &[number, peer] : peers[node])
			if (seen.insert(peer).second)
				order.push_back(peer);
	}
	return ports;
}

} // namespace weft::weftd
