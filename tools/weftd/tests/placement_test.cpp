// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the nodes of a lab are divided evenly among several daemons, that few links connect
// nodes of different daemons, and that nodes stay at the places that the lab file specifies.
#include "weftd/placement.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::weftd
{
namespace
{

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns the weights of the places, and the number of cut edges.
std::pair<std::vector<std::size_t>, std::size_t> result_of(const PlacementGraph &graph,
							   std::size_t places)
{
	const auto place_of = divide(graph, places);
	EXPECT_EQ(place_of, divide(graph, places));
	std::vector<std::size_t> weights(places);
	std::size_t cut = 0;
	for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
		weights[place_of[node]] += graph.nodes[node].weight;
		for (const auto &[neighbour, count] : graph.nodes[node].neighbours)
			cut += node < neighbour && place_of[node] != place_of[neighbour] ? count
											 : 0;
	}
	return {weights, cut};
}

PlacementGraph torus(std::size_t columns, std::size_t rows)
{
	PlacementGraph graph;
	graph.nodes.resize(columns * rows);
	for (std::size_t y = 0; y < rows; ++y)
		for (std::size_t x = 0; x < columns; ++x) {
			graph.add_edge(y * columns + x, y * columns + (x + 1) % columns);
			graph.add_edge(y * columns + x, (y + 1) % rows * columns + x);
		}
	return graph;
}

// The cuts of these graphs are the smallest ones of balanced divisions.
TEST(Placement, RingsAndToriAreDividedIntoEqualPartsWithTheFewestCutLinks)
{
	PlacementGraph ring;
	ring.nodes.resize(16);
	for (std::size_t node = 0; node < 16; ++node)
		ring.add_edge(node, (node + 1) % 16);
	using Weights = std::vector<std::size_t>;
	EXPECT_EQ(result_of(ring, 2), (std::pair<Weights, std::size_t>{{8, 8}, 2}));
	EXPECT_EQ(result_of(ring, 4), (std::pair<Weights, std::size_t>{{4, 4, 4, 4}, 4}));
	EXPECT_EQ(result_of(torus(8, 8), 2), (std::pair<Weights, std::size_t>{{32, 32}, 16}));
	EXPECT_EQ(result_of(torus(4, 8), 2), (std::pair<Weights, std::size_t>{{16, 16}, 8}));
	EXPECT_EQ(result_of(torus(8, 8), 4),
		  (std::pair<Weights, std::size_t>{{16, 16, 16, 16}, 32}));
	EXPECT_EQ(result_of(torus(8, 4), 2), (std::pair<Weights, std::size_t>{{16, 16}, 8}));
}

// Two groups whose nodes alternate in the file, with one edge between them.
TEST(Placement, CliquesWhoseNodesAlternateInTheNodeListAreNotSplitBetweenDaemons)
{
	PlacementGraph graph;
	graph.nodes.resize(20);
	for (std::size_t a = 0; a < 20; ++a)
		for (std::size_t b = a + 2; b < 20; b += 2)
			graph.add_edge(a, b);
	graph.add_edge(0, 1);
	const auto [weights, cut] = result_of(graph, 2);
	EXPECT_THAT(weights, ElementsAre(10, 10));
	EXPECT_EQ(cut, 1u);
}

// The first place grows to its share, which is one node less than the larger group.
TEST(Placement, OneDaemonGetsMoreNodesThanTheOtherIfThatCutsFewerLinks)
{
	PlacementGraph graph;
	graph.nodes.resize(20);
	for (std::size_t a = 0; a < 20; ++a)
		for (std::size_t b = a + 1; b < 20; ++b)
			if ((a < 11) == (b < 11))
				graph.add_edge(a, b);
	const auto [weights, cut] = result_of(graph, 2);
	EXPECT_THAT(weights, ElementsAre(11, 9));
	EXPECT_EQ(cut, 0u);
}

TEST(Placement, NodesAreAssignedToTheirSpecifiedDaemons)
{
	PlacementGraph graph = torus(4, 4);
	graph.nodes[0].place = 1;
	graph.nodes[15].place = 0;
	const auto place_of = divide(graph, 2);
	EXPECT_EQ(place_of[0], 1u);
	EXPECT_EQ(place_of[15], 0u);
	EXPECT_EQ(std::ranges::count(place_of, 0u), 8);
}

TEST(Placement, EachDaemonGetsANodeIfThereAreEnoughNodes)
{
	PlacementGraph graph;
	graph.nodes.resize(4);
	graph.nodes[0].weight = 100;
	for (std::size_t node = 1; node < 4; ++node)
		graph.add_edge(0, node);
	for (const std::size_t places : {1u, 2u, 3u, 4u, 6u}) {
		const auto place_of = divide(graph, places);
		EXPECT_EQ(std::set(place_of.begin(), place_of.end()).size(),
			  std::min<std::size_t>(places, 4));
	}
	EXPECT_THAT(divide({}, 3), IsEmpty());
}

// A fat tree: 16 leaves with 18 hosts each, and 9 spines.
TEST(Placement, FatTreeIsDividedEvenly)
{
	PlacementGraph graph;
	graph.nodes.resize(25);
	for (std::size_t leaf = 0; leaf < 16; ++leaf) {
		graph.nodes[leaf].weight = 19;
		for (std::size_t spine = 16; spine < 25; ++spine)
			graph.add_edge(leaf, spine);
	}
	for (const std::size_t places : {2u, 4u}) {
		const auto [weights, cut] = result_of(graph, places);
		const auto [least, most] = std::ranges::minmax(weights);
		EXPECT_LE(most - least, 19u) << places;
		EXPECT_LE(cut, 16 * 9 * (places - 1) / places + 16) << places;
	}
}

} // namespace
} // namespace weft::weftd
