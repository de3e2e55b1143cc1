// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/routing.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "sm/up_down.hpp"

namespace weft::sm
{

namespace
{

constexpr std::uint8_t unreachable = 0xff;

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
			/* A cable back to the same switch leads nowhere. */
			if (to != static_cast<int>(index))
				edges[index].push_back(
					{static_cast<std::uint8_t>(number), peer.port, to});
		}
	}
	return edges;
}

/* Breadth first from each switch. */
void measure(Subnet &subnet, const Edges &edges)
{
	std::size_t count = edges.size();
	subnet.distance.assign(count * count, unreachable);
	std::deque<int> queue;
	for (std::size_t from = 0; from < count; from++) {
		std::uint8_t *row = subnet.distance.data() + from * count;
		row[from] = 0;
		queue.push_back(static_cast<int>(from));
		while (!queue.empty()) {
			auto at = static_cast<std::size_t>(queue.front());
			queue.pop_front();
			if (row[at] == unreachable - 1)
				continue;
			for (const Edge &edge : edges[at]) {
				auto to = static_cast<std::size_t>(edge.to);
				if (row[to] != unreachable)
					continue;
				row[to] = static_cast<std::uint8_t>(row[at] + 1);
				queue.push_back(edge.to);
			}
		}
	}
}

struct Target {
	ib::Lid lid;
	/* The port at the switch that it is attached to; 0 for the switch itself. */
	std::uint8_t port;
};

} // namespace

void route(Subnet &subnet)
{
	std::size_t count = subnet.switches.size();
	subnet.edges = switch_edges(subnet);
	const Edges &edges = subnet.edges;
	measure(subnet, edges);
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

	/* LIDs that a port carries, by switch and port. */
	std::vector<std::vector<unsigned>> load(count);
	for (std::size_t index = 0; index < count; index++)
		load[index].resize(subnet.nodes[static_cast<std::size_t>(subnet.switches[index])]
					   .ports.size());

	/* Switches with end ports: what others say and hear themselves fills no buffers. */
	std::vector<bool> ends(count);
	for (std::size_t index = 0; index < count; index++)
		ends[index] = std::ranges::any_of(
			targets[index], [](const Target &target) { return target.port != 0; });
	std::optional<UpDown> up_down;
	if (may_lock_up(subnet, edges, ends))
		up_down.emplace(subnet, edges);

	/* The ports that lead nearer, and what each of them carries. */
	struct Way {
		unsigned carries;
		std::uint8_t port;
	};
	std::vector<Way> nearer;
	for (std::size_t destination = 0; destination < count; destination++) {
		if (up_down)
			up_down->aim(destination);
		for (std::size_t at = 0; at < count; at++) {
			Lft &lft = subnet.lfts[at];
			if (at == destination) {
				for (const Target &target : targets[destination])
					lft[target.lid] = target.port;
				continue;
			}
			std::uint8_t hops =
				subnet.hops(static_cast<int>(destination), static_cast<int>(at));
			if (hops == unreachable)
				continue;
			nearer.clear();
			auto &used = load[at];
			for (const Edge &edge : edges[at])
				if (up_down ? up_down->leads(at, edge)
					    : subnet.hops(static_cast<int>(destination), edge.to) +
							      1 ==
						      hops)
					nearer.push_back({used[edge.port], edge.port});
			for (const Target &target : targets[destination]) {
				Way *best = nearer.data();
				for (Way &way : nearer)
					if (way.carries < best->carries)
						best = &way;
				lft[target.lid] = best->port;
				best->carries++;
			}
			for (const Way &way : nearer)
				used[way.port] = way.carries;
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
		/* To itself a port goes by the same limits as to others. */
		pass(from);
	}
	while (at != target && at.node != target.node) {
		const Node &node = subnet.node(at);
		/* More hops than switches: a loop. */
		if (!node.is_switch() || limits.hops > subnet.switches.size() + 1)
			return std::nullopt;
		const Lft &lft = subnet.lfts[static_cast<std::size_t>(node.switch_index)];
		std::uint8_t out = to < lft.size() ? lft[to] : ib::lft_drop;
		if (out == 0 || out >= node.ports.size() || !node.ports[out].peer)
			return std::nullopt;
		pass({at.node, out});
		at = node.ports[out].peer;
	}
	/* The right node by the wrong port. */
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

	/* Switches with members, and how many. */
	std::vector<unsigned> weight(count);
	std::vector<std::size_t> wanted;
	for (PortRef member : members) {
		PortRef at = subnet.attachment(member);
		if (!at)
			continue;
		auto index = static_cast<std::size_t>(subnet.node(at).switch_index);
		if (weight[index]++ == 0)
			wanted.push_back(index);
		set(index, at.port);
	}
	std::vector<bool> connected(count);
	for (std::size_t first : wanted) {
		if (connected[first])
			continue;
		/* The root with the shortest way to all members of this part; ties by index. */
		std::size_t root = first;
		std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
		for (std::size_t candidate = 0; candidate < count; candidate++) {
			if (subnet.hops(static_cast<int>(first), static_cast<int>(candidate)) ==
			    unreachable)
				continue;
			std::uint64_t total = 0;
			for (std::size_t index : wanted) {
				std::uint8_t hops = subnet.hops(static_cast<int>(candidate),
								static_cast<int>(index));
				if (hops != unreachable)
					total += std::uint64_t{hops} * weight[index];
			}
			if (total < best) {
				best = total;
				root = candidate;
			}
		}
		/* Breadth first from the root: each switch's way back to it. */
		std::vector<Edge> parent(count, Edge{0, 0, -1});
		std::vector<bool> seen(count);
		std::deque<std::size_t> queue{root};
		seen[root] = true;
		while (!queue.empty()) {
			std::size_t at = queue.front();
			queue.pop_front();
			for (const Edge &edge : subnet.edges[at]) {
				auto to = static_cast<std::size_t>(edge.to);
				if (seen[to])
					continue;
				seen[to] = true;
				parent[to] = {edge.peer_port, edge.port, static_cast<int>(at)};
				queue.push_back(to);
			}
		}
		/* From each member up to what is connected already. */
		connected[root] = true;
		for (std::size_t index : wanted) {
			if (!seen[index])
				continue;
			for (std::size_t at = index; !connected[at];) {
				connected[at] = true;
				const Edge &up = parent[at];
				auto above = static_cast<std::size_t>(up.to);
				set(at, up.port);
				set(above, up.peer_port);
				at = above;
			}
		}
	}
	return tree;
}

} // namespace weft::sm
