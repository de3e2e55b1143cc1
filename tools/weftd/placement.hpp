// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Divides the nodes of a lab among the daemons (places) that run it together, so that each daemon
// runs about the same number of hosts, and few links connect nodes of different daemons.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace weft::weftd
{

struct PlacementGraph {
	struct Node {
		std::size_t weight = 1;
		std::optional<std::size_t> place; // if it is fixed
		// Neighbours, and the number of edges to each.
		std::vector<std::pair<std::size_t, std::size_t>> neighbours;
	};
	std::vector<Node> nodes;

	void add_edge(std::size_t a, std::size_t b);
};

/*
 * Returns the place of each node, 0 to @places - 1. The result depends only on the arguments: each
 * daemon of a lab computes it by itself, and all must agree. A library such as METIS would give
 * other results in another version, and in a build without it.
 *
 * Each place grows from its fixed nodes, or from the first free one, by the neighbour that adds
 * least to the cut. Then single nodes move and pairs are exchanged while this reduces the cut. The
 * best of three such divisions is used, which differ in the order of equally good nodes. Time: for
 * each of them O(n * (n + places)), at most 17 times.
 */
std::vector<std::size_t> divide(const PlacementGraph &graph, std::size_t places);

} // namespace weft::weftd
