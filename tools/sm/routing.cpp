// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/routing.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <queue>
#include <utility>

#include "sm/up_down.hpp"

namespace weft::sm
{

namespace
{

Edges switch_edges(const Subnet &subnet)
{
	Edges edges(subnet.switches.size());
	for (std::size_t index = 0; index < edges.size(); index++) {
		const Node &node = subnet.nodes[static_cast<std::size_t>(subnet.switches[index])];
		for (std::size_t number = 1; number < node.ports.size(); number++) {
			PortRef peer = node.ports[number].peer;
			if (!peer || !subnet.node(peer).is_switch())
				continue;
			int to = subnet.node(peer).switch_index;
			/* Ignore cables back to the same switch. */
			if (to != static_cast<int>(index))
				edges[index].push_back(
					{static_cast<std::uint8_t>(number), peer.port, to});
		}
	}
	return edges;
}

/* Computes distances by breadth-first search from each switch. */
void measure(Subnet &subnet, const Edges &edges)
{
	std::size_t count = edges.size();
	subnet.distance.assign(count * count, kUnreachable);
	std::deque<int> queue;
	for (std::size_t from = 0; from < count; from++) {
		std::uint8_t *row = subnet.distance.data() + from * count;
		row[from] = 0;
		queue.push_back(static_cast<int>(from));
		while (!queue.empty()) {
			auto at = static_cast<std::size_t>(queue.front());
			queue.pop_front();
			if (row[at] == kUnreachable - 1)
				continue;
			for (const Edge &edge : edges[at]) {
				auto to = static_cast<std::size_t>(edge.to);
				if (row[to] != kUnreachable)
					continue;
				row[to] = static_cast<std::uint8_t>(row[at] + 1);
				queue.push_back(edge.to);
			}
		}
	}
}

struct Target {
	ib::Lid lid;
	/* The port of the switch to which the end port is connected, or 0 for the switch itself. */
	std::uint8_t port;
};

} // namespace

void route(Subnet &subnet)
{
	std::size_t count = subnet.switches.size();
	subnet.edges = switch_edges(subnet);
	const Edges &edges = subnet.edges;
	measure(subnet, edges);
	subnet.spanning_tree = spanning_tree(subnet, edges);
	subnet.lfts.assign(count, Lft(subnet.top_lid + 1u, ib::lft_drop));

	std::vector<std::vector<Target>> targets(count);
	for (PortRef ref : subnet.end_ports) {
		const PortData &port = subnet.port(ref);
		PortRef at = subnet.attachment(ref);
		if (port.lid == 0 || !at)
			continue;
		for (unsigned i = 0; i < 1u << port.lmc; i++)
			targets[static_cast<std::size_t>(subnet.node(at).switch_index)].push_back(
				{static_cast<ib::Lid>(port.lid + i), at.port});
	}

	/* Number of LIDs routed through a port, by switch and port. */
	std::vector<std::vector<unsigned>> load(count);
	for (std::size_t index = 0; index < count; index++)
		load[index].resize(subnet.nodes[static_cast<std::size_t>(subnet.switches[index])]
					   .ports.size());

	/*
	 * Only switches with end ports matter, because the few packets of other switches do not
	 * fill buffers.
	 */
	std::vector<bool> ends(count);
	for (std::size_t index = 0; index < count; index++)
		ends[index] = std::ranges::any_of(
			targets[index], [](const Target &target) { return target.port != 0; });
	std::optional<UpDown> up_down;
	if (may_deadlock(subnet, edges, ends))
		up_down.emplace(subnet, edges);

	/* The ports on shortest paths, and their numbers of LIDs. */
	struct Route {
		unsigned carries;
		std::uint8_t port;
	};
	std::vector<Route> nearer;
	for (std::size_t destination = 0; destination < count; destination++) {
		if (up_down)
			up_down->set_destination(destination);
		for (std::size_t at = 0; at < count; at++) {
			Lft &lft = subnet.lfts[at];
			if (at == destination) {
				for (const Target &target : targets[destination])
					lft[target.lid] = target.port;
				continue;
			}
			std::uint8_t hops =
				subnet.hops(static_cast<int>(destination), static_cast<int>(at));
			if (hops == kUnreachable)
				continue;
			nearer.clear();
			auto &used = load[at];
			for (const Edge &edge : edges[at])
				if (up_down ? up_down->may_follow(at, edge)
					    : subnet.hops(static_cast<int>(destination), edge.to) +
							      1 ==
						      hops)
					nearer.push_back({used[edge.port], edge.port});
			for (const Target &target : targets[destination]) {
				Route *best = nearer.data();
				for (Route &candidate : nearer)
					if (candidate.carries < best->carries)
						best = &candidate;
				lft[target.lid] = best->port;
				best->carries++;
			}
			for (const Route &candidate : nearer)
				used[candidate.port] = candidate.carries;
		}
	}
}

std::optional<PathLimits> walk(const Subnet &subnet, PortRef from, ib::Lid to)
{
	PathLimits limits;
	auto pass = [&](PortRef out) {
		const ib::PortInfo &info = subnet.port(out).info;
		limits.mtu = std::min(limits.mtu, info.neighbor_mtu());
		ib::Rate rate = ib::link_rate(info.link_width_active, info.speed_active(),
					      info.speed_ext_active());
		if (ib::rate_tenths(rate) < ib::rate_tenths(limits.rate))
			limits.rate = rate;
		limits.hops++;
	};
	PortRef target = subnet.find_lid(to);
	if (!target)
		return std::nullopt;
	PortRef at = from;
	if (!subnet.node(from).is_switch()) {
		if (from != target) {
			at = subnet.port(from).peer;
			if (!at)
				return std::nullopt;
		}
		/* The limits of the port itself also apply to a path to itself. */
		pass(from);
	}
	while (at != target && at.node != target.node) {
		const Node &node = subnet.node(at);
		/* A path with more hops than there are switches is a loop. */
		if (!node.is_switch() || limits.hops > subnet.switches.size() + 1)
			return std::nullopt;
		const Lft &lft = subnet.lfts[static_cast<std::size_t>(node.switch_index)];
		std::uint8_t out = to < lft.size() ? lft[to] : ib::lft_drop;
		if (out == 0 || out >= node.ports.size() || !node.ports[out].peer)
			return std::nullopt;
		pass({at.node, out});
		at = node.ports[out].peer;
	}
	/* The packet reaches the node by another port than @to. */
	if (at != target && !subnet.node(target).is_switch())
		return std::nullopt;
	if (limits.hops == 0) {
		limits.mtu = subnet.port(from).info.mtu_cap();
		limits.rate = ib::Rate::gbps_40;
	}
	return limits;
}

McTree multicast_tree(const Subnet &subnet, const std::vector<PortRef> &members)
{
	std::size_t count = subnet.switches.size();
	McTree tree(count);
	auto set = [&](std::size_t index, std::uint8_t port) {
		PortMask &mask = tree[index];
		if (mask.size() <= port / 64u)
			mask.resize(port / 64u + 1u);
		mask[port / 64u] |= std::uint64_t{1} << port % 64;
	};

	/*
	 * The branches of the spanning tree that have members and are not connected yet, by the
	 * depth and index of their upper end, and their number in each part of the subnet.
	 */
	std::priority_queue<std::pair<unsigned, std::size_t>> branches;
	std::vector<bool> is_branch(count);
	std::vector<unsigned> of_part(count);
	const auto add = [&](std::size_t index) {
		if (is_branch[index])
			return;
		is_branch[index] = true;
		branches.emplace(subnet.spanning_tree[index].depth, index);
		of_part[static_cast<std::size_t>(subnet.spanning_tree[index].root)]++;
	};
	for (PortRef member : members) {
		PortRef at = subnet.attachment(member);
		if (!at)
			continue;
		auto index = static_cast<std::size_t>(subnet.node(at).switch_index);
		set(index, at.port);
		add(index);
	}
	/* Follow the lowest branch upwards, until all branches have met. */
	while (!branches.empty()) {
		const std::size_t index = branches.top().second;
		branches.pop();
		const TreeLink &link = subnet.spanning_tree[index];
		if (of_part[static_cast<std::size_t>(link.root)] == 1)
			continue;
		of_part[static_cast<std::size_t>(link.root)]--;
		const auto above = static_cast<std::size_t>(link.up.to);
		set(index, link.up.port);
		set(above, link.up.peer_port);
		add(above);
	}
	return tree;
}

} // namespace weft::sm
