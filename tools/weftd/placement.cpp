// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/placement.hpp"

#include <algorithm>

namespace weft::weftd
{

namespace
{

constexpr std::size_t kNone = ~std::size_t{0};
constexpr int kMostPasses = 16;

// Which of equally good nodes a place gets next. On a grid, the shape of a place depends on it.
enum class Preference { first, last, earliest_connected };

class Division
{
public:
	Division(const PlacementGraph &graph, std::size_t places, Preference preference)
	    : graph_(graph), places_(places), preference_(preference),
	      place_of_(graph.nodes.size(), kNone), edges_(graph.nodes.size() * places),
	      free_edges_(graph.nodes.size()), connected_at_(graph.nodes.size()), weight_(places),
	      count_(places)
	{
		for (std::size_t node = 0; node < graph.nodes.size(); ++node)
			for (const auto &[neighbour, count] : graph.nodes[node].neighbours)
				free_edges_[node] += count;
		for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
			total_ += graph.nodes[node].weight;
			if (graph.nodes[node].place)
				put(node, *graph.nodes[node].place);
			else
				++left_;
		}
	}

	// Returns the number of edges that are cut.
	std::size_t cut()
	{
		std::size_t twice = 0;
		for (std::size_t node = 0; node < place_of_.size(); ++node)
			for (std::size_t place = 0; place < places_; ++place)
				twice += place == place_of_[node] ? 0 : edges(node, place);
		return twice / 2;
	}
	const std::vector<std::size_t> &result() const { return place_of_; }

	void run()
	{
		for (std::size_t place = 0; place < places_; ++place)
			grow(place);
		// A place may have a tenth more than its share, or one node more.
		std::size_t largest = 0;
		for (const auto &node : graph_.nodes)
			largest = std::max(largest, node.weight);
		const std::size_t share = (total_ + places_ - 1) / places_;
		limit_ = share + std::max(share / 10, largest / 2);
		for (int pass = 0; pass < kMostPasses && (move_nodes() || swap_nodes()); ++pass)
			;
	}

private:
	std::size_t weight(std::size_t node) const { return graph_.nodes[node].weight; }
	bool fixed(std::size_t node) const { return graph_.nodes[node].place.has_value(); }
	// The number of edges between a node and the nodes of a place.
	std::size_t &edges(std::size_t node, std::size_t place)
	{
		return edges_[node * places_ + place];
	}
	// Returns by how much fewer edges are cut if the node moves from its place to another.
	std::ptrdiff_t gain(std::size_t node, std::size_t to)
	{
		return static_cast<std::ptrdiff_t>(edges(node, to)) -
		       static_cast<std::ptrdiff_t>(edges(node, place_of_[node]));
	}

	void put(std::size_t node, std::size_t place)
	{
		const std::size_t before = std::exchange(place_of_[node], place);
		++puts_;
		for (const auto &[neighbour, count] : graph_.nodes[node].neighbours) {
			if (edges(neighbour, place) == 0)
				connected_at_[neighbour] = puts_;
			edges(neighbour, place) += count;
			if (before != kNone)
				edges(neighbour, before) -= count;
			else
				free_edges_[neighbour] -= count;
		}
		weight_[place] += weight(node);
		++count_[place];
		if (before != kNone) {
			weight_[before] -= weight(node);
			--count_[before];
		}
	}

	bool is_preferred(std::size_t node, std::size_t earlier) const
	{
		switch (preference_) {
		case Preference::first:
			return false;
		case Preference::last:
			return true;
		case Preference::earliest_connected:
			return connected_at_[node] < connected_at_[earlier];
		}
		return false;
	}

	// Returns the node without a place that adds least to the cut, among those that are
	// connected to the place if there are such.
	std::size_t next_for(std::size_t place)
	{
		std::size_t best = kNone;
		bool connected = false;
		std::ptrdiff_t least = 0;
		for (std::size_t node = 0; node < place_of_.size(); ++node) {
			if (place_of_[node] != kNone)
				continue;
			const bool is_connected = edges(node, place) != 0;
			const auto cut = static_cast<std::ptrdiff_t>(free_edges_[node]) -
					 static_cast<std::ptrdiff_t>(edges(node, place));
			if (best != kNone &&
			    !(is_connected && (!connected || cut < least ||
					       (cut == least && is_preferred(node, best)))))
				continue;
			best = node;
			connected = is_connected;
			least = cut;
		}
		return best;
	}

