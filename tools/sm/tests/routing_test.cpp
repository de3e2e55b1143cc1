// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the routing of whole topologies: every end port is reached from every switch, by the fewest
// hops where that is safe, and without cyclic buffer dependencies. The check does not depend on the
// routing algorithm: it follows the forwarding tables.
#include "sm/routing.hpp"

#include <map>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace weft::sm
{
namespace
{

using Cable = std::pair<int, int>;

// Returns switches that are connected by @cables, with a host at each of the first @with_hosts.
Subnet make_subnet(int switches, const std::vector<Cable> &cables, int with_hosts)
{
	Subnet subnet;
	subnet.nodes.resize(static_cast<std::size_t>(switches + with_hosts));
	for (int i = 0; i < switches; i++) {
		Node &node = subnet.nodes[static_cast<std::size_t>(i)];
		node.info.node_type = static_cast<std::uint8_t>(ib::NodeType::switch_);
		node.switch_index = i;
		node.ports.resize(1);
		subnet.switches.push_back(i);
	}
	const auto plug = [&](int at, PortRef peer) {
		auto &ports = subnet.nodes[static_cast<std::size_t>(at)].ports;
		ports.emplace_back().peer = peer;
	};
	const auto next_port = [&](int at) {
		return static_cast<std::uint8_t>(
			subnet.nodes[static_cast<std::size_t>(at)].ports.size());
	};
	for (auto [one, other] : cables) {
		const PortRef a{one, next_port(one)}, b{other, next_port(other)};
		plug(one, b);
		plug(other, a);
	}
	for (int i = 0; i < with_hosts; i++) {
		const PortRef host{switches + i, 1}, at{i, next_port(i)};
		Node &node = subnet.nodes[static_cast<std::size_t>(host.node)];
		node.info.node_type = static_cast<std::uint8_t>(ib::NodeType::channel_adapter);
		node.ports.resize(2);
		node.ports[1].lid = static_cast<ib::Lid>(i + 1);
		node.ports[1].peer = at;
		plug(i, host);
		subnet.end_ports.push_back(host);
		subnet.by_lid[node.ports[1].lid] = host;
	}
	subnet.top_lid = static_cast<ib::Lid>(with_hosts);
	return subnet;
}

// The result of following the forwarding tables from each switch with a host to each LID: the total
// number of hops, and for each channel (a switch port) the channels that a packet holding it may
// wait for.
struct Followed {
	bool all_arrive = true;
	unsigned hops = 0;
	std::map<std::pair<int, int>, std::set<std::pair<int, int>>> waits;
};

Followed follow(const Subnet &subnet)
{
	Followed result;
	for (PortRef source : subnet.end_ports)
		for (PortRef target : subnet.end_ports) {
			const ib::Lid lid = subnet.port(target).lid;
			PortRef at = subnet.attachment(source);
			std::pair<int, int> held{-1, 0};
			unsigned hops = 0;
			while (at.node != target.node && hops <= subnet.switches.size()) {
				const Node &node = subnet.node(at);
				const std::uint8_t out =
					subnet.lfts[static_cast<std::size_t>(node.switch_index)]
						   [lid];
				if (out == ib::lft_drop || out >= node.ports.size())
					break;
				const std::pair<int, int> wanted{at.node, out};
				if (held.first >= 0)
					result.waits[held].insert(wanted);
				held = wanted;
				at = node.ports[out].peer;
				hops++;
			}
			result.all_arrive &= at.node == target.node;
			result.hops += hops;
		}
	return result;
}

// Returns true if a channel waits for itself, directly or through other channels.
bool has_cycle(const Followed &followed)
{
	std::map<std::pair<int, int>, int> state; // 1: in progress, 2: done
	const auto look = [&](const auto &self, std::pair<int, int> channel) -> bool {
		if (state[channel])
			return state[channel] == 1;
		state[channel] = 1;
		if (const auto found = followed.waits.find(channel); found != followed.waits.end())
			for (const auto &other : found->second)
				if (self(self, other))
					return true;
		state[channel] = 2;
		return false;
	};
	for (const auto &[channel, others] : followed.waits)
		if (look(look, channel))
			return true;
	return false;
}

std::vector<Cable> ring(int switches)
{
	std::vector<Cable> cables;
	for (int i = 0; i < switches; i++)
		cables.emplace_back(i, (i + 1) % switches);
	return cables;
}

std::vector<Cable> torus(int width, int height)
{
	std::vector<Cable> cables;
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			cables.emplace_back(y * width + x, y * width + (x + 1) % width);
			cables.emplace_back(y * width + x, (y + 1) % height * width + x);
		}
	return cables;
}

// Returns groups of fully connected switches, with one link between each two groups.
std::vector<Cable> dragonfly(int groups, int in_each)
{
	std::vector<Cable> cables;
	for (int group = 0; group < groups; group++)
		for (int a = 0; a < in_each; a++)
			for (int b = a + 1; b < in_each; b++)
				cables.emplace_back(group * in_each + a, group * in_each + b);
	for (int a = 0; a < groups; a++)
		for (int b = a + 1; b < groups; b++)
			cables.emplace_back(a * in_each + b % in_each, b * in_each + a % in_each);
	return cables;
}

// Returns leaf switches, which come first and have the hosts, each linked to all spine switches.
std::vector<Cable> tree(int leaves, int spines)
{
	std::vector<Cable> cables;
	for (int leaf = 0; leaf < leaves; leaf++)
		for (int spine = 0; spine < spines; spine++)
			cables.emplace_back(leaf, leaves + spine);
	return cables;
}

Followed routed(int switches, const std::vector<Cable> &cables, int with_hosts)
{
	Subnet subnet = make_subnet(switches, cables, with_hosts);
	route(subnet);
	return follow(subnet);
}

// Returns how often a packet from @from reaches each end node along the tree.
std::map<int, unsigned> deliveries(const Subnet &subnet, const McTree &tree, PortRef from)
{
	std::map<int, unsigned> seen;
	std::vector<PortRef> under_way{subnet.attachment(from)};
	for (unsigned steps = 0; !under_way.empty() && steps < 10'000; steps++) {
		const PortRef at = under_way.back();
		under_way.pop_back();
		const Node &node = subnet.node(at);
		const PortMask &mask = tree[static_cast<std::size_t>(node.switch_index)];
		for (std::size_t port = 1; port < node.ports.size(); port++) {
			if (port == at.port || port / 64 >= mask.size() ||
			    (mask[port / 64] >> port % 64 & 1) == 0)
				continue;
			const PortRef peer = node.ports[port].peer;
			if (subnet.node(peer).is_switch())
				under_way.push_back(peer);
			else
				seen[peer.node]++;
		}
	}
	return seen;
}

// For any topology, each member of a group gets a packet of another member exactly once, and no
// other port gets it.
TEST(Routing, MulticastReachesEachMemberOnceAndNoOtherPort)
{
	const struct {
		int switches;
		std::vector<Cable> cables;
	} subnets[] = {{9, ring(9)}, {16, torus(4, 4)}, {36, dragonfly(9, 4)}, {9, tree(6, 3)}};
	std::minstd_rand draw;
	for (const auto &[switches, cables] : subnets) {
		Subnet subnet = make_subnet(switches, cables, switches);
		route(subnet);
		for (int round = 0; round < 50; round++) {
			std::vector<PortRef> members;
			for (PortRef port : subnet.end_ports)
				if (draw() % 3 == 0)
					members.push_back(port);
			const McTree tree = multicast_tree(subnet, members);
			for (PortRef from : members) {
				std::map<int, unsigned> expected;
				for (PortRef member : members)
					if (member != from)
						expected[member.node] = 1;
				ASSERT_EQ(expected, deliveries(subnet, tree, from)) << switches;
			}
		}
	}
}

TEST(Routing, RoutesOnRingsAreDeadlockFree)
{
	for (int switches = 2; switches <= 12; switches++) {
		const auto followed = routed(switches, ring(switches), switches);
		EXPECT_TRUE(followed.all_arrive) << switches;
		EXPECT_FALSE(has_cycle(followed)) << switches;
	}
}

TEST(Routing, RoutesOnToriAreDeadlockFree)
{
	for (auto [width, height] : {Cable{3, 3}, {4, 4}, {5, 3}, {8, 8}}) {
		const auto followed = routed(width * height, torus(width, height), width * height);
		EXPECT_TRUE(followed.all_arrive) << width << 'x' << height;
		EXPECT_FALSE(has_cycle(followed)) << width << 'x' << height;
	}
}

TEST(Routing, RoutesOnDragonfliesAreDeadlockFree)
{
	const auto followed = routed(9 * 4, dragonfly(9, 4), 9 * 4);
	EXPECT_TRUE(followed.all_arrive);
	EXPECT_FALSE(has_cycle(followed));
}

// Two unconnected rings: each part has its own root.
TEST(Routing, RoutesOnUnconnectedRingsAreDeadlockFree)
{
	auto cables = ring(5);
	for (auto [one, other] : ring(6))
		cables.emplace_back(5 + one, 5 + other);
	Subnet subnet = make_subnet(11, cables, 11);
	route(subnet);
	EXPECT_FALSE(has_cycle(follow(subnet)));
	EXPECT_TRUE(walk(subnet, subnet.end_ports[5], 11));
	EXPECT_FALSE(walk(subnet, subnet.end_ports[0], 11));
}

// Shortest paths over all spines are used if they are free of deadlocks. Routing with a single root
// would send all traffic through one spine.
TEST(Routing, FatTreesUseShortestPathsAndAllSpines)
{
	Subnet subnet = make_subnet(
		6 + 3, tree(6, 3),
		6 + 1); // one more host at the first spine, which may be the subnet manager's
	route(subnet);
	const auto followed = follow(subnet);
	EXPECT_TRUE(followed.all_arrive);
	EXPECT_FALSE(has_cycle(followed));
	// Paths between leaves have 3 hops including the one to the host, paths within a leaf have
	// 1, and paths between a leaf and that spine have 2.
	EXPECT_EQ(followed.hops, 6u * 5 * 3 + 7 * 1 + 2 * 6 * 2);
	std::set<int> used;
	for (const auto &[channel, others] : followed.waits)
		for (const auto &other : others)
			used.insert(other.first);
	for (int spine : {6, 7, 8})
		EXPECT_TRUE(used.contains(spine)) << spine;
}

// Adds the channels that a multicast packet may hold and wait for: at each switch of the tree, one
// input channel and each output channel.
void follow_tree(const Subnet &subnet, const McTree &tree, Followed &followed)
{
	for (std::size_t index = 0; index < tree.size(); index++) {
		const int at = subnet.switches[index];
		const auto &ports = subnet.nodes[static_cast<std::size_t>(at)].ports;
		const auto is_in_tree = [&](std::size_t port) {
			return port / 64 < tree[index].size() &&
			       (tree[index][port / 64] >> port % 64 & 1) != 0 && ports[port].peer &&
			       subnet.node(ports[port].peer).is_switch();
		};
		for (std::size_t in = 1; in < ports.size(); in++)
			for (std::size_t out = 1; out < ports.size(); out++)
				if (in != out && is_in_tree(in) && is_in_tree(out))
					followed.waits[{ports[in].peer.node, ports[in].peer.port}]
						.insert({at, static_cast<int>(out)});
	}
}

TEST(Routing, MulticastRoutesCombinedWithUnicastRoutesAreDeadlockFree)
{
	struct Case {
		int switches;
		std::vector<Cable> cables;
		int with_hosts;
	};
	std::vector<Case> cases = {{9, ring(9), 9},
				   {16, torus(4, 4), 16},
				   {36, dragonfly(9, 4), 36},
				   {9, tree(6, 3), 6},
				   {6, tree(2, 4), 2}};
	std::minstd_rand draw;
	// Random trees with a few additional links.
	for (int round = 0; round < 30; round++) {
		const int switches = 4 + static_cast<int>(draw() % 12);
		Case random{switches, {}, 1 + static_cast<int>(draw()) % switches};
		const auto one_of = [&](int end) {
			return static_cast<int>(draw() % static_cast<unsigned>(end));
		};
		for (int at = 1; at < switches; at++)
			random.cables.emplace_back(at, one_of(at));
		for (int i = 0; i < switches / 2; i++)
			if (const Cable more{one_of(switches), one_of(switches)};
			    more.first != more.second)
				random.cables.push_back(more);
		cases.push_back(random);
	}
	for (const auto &[switches, cables, with_hosts] : cases) {
		Subnet subnet = make_subnet(switches, cables, with_hosts);
		route(subnet);
		Followed followed = follow(subnet);
		EXPECT_TRUE(followed.all_arrive);
		for (int group = 0; group < 100; group++) {
			std::vector<PortRef> members;
			for (PortRef port : subnet.end_ports)
				if (draw() % 3 == 0)
					members.push_back(port);
			follow_tree(subnet, multicast_tree(subnet, members), followed);
		}
		EXPECT_FALSE(has_cycle(followed))
			<< switches << " switches, " << cables.size() << " links";
	}
}

} // namespace
} // namespace weft::sm
