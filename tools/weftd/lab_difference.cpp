// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_difference.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "weftd/guid_text.hpp"
#include "weftd/link_settings.hpp"

namespace weft::weftd
{

namespace
{

using std::string;
using Changes = std::vector<string>;

template<typename T>
void compare(Changes &changes, const char *what, const T &now, const T &wanted)
{
	if (!(now == wanted))
		changes.push_back(fmt::format("{} {} -> {}", what, now, wanted));
}

// Compares the settings of a host that its card depends on.
Changes changes_of(const LabHost &now, const LabHost &wanted)
{
	Changes changes;
	compare(changes, "model", now.model->name, wanted.model->name);
	compare(changes, "ports", now.ports, wanted.ports);
	compare(changes, "guid", guid_text(now.guid), guid_text(wanted.guid));
	compare(changes, "bus", string(text_of(now.bus)), string(text_of(wanted.bus)));
	compare(changes, "socket", now.socket, wanted.socket);
	compare(changes, "trusted", now.trusted, wanted.trusted);
	compare(changes, "polled doorbells", now.polled_doorbells, wanted.polled_doorbells);
	compare(changes, "flags", fmt::format("[{}]", fmt::join(now.flags, ", ")),
		fmt::format("[{}]", fmt::join(wanted.flags, ", ")));
	return changes;
}

Changes changes_of(const fabric::SwitchConfig &now, const fabric::SwitchConfig &wanted)
{
	Changes changes;
	compare(changes, "ports", now.ports, wanted.ports);
	compare(changes, "guid", guid_text(now.guid), guid_text(wanted.guid));
	compare(changes, "mtu", ib::mtu_bytes(now.mtu), ib::mtu_bytes(wanted.mtu));
	return changes;
}

Changes changes_of(const LabTrunk &now, const LabTrunk &wanted)
{
	const auto place = [](const LabTrunk &trunk) {
		return fmt::format("{} {}",
				   trunk.role == trunk::Role::listens ? "listen" : "connect",
				   trunk.address.text());
	};
	Changes changes;
	compare(changes, "address", place(now), place(wanted));
	compare(changes, "key-file", now.key_file, wanted.key_file);
	if (now.key_file == wanted.key_file && now.key_fingerprint != wanted.key_fingerprint)
		changes.push_back("another key in its key-file");
	if (now.ethernet && wanted.ethernet)
		compare(changes, "hosts at the other place", now.ethernet->config.hosts,
			wanted.ethernet->config.hosts);
	return changes;
}

Changes changes_of(const fabric::LinkConfig &now, const fabric::LinkConfig &wanted)
{
	Changes changes;
	for (const auto name : link_setting_names())
		compare(changes, string(name).c_str(), link_setting(now, name),
			link_setting(wanted, name));
	return changes;
}

template<typename Node>
std::map<string, const Node *> by_name(const std::vector<Node> &nodes)
{
	std::map<string, const Node *> result;
	for (const Node &node : nodes)
		result[node.name] = &node;
	return result;
}

// @kind: of node, for messages. @loss: additional effects of a change.
template<typename Node>
void compare_nodes(const std::vector<Node> &now, const std::vector<Node> &wanted,
		   const string &kind, const string &loss, std::set<string> &out,
		   std::set<string> &in, Changes &lines)
{
	const auto before = by_name(now), after = by_name(wanted);
	for (const Node &node : now)
		if (!after.contains(node.name)) {
			out.insert(node.name);
			lines.push_back(fmt::format("- {} {}", kind, node.name));
		}
	for (const Node &node : wanted) {
		const auto known = before.find(node.name);
		if (known == before.end()) {
			in.insert(node.name);
			lines.push_back(fmt::format("+ {} {}", kind, node.name));
			continue;
		}
		const Changes changes = changes_of(*known->second, node);
		if (changes.empty())
			continue;
		out.insert(node.name);
		in.insert(node.name);
		lines.push_back(fmt::format("~ {} {}: {}; {}", kind, node.name,
					    fmt::join(changes, ", "), loss));
	}
}

string end_text(const LabEnd &end)
{
	return fmt::format("{}/{}", end.node, end.port);
}

// Returns the ends in an order that does not depend on the direction.
std::pair<string, string> ends_of(const LabLink &link)
{
	auto a = end_text(link.ends[0]), b = end_text(link.ends[1]);
	return a < b ? std::pair{a, b} : std::pair{b, a};
}

Changes changes_of(const ethernet::LinkSettings &now, const ethernet::LinkSettings &wanted)
{
	Changes changes;
	for (const auto name : ethernet_setting_names())
		compare(changes, string(name).c_str(), ethernet_setting(now, name),
			ethernet_setting(wanted, name));
	return changes;
}

// An attachment that belongs to a card is removed and added with the card.
bool is_replaced(const Lab &now, const Lab &wanted, const LabAttachment &attachment,
		 const LabDifference &result)
{
	if (!result.hosts_out.contains(attachment.host))
		return false;
	return std::ranges::any_of(std::array{&now, &wanted}, [&](const Lab *lab) {
		const auto host = std::ranges::find(lab->hosts, attachment.host, &LabHost::name);
		return host != lab->hosts.end() && host->model->ethernet;
	});
}

void compare_attachments(const Lab &now, const Lab &wanted, LabDifference &result)
{
	std::map<string, const LabAttachment *> before, after;
	for (const LabAttachment &attachment : now.attachments)
		before[attachment.name()] = &attachment;
	for (const LabAttachment &attachment : wanted.attachments)
		after[attachment.name()] = &attachment;
	for (const auto &[name, attachment] : before) {
		const auto next = after.find(name);
		if (next != after.end() && next->second->network == attachment->network &&
		    !is_replaced(now, wanted, *attachment, result))
			continue;
		result.attachments_out.push_back(*attachment);
		result.lines.push_back(
			fmt::format("- {} on Ethernet {}", name, attachment->network));
	}
	for (const auto &[name, attachment] : after) {
		const auto known = before.find(name);
		if (known == before.end() || known->second->network != attachment->network ||
		    is_replaced(now, wanted, *attachment, result)) {
			result.attachments_in.push_back(*attachment);
			result.lines.push_back(
				fmt::format("+ {} on Ethernet {}", name, attachment->network));
			continue;
		}
		const Changes changes = changes_of(known->second->link, attachment->link);
		if (changes.empty())
			continue;
		result.attachments_set.push_back(*attachment);
		result.lines.push_back(fmt::format("~ {}: {}", name, fmt::join(changes, ", ")));
	}
}

void compare_ethernet_trunks(const Lab &now, const Lab &wanted, LabDifference &result)
{
	const auto before = by_name(now.trunks);
	for (const LabTrunk &trunk : wanted.trunks) {
		if (!trunk.ethernet || result.trunks_in.contains(trunk.name))
			continue;
		const Changes changes =
			changes_of(before.at(trunk.name)->ethernet->link, trunk.ethernet->link);
		if (changes.empty())
			continue;
		result.trunks_set.push_back(trunk);
		result.lines.push_back(
			fmt::format("~ trunk {}: {}", trunk.name, fmt::join(changes, ", ")));
	}
}

void compare_ethernets(const Lab &now, const Lab &wanted, LabDifference &result)
{
	const auto before = by_name(now.ethernets), after = by_name(wanted.ethernets);
	for (const auto &[name, each] : before)
		if (!after.contains(name)) {
			result.ethernets_out.insert(name);
			result.lines.push_back(fmt::format("- Ethernet {}", name));
		}
	for (const auto &[name, each] : after)
		if (!before.contains(name)) {
			result.ethernets_in.insert(name);
			result.lines.push_back(fmt::format("+ Ethernet {}", name));
		}
	compare_attachments(now, wanted, result);
	compare_ethernet_trunks(now, wanted, result);
}

// @trunk_ends: see ends_of_trunks().
bool touches(const LabLink &link, const std::set<string> &hosts, const std::set<string> &switches,
	     const std::set<string> &trunk_ends)
{
	return std::ranges::any_of(link.ends, [&](const LabEnd &end) {
		return hosts.contains(end.node) || switches.contains(end.node) ||
		       trunk_ends.contains(end_text(end));
	});
}

// Returns the ports that represent the other ends of these trunks.
std::set<string> ends_of_trunks(const Lab &lab, const std::set<string> &names)
{
	std::set<string> ends;
	for (const LabTrunk &trunk : lab.trunks)
		if (names.contains(trunk.name) && !trunk.ethernet)
			ends.insert(end_text(trunk.end));
	return ends;
}

} // namespace

std::vector<string> LabDifference::replaced_hosts() const
{
	std::vector<string> both;
	std::ranges::set_intersection(hosts_out, hosts_in, std::back_inserter(both));
	return both;
}

LabDifference difference(const Lab &now, const Lab &wanted)
{
	LabDifference result;
	compare_nodes(now.switches, wanted.switches, "switch", "its links go down meanwhile",
		      result.switches_out, result.switches_in, result.lines);
	compare_nodes(now.hosts, wanted.hosts, "host", "its guest loses the card", result.hosts_out,
		      result.hosts_in, result.lines);
	compare_nodes(now.trunks, wanted.trunks, "trunk", "its link goes down meanwhile",
		      result.trunks_out, result.trunks_in, result.lines);

	const auto trunk_ends_out = ends_of_trunks(now, result.trunks_out),
		   trunk_ends_in = ends_of_trunks(wanted, result.trunks_in);
	std::map<std::pair<string, string>, const LabLink *> before, after;
	for (const LabLink &link : now.links)
		before[ends_of(link)] = &link;
	for (const LabLink &link : wanted.links)
		after[ends_of(link)] = &link;
	for (const LabLink &link : now.links) {
		const bool stays = after.contains(ends_of(link));
		if (!stays || touches(link, result.hosts_out, result.switches_out, trunk_ends_out))
			result.links_out.push_back(link);
		if (!stays)
			result.lines.push_back(fmt::format("- link {}", link.name()));
	}
	for (const LabLink &link : wanted.links) {
		const auto known = before.find(ends_of(link));
		if (known == before.end()) {
			result.links_in.push_back(link);
			result.lines.push_back(fmt::format("+ link {}", link.name()));
			continue;
		}
		const Changes changes = changes_of(known->second->config, link.config);
		if (touches(link, result.hosts_in, result.switches_in, trunk_ends_in))
			result.links_in.push_back(link);
		else if (!changes.empty())
			result.links_set.push_back(link);
		if (!changes.empty())
			result.lines.push_back(fmt::format("~ link {}: {}", link.name(),
							   fmt::join(changes, ", ")));
	}

	compare_ethernets(now, wanted, result);

	const auto hosts = by_name(now.hosts);
	for (const LabHost &host : wanted.hosts)
		if (const auto known = hosts.find(host.name);
		    known != hosts.end() && !(known->second->boot == host.boot))
			result.lines.push_back(fmt::format(
				"~ host {}: boot settings, at the next start of its guest",
				host.name));

	result.manager = now.sm_enabled != wanted.sm_enabled ||
			 (wanted.sm_enabled && !(now.sm == wanted.sm));
	if (now.sm_enabled != wanted.sm_enabled)
		result.lines.push_back(wanted.sm_enabled ? "+ subnet manager" : "- subnet manager");
	else if (result.manager)
		result.lines.push_back("~ subnet manager: restarts with other settings");
	const bool had_standby = !now.sm_standby.empty(), has_standby = !wanted.sm_standby.empty();
	result.standby = had_standby != has_standby || (has_standby && !(now.sm == wanted.sm));
	if (had_standby != has_standby)
		result.lines.push_back(
			fmt::format("{} subnet manager on standby", has_standby ? '+' : '-'));
	else if (result.standby && !result.manager)
		result.lines.push_back("~ subnet manager on standby: restarts with other settings");
	return result;
}

} // namespace weft::weftd
