// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_part.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "net/trunk/frame.hpp"

namespace weft::weftd
{

namespace
{

// Returns the trunk for the local half of a link or Ethernet. @where is its position in the file.
LabTrunk make_trunk(const PlannedTrunk &planned, const std::string &where, const Plan &plan,
		    std::size_t here, const std::string &key_file)
{
	const LabPlace &listener = plan.places[planned.listens];
	if (!listener.address)
		throw LabError(fmt::format(
			"{}: place '{}' listens for trunks, so it needs an address; or use --peer "
			"{}=HOST:PORT",
			listener.where, listener.name, listener.name));
	LabTrunk trunk;
	trunk.name = planned.name;
	trunk.role = planned.listens == here ? trunk::Role::listens : trunk::Role::connects;
	trunk.address = listener.address->with_port(listener.address->port() + planned.index);
	trunk.key_file = key_file;
	trunk.where = where;
	return trunk;
}

LabEthernetEnd ethernet_end(const PlannedTrunk &planned, const Plan &plan, std::size_t here)
{
	const std::size_t peer = planned.listens == here ? planned.connects : planned.listens;
	return {planned.network,
		{plan.port_name(planned.network, here, peer),
		 plan.port_name(planned.network, peer, here), planned.listens == here,
		 plan.ethernets.at(planned.network).at(peer)},
		{}};
}

} // namespace

std::vector<std::chrono::nanoseconds> trunk_delays(const Lab &whole, const Plan &plan)
{
	if (!whole.trunks.empty())
		throw LabError(fmt::format("{}: a lab in virtual time cannot have a [[trunk]]",
					   whole.trunks.front().where));
	std::vector<std::chrono::nanoseconds> delays;
	for (const PlannedTrunk &trunk : plan.trunks) {
		if (!trunk.network.empty())
			throw LabError(fmt::format("{}: the Ethernet '{}' has hosts at several "
						   "places, which is not possible in virtual time",
						   whole.places->where, trunk.network));
		const LabLink &link = whole.links[trunk.link];
		if (link.config.faults.delay.count() <= 0)
			throw LabError(fmt::format(
				"{}: link {} connects the places '{}' and '{}', so it needs a delay in "
				"virtual time, for example delay = \"50us\" for 10 km",
				link.where, trunk.name, plan.places[trunk.listens].name,
				plan.places[trunk.connects].name));
		delays.push_back(link.config.faults.delay);
	}
	return delays;
}

Lab part_of(Lab whole, const PartOptions &options)
{
	Plan plan = make_plan(whole, options.plan);
	std::vector<std::chrono::nanoseconds> delays;
	if (options.timed)
		delays = trunk_delays(whole, plan);
	else
		plan.use_default_ports();
	const std::size_t here = plan.find(options.place);
	const auto is_elsewhere = [&](const std::string &name) {
		return plan.place_of.at(name) != here;
	};
	Lab part = whole;
	std::erase_if(part.switches, [&](const auto &each) { return is_elsewhere(each.name); });
	std::erase_if(part.hosts, [&](const auto &each) { return is_elsewhere(each.name); });
	std::erase_if(part.trunks, [&](const auto &each) { return is_elsewhere(each.name); });
	std::erase_if(part.ethernets, [&](const auto &each) {
		return !plan.ethernets.at(each.name).contains(here);
	});
	std::erase_if(part.attachments, [&](const auto &each) { return is_elsewhere(each.host); });
	if (part.sm_enabled && is_elsewhere(kSmNode)) {
		part.sm_enabled = false;
		part.sm_switch.clear();
	}
	if (!part.sm_standby.empty() && is_elsewhere(kStandbyNode))
		part.sm_standby.clear();
	const auto &key_file = options.key_file.empty() ? whole.trunk_key_file : options.key_file;
	const auto need_key = [&] {
		if (key_file.empty())
			throw LabError(fmt::format(
				"{}: place '{}' has trunks, so the lab needs a trunk-key-file; or use "
				"--trunk-key FILE",
				whole.places->where, options.place));
	};
	part.links.clear();
	auto planned = plan.trunks.begin();
	for (std::size_t i = 0; i < whole.links.size(); ++i) {
		const LabLink &link = whole.links[i];
		if (planned == plan.trunks.end() || planned->link != i) {
			if (!is_elsewhere(link.ends[0].node))
				part.links.push_back(link);
			continue;
		}
		const PlannedTrunk &trunk = *planned++;
		if (trunk.listens != here && trunk.connects != here)
			continue;
		const unsigned remote = is_elsewhere(link.ends[0].node) ? 0 : 1;
		if (options.timed) {
			const auto index = static_cast<std::size_t>(&trunk - plan.trunks.data());
			LabTrunk timed;
			timed.name = trunk.name;
			timed.where = link.where;
			timed.timed = {static_cast<std::uint32_t>(index), delays[index]};
			part.trunks.push_back(std::move(timed));
		} else {
			need_key();
			part.trunks.push_back(make_trunk(trunk, link.where, plan, here, key_file));
		}
		part.trunks.back().end = link.ends[remote];
		part.links.push_back(link);
		// Every packet passes both halves, so only one of them has the faults.
		if (trunk.connects == here)
			part.links.back().config.faults = {};
		// The trunk has the delay.
		if (options.timed)
			part.links.back().config.faults.delay = {};
	}
	for (const PlannedTrunk &trunk : plan.trunks) {
		if (trunk.network.empty() || (trunk.listens != here && trunk.connects != here))
			continue;
		need_key();
		part.trunks.push_back(make_trunk(trunk, whole.places->where, plan, here, key_file));
		part.trunks.back().ethernet = ethernet_end(trunk, plan, here);
	}
	part.part = std::make_shared<LabPart>(std::move(whole), options);
	return part;
}

Lab parse_changed_lab(const LabText &text, const Lab &running)
{
	const Lab &whole = running.part ? running.part->whole : running;
	Lab lab = parse_lab(text.text, text.source, running.name, &whole);
	resolve_paths(lab, text.folder);
	return running.part ? part_of(std::move(lab), running.part->options) : lab;
}

std::string protocol_name(const std::string &trunk)
{
	constexpr std::size_t kept = 15;
	if (trunk.size() <= trunk::kMostName)
		return trunk;
	std::uint64_t hash = 0xcbf29ce484222325; // FNV-1a
	for (const unsigned char c : trunk)
		hash = (hash ^ c) * 0x100000001b3;
	return fmt::format("{}~{:016x}", trunk.substr(0, kept), hash);
}

} // namespace weft::weftd
