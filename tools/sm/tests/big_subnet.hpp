// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Builds a two-level fat tree in which each leaf switch has a link to each spine switch, and the
// end nodes answer only management requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/fabric/fabric.hpp"
#include "net/fabric/mad_port.hpp"
#include "net/fabric/switch.hpp"

namespace weft::sm::testing
{

struct BigSubnet {
	BigSubnet(fabric::Fabric &fabric, unsigned leaf_count, unsigned hosts_each,
		  unsigned spine_count)
	{
		for (unsigned spine = 0; spine < spine_count; ++spine)
			spines.push_back(&fabric.add_switch(
				{.name = "spine" + std::to_string(spine), .ports = leaf_count}));
		for (unsigned leaf = 0; leaf < leaf_count; ++leaf) {
			// One leaf has an additional port, for a subnet manager.
			leaves.push_back(
				&fabric.add_switch({.name = "leaf" + std::to_string(leaf),
						    .ports = hosts_each + spine_count + 1}));
			for (unsigned spine = 0; spine < spine_count; ++spine)
				fabric.connect(leaves[leaf]->port(hosts_each + 1 + spine),
					       spines[spine]->port(leaf + 1));
			for (unsigned host = 0; host < hosts_each; ++host) {
				const auto name = "host" + std::to_string(hosts.size());
				fabric::Port &port = fabric.add_port(name);
				links.push_back(
					&fabric.connect(port, leaves[leaf]->port(host + 1)));
				hosts.push_back(std::make_unique<fabric::MadPort>(
					port,
					fabric::MadPort::Config{.description = name,
								.node_guid = 0x0002c90400000000 +
									     4 * hosts.size()},
					fabric::MadPort::Handlers{}));
			}
		}
	}

	fabric::Port &manager_port(fabric::Fabric &fabric)
	{
		fabric::Port &port = fabric.add_port("sm");
		fabric::Switch &leaf = *leaves.front();
		fabric.connect(port, leaf.port(leaf.port_count()));
		return port;
	}

	std::size_t active() const
	{
		std::size_t count = 0;
		for (const auto &host : hosts)
			count += host->port_info().state() == ib::PortState::active;
		return count;
	}

	std::vector<fabric::Switch *> spines;
	std::vector<fabric::Switch *> leaves;
	std::vector<fabric::Link *> links; // links of the hosts
	std::vector<std::unique_ptr<fabric::MadPort>> hosts;
};

} // namespace weft::sm::testing
