// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Deadlock-free routing (up/down). A packet holds its buffer until the next buffer has space, so
// packets on paths that form a cycle, as on rings and tori, could block each other for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * Trees that reach all switches by fewest hops from a root, one for each part of the subnet. The
 * root is the switch with the fewest hops to all others. The subnet's distances are known.
 */
std::vector<TreeLink> spanning_tree(const Subnet &subnet, const Edges &edges);

/*
 * Returns true if packets could wait for each other in a circle: unicast by fewest hops, by any of
 * equal paths, and multicast along the spanning tree. Both go from and to the switches in @ends, by
 * index. The subnet's distances and spanning tree must be known.
 */
bool may_lock_up(const Subnet &subnet, const Edges &edges, const std::vector<bool> &ends);

/*
 * Up and down (up*-down*) routing: links have an upper and a lower end, nearer to a root and
 * farther from it, and no way goes up again once it has gone down. So it does not go round: what
 * waits for a link down waits only for links below. The root is that of the spanning tree; so a
 * path along that tree is a legal one, and multicast does not close a circle either. Ways are the
 * shortest that there are under this rule, except that a switch that can go down does.
 */
class UpDown
{
public:
	/* The subnet's spanning tree is known. @edges outlives this. */
	UpDown(const Subnet &subnet, const Edges &edges);

	/* Selects the destination switch of the following queries. */
	void aim(std::size_t destination);
	/* Returns true if a path continues by @edge of the switch @at. */
	bool leads(std::size_t at, const Edge &edge) const;

private:
	/* Nearer to the root; of two equally near, the first. */
	bool above(std::size_t a, std::size_t b) const;

	const Edges &edges_;
	std::vector<unsigned> rank_;
	std::vector<std::size_t> from_the_top_;
	/* Hops of the way down, if there is one, and of the way. */
	std::vector<std::uint16_t> down_;
	std::vector<std::uint16_t> hops_;
};

} // namespace weft::sm
