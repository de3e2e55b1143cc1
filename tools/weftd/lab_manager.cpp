// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_manager.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "weftd/default_guids.hpp"

namespace weft::weftd
{

namespace
{

using Membership = sm::Partition::Membership;

Membership parse_membership(const LabSection &section, const toml::node &node)
{
	const auto text = node.value_exact<std::string>().value_or("");
	if (text == "full")
		return Membership::full;
	if (text == "limited")
		return Membership::limited;
	if (text == "none")
		return Membership::none;
	section.fail(node, "a membership is \"full\", \"limited\" or \"none\"");
}

sm::Partition parse_partition(LabSection &section, const std::vector<LabHost> &hosts)
{
	constexpr unsigned full_member = 0x8000;
	sm::Partition partition;
	partition.name = section.name("name");
	if (const auto pkey = section.integer("pkey", 1, 0xffff)) {
		/* IBA 10.9.1.1: P_Key 0 is invalid, with or without the membership bit. */
		if (*pkey == full_member)
			section.fail(*section.find("pkey"), "0x8000 is not a P_Key");
		partition.pkey = static_cast<ib::Pkey>(*pkey | full_member);
	}
	partition.ipoib = section.flag("ipoib").value_or(true);
	partition.mtu = section.mtu("mtu").value_or(partition.mtu);
	partition.rate = section.rate("rate");
	partition.sl = static_cast<std::uint8_t>(section.integer("sl", 0, 15).value_or(0));
	if (const toml::node *others = section.find("others"))
		partition.others = parse_membership(section, *others);
	if (auto members = section.section("members")) {
		for (const auto &[key, node] : members->table()) {
			const auto host = std::ranges::find(hosts, key.str(), &LabHost::name);
			if (host == hosts.end())
				section.fail(node, fmt::format("there is no host '{}'", key.str()));
			for (unsigned port = 1; port <= host->ports; ++port)
				partition.members[host->guid + port] =
					parse_membership(section, node);
		}
	}
	section.finish();
	return partition;
}

} // namespace

sm::Config Lab::standby() const
{
	sm::Config config = sm;
	config.name += " standby";
	config.guid = DefaultGuids::standby_of(sm.guid);
	config.priority = sm.priority - 1;
	// Both managers may run in one daemon.
	if (!config.lids.empty())
		config.lids += "-standby";
	return config;
}

void parse_sm(LabSection &section, Lab &lab)
{
	lab.sm_enabled = section.flag("enabled").value_or(true);
	if (const auto name = section.text("switch")) {
		lab.sm_switch = *name;
		if (std::ranges::find(lab.switches, *name, &fabric::SwitchConfig::name) ==
		    lab.switches.end())
			section.fail(*section.find("switch"),
				     fmt::format("there is no switch '{}'", *name));
	}
	if (const auto name = section.text("standby")) {
		const toml::node &node = *section.find("standby");
		lab.sm_standby = *name;
		if (std::ranges::find(lab.switches, *name, &fabric::SwitchConfig::name) ==
		    lab.switches.end())
			section.fail(node, fmt::format("there is no switch '{}'", *name));
		if (!lab.sm_enabled)
			section.fail(node, "this lab has no subnet manager (enabled = false)");
	}
	sm::Config &config = lab.sm;
	// The manager on standby has the priority below this one.
	const unsigned lowest = lab.sm_standby.empty() ? 0 : 1;
	config.priority =
		static_cast<unsigned>(section.integer("priority", lowest, 15).value_or(lowest));
	config.lmc = static_cast<unsigned>(section.integer("lmc", 0, 7).value_or(0));
	if (const auto lanes = section.integer("vls", 1, 8)) {
		if (!std::has_single_bit(static_cast<std::uint64_t>(*lanes)))
			section.fail(*section.find("vls"), "vls must be 1, 2, 4 or 8");
		// PortInfo's encoding: 1, 2, 3, 4 (IBA 14.2.5.6).
		config.vls =
			static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(*lanes)));
	}
	config.mkey = section.word("m_key").value_or(config.mkey);
	config.sm_key = section.word("sm_key").value_or(config.sm_key);
	config.sa_key = section.word("sa_key").value_or(config.sa_key);
	config.gid_prefix = section.word("gid_prefix").value_or(config.gid_prefix);
	config.partitions.at(0).rate = section.rate("rate");
	if (const auto mtu = section.mtu("mtu"))
		config.partitions.at(0).mtu = *mtu;
	std::vector<sm::Partition> partitions;
	for (LabSection &each : section.sections("partition")) {
		auto partition = parse_partition(each, lab.hosts);
		for (const auto &other : partitions) {
			if (other.name == partition.name)
				each.fail(fmt::format("the name '{}' is given twice", other.name));
			if (other.pkey == partition.pkey)
				each.fail(
					fmt::format("partition '{}' has the P_Key {:#06x} already",
						    other.name, other.pkey));
		}
		partitions.push_back(std::move(partition));
	}
	if (!partitions.empty() && !lab.sm_enabled)
		lab.warnings.push_back(
			fmt::format("{}: the partitions have no effect: this lab has "
				    "no subnet manager (enabled = false)",
				    section.where("partition")));
	if (!partitions.empty()) {
		for (const char *key : {"mtu", "rate"})
			if (section.find(key))
				section.fail(
					fmt::format("{} is that of the default partition; give "
						    "each [[sm.partition]] its own",
						    key));
		config.partitions = std::move(partitions);
	}
	section.finish();
}

} // namespace weft::weftd
