// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Describes the subnet as one sweep has discovered and configured it. A sweep creates it, and it is
 * immutable once published.
 */
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/printable.hpp"
#include <ib/smp.hpp>

namespace weft::sm
{

/*
 * A directed route, as the output port of each node. It is stored in place, because a large subnet
 * has tens of thousands of routes.
 */
class Path
{
public:
	Path() = default;
	Path(std::initializer_list<std::uint8_t> ports)
	{
		for (const std::uint8_t port : ports)
			push_back(port);
	}

	/* The length is limited to the space in an SMP (IBA 14.2.1.2). */
	void push_back(std::uint8_t port)
	{
		assert(size_ < ports_.size());
		ports_[size_++] = port;
	}
	void clear() { size_ = 0; }
	std::size_t size() const { return size_; }
	bool empty() const { return size_ == 0; }
	const std::uint8_t *begin() const { return ports_.data(); }
	const std::uint8_t *end() const { return ports_.data() + size_; }

private:
	std::uint8_t size_ = 0;
	std::array<std::uint8_t, ib::smp_path_max - 1> ports_;
};

struct PortRef {
	int node = -1;
	std::uint8_t port = 0;

	explicit operator bool() const { return node >= 0; }
	bool operator==(const PortRef &) const = default;
};

struct PortData {
	/* True if PortInfo was read. */
	bool known = false;
	ib::PortInfo info{};
	/* The other end of the link. Empty if no node has responded there. */
	PortRef peer{};
	/* End ports only: CA ports and port 0 of switches. */
	ib::Guid guid = 0;
	ib::Lid lid = 0;
	std::uint8_t lmc = 0;
	std::vector<ib::Pkey> pkeys;
	/* For CA ports: the directed route through this port. */
	Path path;
};

struct Node {
	ib::Guid guid = 0;
	ib::NodeInfo info{};
	ib::NodeDescription description{};
	ib::SwitchInfo switch_info{};
	/* The directed route from the manager, and the port by which it enters the node. */
	Path path;
	std::uint8_t in_port = 0;
	/* Indexed by number, from 0. */
	std::vector<PortData> ports;
	/* Index among the switches; -1 for other nodes. */
	int switch_index = -1;

	bool is_switch() const { return info.type() == ib::NodeType::switch_; }
	/* Returns the description for log lines, escaped because a guest chooses the text. */
	std::string printable_name() const
	{
		const std::string_view text(description.text, sizeof(description.text));
		return printable(text.substr(0, text.find('\0')));
	}
};

/* Output port of each LID. Packets to LIDs beyond the end are dropped. */
using Lft = std::vector<std::uint8_t>;

/* A link from one switch to another. */
struct Edge {
	std::uint8_t port;
	std::uint8_t peer_port;
	int to;
};

/* Indexed by switch. */
using Edges = std::vector<std::vector<Edge>>;

/* A switch's link towards the root of the spanning tree of its part of the subnet. */
struct TreeLink {
	int root = -1;
	/*
	 * Number of hops to the root, and the link of the first hop, which the root does not have.
	 */
	unsigned depth = 0;
	Edge up{0, 0, -1};
};

/* In place of a number of hops: no path leads to that switch. */
inline constexpr std::uint8_t kUnreachable = 0xff;

struct Subnet {
	std::vector<Node> nodes;
	/* Node index of each switch, by switch index. */
	std::vector<int> switches;
	std::unordered_map<ib::Guid, int> by_guid;
	/* End ports. */
	std::vector<PortRef> end_ports;
	std::unordered_map<ib::Guid, PortRef> by_port_guid;
	std::unordered_map<ib::Lid, PortRef> by_lid;
	ib::Lid top_lid = 0;
	/* Indexed by switch. */
	std::vector<Lft> lfts;
	/* Links between switches. route() computes them and the distances. */
	Edges edges;
	/* The tree that contains the trees of all multicast groups, indexed by switch. */
	std::vector<TreeLink> spanning_tree;
	/* Number of hops between switches, as rows of a matrix, or kUnreachable. */
	std::vector<std::uint8_t> distance;

	std::uint8_t hops(int from, int to) const
	{
		return distance[static_cast<std::size_t>(from) * switches.size() +
				static_cast<std::size_t>(to)];
	}
	Node &node(PortRef ref) { return nodes[static_cast<std::size_t>(ref.node)]; }
	const Node &node(PortRef ref) const { return nodes[static_cast<std::size_t>(ref.node)]; }
	PortData &port(PortRef ref) { return node(ref).ports[ref.port]; }
	const PortData &port(PortRef ref) const { return node(ref).ports[ref.port]; }
	PortRef find_port(ib::Guid port_guid) const
	{
		auto found = by_port_guid.find(port_guid);
		return found == by_port_guid.end() ? PortRef{} : found->second;
	}
	PortRef find_lid(ib::Lid lid) const
	{
		auto found = by_lid.find(lid);
		return found == by_lid.end() ? PortRef{} : found->second;
	}
	/* Returns the directed route to the agent of a port. */
	const Path &route(PortRef ref) const
	{
		return node(ref).is_switch() ? node(ref).path : port(ref).path;
	}
	/*
	 * Returns the switch port to which an end port is connected, or the end port itself if it
	 * is a switch's port 0. Returns an empty reference for two CAs without a switch.
	 */
	PortRef attachment(PortRef end_port) const
	{
		if (node(end_port).is_switch())
			return end_port;
		PortRef peer = port(end_port).peer;
		return peer && node(peer).is_switch() ? peer : PortRef{};
	}
};

} // namespace weft::sm
