// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/up_down.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace weft::sm
{

namespace
{

constexpr std::uint16_t kNoRoute = std::numeric_limits<std::uint16_t>::max();

/*
 * Dependencies between channels. A channel is a pair of linked switches, in one direction; parallel
 * links are one channel.
 */
class Channels
{
public:
	explicit Channels(const Edges &edges) : neighbours_(edges.size()), first_(edges.size() + 1)
	{
		for (std::size_t at = 0; at < edges.size(); at++) {
			auto &own = neighbours_[at];
			for (const Edge &edge : edges[at])
				own.push_back(static_cast<std::size_t>(edge.to));
			std::sort(own.begin(), own.end());
			own.erase(std::unique(own.begin(), own.end()), own.end());
			first_[at + 1] = first_[at] + own.size();
		}
		waits_.resize(first_.back());
		arriving_.resize(edges.size());
		for (std::size_t at = 0; at < edges.size(); at++)
			for (std::size_t other : neighbours_[at]) {
				waits_[number(at, other)].resize(neighbours_[other].size());
				arriving_[at].push_back(number(other, at));
			}
	}

	const std::vector<std::size_t> &neighbours(std::size_t at) const { return neighbours_[at]; }

	/*
	 * Records that packets from the @from-th neighbour of @at may wait for buffer space in the
	 * channel to its @to-th neighbour.
	 */
	void wait(std::size_t from, std::size_t at, std::size_t to)
	{
		waits_[arriving_[at][from]][to] = true;
	}

	/*
	 * Repeatedly removes channels for which no other channel waits. Returns true if a cycle is
	 * left.
	 */
	bool has_cycle() const
	{
		std::vector<unsigned> waiting_for_it(waits_.size());
		each_wait([&](std::size_t, std::size_t other) { waiting_for_it[other]++; });
		std::vector<std::size_t> free;
		for (std::size_t channel = 0; channel < waits_.size(); channel++)
			if (waiting_for_it[channel] == 0)
				free.push_back(channel);
		std::vector<std::vector<std::size_t>> others(waits_.size());
		each_wait(
			[&](std::size_t one, std::size_t other) { others[one].push_back(other); });
		std::size_t taken = 0;
		for (; taken < free.size(); taken++)
			for (std::size_t other : others[free[taken]])
				if (--waiting_for_it[other] == 0)
					free.push_back(other);
		return taken < waits_.size();
	}

private:
	std::size_t number(std::size_t from, std::size_t to) const
	{
		const auto &own = neighbours_[from];
		return first_[from] +
		       static_cast<std::size_t>(std::lower_bound(own.begin(), own.end(), to) -
						own.begin());
	}

	template<typename Function>
	void each_wait(Function function) const
	{
		for (std::size_t at = 0; at < neighbours_.size(); at++)
			for (std::size_t to : neighbours_[at]) {
				const std::size_t one = number(at, to);
				for (std::size_t i = 0; i < waits_[one].size(); i++)
					if (waits_[one][i])
						function(one, first_[to] + i);
			}
	}

	std::vector<std::vector<std::size_t>> neighbours_;
	std::vector<std::size_t> first_;
	/* For each switch, the channels from its neighbours to it. */
	std::vector<std::vector<std::size_t>> arriving_;
	/* For each channel, whether it waits for each channel that leaves its far end. */
	std::vector<std::vector<bool>> waits_;
};

/*
 * Adds the dependencies of multicast, which may take any path of the tree between switches with end
 * ports.
 */
void wait_along_tree(Channels &channels, const std::vector<TreeLink> &tree,
		     const std::vector<bool> &ends)
{
	const std::size_t count = tree.size();
	/*
	 * Number of switches with end ports in the branch of each switch, computed from the lowest
	 * ones upwards.
	 */
	std::vector<std::size_t> lowest_first(count);
	std::iota(lowest_first.begin(), lowest_first.end(), 0);
	std::ranges::sort(lowest_first, std::ranges::greater(),
			  [&](std::size_t at) { return tree[at].depth; });
	std::vector<unsigned> below(count);
	std::vector<std::vector<std::size_t>> used(count);
	for (std::size_t at = 0; at < count; at++)
		below[at] = ends[at];
	for (std::size_t at : lowest_first)
		if (tree[at].up.to >= 0)
			below[static_cast<std::size_t>(tree[at].up.to)] += below[at];
	for (std::size_t at = 0; at < count; at++) {
		if (tree[at].up.to < 0 || below[at] == 0 ||
		    below[at] == below[static_cast<std::size_t>(tree[at].root)])
			continue;
		const auto above = static_cast<std::size_t>(tree[at].up.to);
		used[at].push_back(above);
		used[above].push_back(at);
	}
	const auto place = [&](std::size_t at, std::size_t other) {
		const auto &all = channels.neighbours(at);
		return static_cast<std::size_t>(std::ranges::lower_bound(all, other) - all.begin());
	};
	for (std::size_t at = 0; at < count; at++)
		for (std::size_t from : used[at])
			for (std::size_t to : used[at])
				if (from != to)
					channels.wait(place(at, from), at, place(at, to));
}

} // namespace

std::vector<TreeLink> spanning_tree(const Subnet &subnet, const Edges &edges)
{
	const std::size_t count = edges.size();
	const auto hops = [&](std::size_t from, std::size_t to) {
		return subnet.hops(static_cast<int>(from), static_cast<int>(to));
	};
	std::vector<TreeLink> tree(count);
	for (std::size_t first = 0; first < count; first++) {
		if (tree[first].root >= 0)
			continue;
		std::size_t root = first;
		unsigned best = std::numeric_limits<unsigned>::max();
		for (std::size_t candidate = first; candidate < count; candidate++) {
			if (hops(first, candidate) == kUnreachable)
				continue;
			unsigned total = 0;
			for (std::size_t to = 0; to < count; to++)
				if (hops(candidate, to) != kUnreachable)
					total += hops(candidate, to);
			if (total < best) {
				best = total;
				root = candidate;
			}
		}
		tree[root].root = static_cast<int>(root);
		std::vector<std::size_t> queue{root};
		for (std::size_t done = 0; done < queue.size(); done++) {
			const std::size_t at = queue[done];
			for (const Edge &edge : edges[at]) {
				TreeLink &link = tree[static_cast<std::size_t>(edge.to)];
				if (link.root >= 0)
					continue;
				link = {static_cast<int>(root),
					tree[at].depth + 1,
					{edge.peer_port, edge.port, static_cast<int>(at)}};
				queue.push_back(static_cast<std::size_t>(edge.to));
			}
		}
	}
	return tree;
}

bool may_deadlock(const Subnet &subnet, const Edges &edges, const std::vector<bool> &ends)
{
	Channels channels(edges);
	std::vector<std::vector<std::size_t>> by_hops(kUnreachable);
	std::vector<std::size_t> from, next;
	for (std::size_t destination = 0; destination < edges.size(); destination++) {
		if (!ends[destination])
			continue;
		const auto hops = [&](std::size_t at) {
			return subnet.hops(static_cast<int>(destination), static_cast<int>(at));
		};
		for (auto &equally_far : by_hops)
			equally_far.clear();
		for (std::size_t at = 0; at < edges.size(); at++)
			if (hops(at) != kUnreachable)
				by_hops[hops(at)].push_back(at);
		/*
		 * Only packets that pass through a switch or start at it can wait there, so process
		 * the farthest switches first.
		 */
		std::vector<bool> passes = ends;
		for (std::size_t far = by_hops.size() - 1; far > 0; far--)
			for (std::size_t at : by_hops[far]) {
				from.clear();
				next.clear();
				const auto &neighbours = channels.neighbours(at);
				for (std::size_t i = 0; i < neighbours.size(); i++) {
					if (hops(neighbours[i]) == far + 1 && passes[neighbours[i]])
						from.push_back(i);
					else if (hops(neighbours[i]) + 1u == far)
						next.push_back(i);
				}
				if (!from.empty())
					passes[at] = true;
				for (std::size_t one : from)
					for (std::size_t other : next)
						channels.wait(one, at, other);
			}
	}
	wait_along_tree(channels, subnet.spanning_tree, ends);
	return channels.has_cycle();
}

UpDown::UpDown(const Subnet &subnet, const Edges &edges)
    : edges_(edges), rank_(edges.size()), from_the_top_(edges.size())
{
	for (std::size_t at = 0; at < edges.size(); at++)
		rank_[at] = subnet.spanning_tree[at].depth;
	std::iota(from_the_top_.begin(), from_the_top_.end(), 0);
	std::sort(from_the_top_.begin(), from_the_top_.end(),
		  [&](std::size_t a, std::size_t b) { return is_above(a, b); });
}

bool UpDown::is_above(std::size_t a, std::size_t b) const
{
	return rank_[a] != rank_[b] ? rank_[a] < rank_[b] : a < b;
}

void UpDown::set_destination(std::size_t destination)
{
	down_.assign(edges_.size(), kNoRoute);
	hops_.assign(edges_.size(), kNoRoute);
	down_[destination] = 0;
	std::vector<std::size_t> queue{destination};
	for (std::size_t done = 0; done < queue.size(); done++) {
		const std::size_t at = queue[done];
		for (const Edge &edge : edges_[at]) {
			const auto to = static_cast<std::size_t>(edge.to);
			if (!is_above(to, at) || down_[to] != kNoRoute)
				continue;
			down_[to] = static_cast<std::uint16_t>(down_[at] + 1);
			queue.push_back(to);
		}
	}
	for (std::size_t at : from_the_top_) {
		hops_[at] = down_[at];
		if (down_[at] != kNoRoute)
			continue;
		for (const Edge &edge : edges_[at]) {
			const auto to = static_cast<std::size_t>(edge.to);
			if (is_above(to, at) && hops_[to] != kNoRoute)
				hops_[at] = std::min<std::uint16_t>(
					hops_[at], static_cast<std::uint16_t>(hops_[to] + 1));
		}
	}
}

bool UpDown::may_follow(std::size_t at, const Edge &edge) const
{
	const auto to = static_cast<std::size_t>(edge.to);
	if (hops_[at] == kNoRoute || hops_[at] == 0)
		return false;
	if (down_[at] != kNoRoute)
		return is_above(at, to) && down_[to] + 1 == down_[at];
	return is_above(to, at) && hops_[to] + 1 == hops_[at];
}

} // namespace weft::sm
