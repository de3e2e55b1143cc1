// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Computes the routes of the subnet: the forwarding tables of switches, which use shortest paths
 * unless these could deadlock (up_down.hpp), and multicast trees.
 */
#pragma once

#include <optional>

#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Computes the links, hop counts and spanning tree between switches, and the linear forwarding
 * table of every switch. Routes are shortest paths. If these could deadlock, with each other or
 * with multicast along the spanning tree, up/down routes are used (up_down.hpp). Among equal paths,
 * the port with the fewest LIDs is chosen. LIDs must be assigned. The cost is switches * links for
 * the distances and LIDs * switches for the tables.
 */
void route(Subnet &subnet);

/* Limits of a path from one end port to another. */
struct PathLimits {
	ib::Mtu mtu = ib::Mtu::mtu_4096;
	ib::Rate rate = ib::Rate::gbps_300;
	unsigned hops = 0;
};

/* Follows the forwarding tables. Returns nothing if they do not lead to the LID. */
std::optional<PathLimits> walk(const Subnet &subnet, PortRef from, ib::Lid to);

/* The ports of a multicast tree, by switch index: bit n represents port n. */
using PortMask = std::vector<std::uint64_t>;
using McTree = std::vector<PortMask>;

/*
 * Returns the smallest part of the subnet's spanning tree that connects the members' ports.
 * Switches that do not belong to it have an empty mask. If the subnet has unconnected parts, each
 * has its own tree. The subnet must be routed.
 */
McTree multicast_tree(const Subnet &subnet, const std::vector<PortRef> &members);

} // namespace weft::sm
