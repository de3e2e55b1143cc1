// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Computes the forwarding tables of switches. */
#pragma once

#include <optional>

#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Fill in the links, hop counts and spanning tree between switches and every switch's linear
 * forwarding table: shortest paths, or, where these could lock up, with each other or with
 * multicast along the spanning tree, those that go up and down (up_down.hpp); spread over equal
 * ones by how many LIDs a port carries already. LIDs must be assigned. Costs switches * links for
 * the distances and LIDs * switches for the tables.
 */
void route(Subnet &subnet);

/* Limits of a path from one end port to another. */
struct PathLimits {
	ib::Mtu mtu = ib::Mtu::mtu_4096;
	ib::Rate rate = ib::Rate::gbps_300;
	unsigned hops = 0;
};

/* Follow the forwarding tables; empty if they do not lead there. */
std::optional<PathLimits> walk(const Subnet &subnet, PortRef from, ib::Lid to);

/* The ports of a multicast tree, by switch index: a bit for each port (bit n: port n). */
using PortMask = std::vector<std::uint64_t>;
using McTree = std::vector<PortMask>;

/*
 * The smallest part of the subnet's spanning tree that connects the members' ports. Switches
 * outside of it have an empty mask. Members in unconnected parts of the subnet are connected part
 * by part. The subnet is routed.
 */
McTree multicast_tree(const Subnet &subnet, const std::vector<PortRef> &members);

} // namespace weft::sm