	// Adds nodes to a place until it has its share of what the previous places have left.
	void grow(std::size_t place)
	{
		std::size_t rest = 0, empty = 0;
		for (std::size_t node = 0; node < place_of_.size(); ++node)
			if (place_of_[node] == kNone)
				rest += weight(node);
		for (std::size_t other = place; other < places_; ++other) {
			rest += weight_[other];
			empty += other > place && count_[other] == 0 ? 1 : 0;
		}
		const std::size_t share = (rest + places_ - place - 1) / (places_ - place);
		while (left_ != 0 && weight_[place] < share) {
			if (count_[place] != 0 && left_ <= empty)
				return; // one for each of the other places
			const std::size_t node = next_for(place);
			const std::size_t missing = share - weight_[place];
			if (count_[place] != 0 && place + 1 < places_ && weight(node) > 2 * missing)
				return;
			put(node, place);
			--left_;
		}
		// The last place gets what is left.
		while (left_ != 0 && place + 1 == places_) {
			put(next_for(place), place);
			--left_;
		}
	}

	// Moves nodes to places to which they have more edges, or to lighter ones with as many.
	bool move_nodes()
	{
		bool any = false;
		for (std::size_t node = 0; node < place_of_.size(); ++node) {
			const std::size_t from = place_of_[node];
			if (fixed(node) || count_[from] == 1)
				continue;
			std::size_t best = kNone;
			std::ptrdiff_t most = 0;
			for (std::size_t to = 0; to < places_; ++to) {
				const std::size_t after = weight_[to] + weight(node);
				const std::ptrdiff_t profit = gain(node, to);
				if (to == from || profit < most || after > limit_ ||
				    (profit == 0 && after >= weight_[from]))
					continue;
				if (best != kNone && profit == most && weight_[to] >= weight_[best])
					continue;
				best = to;
				most = profit;
			}
			if (best != kNone) {
				put(node, best);
				any = true;
			}
		}
		return any;
	}

	std::size_t edges_between(std::size_t a, std::size_t b) const
	{
		for (const auto &[neighbour, count] : graph_.nodes[a].neighbours)
			if (neighbour == b)
				return count;
		return 0;
	}

	// Exchanges two nodes of different places if fewer edges are cut then.
	bool swap_nodes()
	{
		bool any = false;
		for (std::size_t a = 0; a < place_of_.size(); ++a)
			for (std::size_t b = a + 1; b < place_of_.size() && !fixed(a); ++b)
				any |= swap_if_better(a, b);
		return any;
	}

	bool swap_if_better(std::size_t a, std::size_t b)
	{
		const std::size_t of_a = place_of_[a], of_b = place_of_[b];
		if (fixed(b) || of_a == of_b)
			return false;
		const std::ptrdiff_t profit = gain(a, of_b) + gain(b, of_a);
		if (profit <= 0 || profit <= 2 * static_cast<std::ptrdiff_t>(edges_between(a, b)))
			return false;
		const std::size_t in_a = weight_[of_a] - weight(a) + weight(b);
		const std::size_t in_b = weight_[of_b] - weight(b) + weight(a);
		if (std::max(in_a, in_b) > std::max({limit_, weight_[of_a], weight_[of_b]}))
			return false;
		put(a, of_b);
		put(b, of_a);
		return true;
	}

	const PlacementGraph &graph_;
	const std::size_t places_;
	const Preference preference_;
	std::vector<std::size_t> place_of_;
	std::vector<std::size_t> edges_;
	std::vector<std::size_t> free_edges_; // to nodes without a place
	// The number of assignments when the node became connected to a place for the last time.
	std::vector<std::size_t> connected_at_;
	std::size_t puts_ = 0;
	std::vector<std::size_t> weight_, count_; // of each place
	std::size_t total_ = 0;
	std::size_t left_ = 0; // nodes without a place
	std::size_t limit_ = 0;
};

} // namespace

void PlacementGraph::add_edge(std::size_t a, std::size_t b)
{
	if (a == b)
		return;
	const auto add = [this](std::size_t from, std::size_t to) {
		auto &list = nodes[from].neighbours;
		const auto known =
			std::ranges::find(list, to, &std::pair<std::size_t, std::size_t>::first);
		if (known != list.end())
			++known->second;
		else
			list.emplace_back(to, 1);
	};
	add(a, b);
	add(b, a);
}

std::vector<std::size_t> divide(const PlacementGraph &graph, std::size_t places)
{
	std::vector<std::size_t> best;
	std::size_t least = kNone;
	for (const auto preference :
	     {Preference::first, Preference::last, Preference::earliest_connected}) {
		Division division(graph, places, preference);
		division.run();
		if (const std::size_t cut = division.cut(); cut < least) {
			least = cut;
			best = division.result();
		}
	}
	return best;
}

} // namespace weft::weftd
