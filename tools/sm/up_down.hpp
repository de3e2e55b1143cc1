// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes deadlock-free routes by the up/down algorithm. On shortest paths, packets could
// deadlock: a packet occupies a buffer until the next buffer on its path has space, so packets
// whose paths form a cycle, as on rings and tori, could wait for each other for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Returns trees of shortest paths from a root to all switches, one for each part of the subnet. The
 * root is the switch with the smallest total of hops to the others. The subnet's distances must be
 * known.
 */
std::vector<TreeLink> spanning_tree(const Subnet &subnet, const Edges &edges);

/*
 * Returns true if packets could deadlock: unicast packets on any shortest paths, together with
 * multicast packets along the spanning tree. Packets are sent from and to the switches whose entry
 * in @ends is true. The subnet's distances and spanning tree must be known.
 */
bool may_deadlock(const Subnet &subnet, const Edges &edges, const std::vector<bool> &ends);

/*
 * Up/down routing (up*-down*): each link has an upper end, which is nearer to the root, and a lower
 * end. A path never goes up after it has gone down. There are therefore no cycles: a packet that
 * waits for a link downwards waits only for links below it. The root is that of the spanning tree,
 * so paths along the tree are valid, and multicast creates no cycle either. Paths are the shortest
 * ones under this rule, except that a switch goes down if it can.
 */
class UpDown
{
public:
	/* The subnet's spanning tree must be known. @edges must outlive this object. */
	UpDown(const Subnet &subnet, const Edges &edges);

	/* Selects the destination switch of the following queries. */
	void set_destination(std::size_t destination);
	/* Returns true if a path to the destination may continue by @edge of the switch @at. */
	bool may_follow(std::size_t at, const Edge &edge) const;

private:
	/*
	 * Returns true if the first switch is nearer to the root, or has the lower index at equal
	 * distance.
	 */
	bool is_above(std::size_t a, std::size_t b) const;

	const Edges &edges_;
	std::vector<unsigned> rank_;
	std::vector<std::size_t> from_the_top_;
	/*
	 * Number of hops of the path that only goes down, if there is one, and of the shortest
	 * path.
	 */
	std::vector<std::uint16_t> down_;
	std::vector<std::uint16_t> hops_;
};

} // namespace weft::sm
