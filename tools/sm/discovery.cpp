// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/discovery.hpp"

#include <optional>
#include <utility>

namespace weft::sm
{

namespace
{

using ib::MadMethod;

/* A port whose peer is not known yet, and the route through it. */
struct Frontier {
	/* Empty for the manager's own node. */
	PortRef from{};
	Path path;
};

class Discovery
{
public:
	explicit Discovery(MadClient &client) : client_(client) {}

	Subnet run()
	{
		std::vector<Frontier> frontier{Frontier{}};
		explore(std::move(frontier));
		index();
		return std::move(subnet_);
	}

	/*
	 * Discovers what has changed since @before and copies the rest. Returns nothing if changes
	 * cannot be determined.
	 */
	std::optional<Subnet> run_again(const Subnet &before)
	{
		subnet_.nodes = before.nodes;
		subnet_.by_guid = before.by_guid;
		std::vector<Frontier> frontier;
		if (!read_changes(before.switches, frontier))
			return std::nullopt;
		explore(std::move(frontier));
		keep_reachable();
		index();
		return std::move(subnet_);
	}

private:
	void explore(std::vector<Frontier> frontier)
	{
		while (!frontier.empty() && !client_.stopped())
			frontier = next_level(query_nodes(frontier));
	}

	/*
	 * Queries the given switches for changes, and reads the ports of those that report any.
	 * Removes the links of ports that are down or have come up again, and adds the latter ports
	 * to the frontier. Returns false if a switch does not respond, because its path may have
	 * changed, or if the link of the manager's own port has changed.
	 */
	bool read_changes(const std::vector<int> &switches, std::vector<Frontier> &frontier)
	{
		for (int index : switches)
			ask({index, 0}, node(index).path, ib::attr_switch_info, 0);
		if (!answer_all())
			return false;
		std::vector<int> changed;
		for (int index : switches)
			if (node(index).switch_info.port_state_change())
				changed.push_back(index);
		clear_bits(changed);
		for (int index : changed)
			ask_ports(index);
		if (!answer_all())
			return false;
		for (int index : changed)
			for (std::size_t number = 1; number < node(index).ports.size(); number++) {
				const PortData &port = node(index).ports[number];
				if (port.info.state() > ib::PortState::init)
					continue;
				/* All other nodes are reached through this link. */
				if (port.peer.node == 0)
					return false;
				unlink({index, static_cast<std::uint8_t>(number)});
			}
		/* New links are followed only after all old links have been removed. */
		for (int index : changed)
			extend(index, frontier);
		return true;
	}

	void unlink(PortRef ref)
	{
		const PortRef peer = std::exchange(subnet_.port(ref).peer, PortRef{});
		if (!peer)
			return;
		PortData &other = subnet_.port(peer);
		other.peer = {};
		if (subnet_.node(peer).is_switch())
			return;
		/* The node is read again when it is found again. */
		other.path.clear();
		other.known = false;
	}

	/* Removes nodes that cannot be reached, and sets a shortest path for each of the others. */
	void keep_reachable()
	{
		Subnet kept;
		std::vector<int> place(subnet_.nodes.size(), -1);
		std::vector<int> order{0};
		place[0] = 0;
		for (std::size_t done = 0; done < order.size(); done++) {
			const Node &from = node(order[done]);
			/*
			 * A CA does not forward SMPs, so there is nothing behind another node's CA.
			 */
			if (!from.is_switch() && done != 0)
				continue;
			for (std::size_t number = 1; number < from.ports.size(); number++) {
				const PortRef peer = from.ports[number].peer;
				if (!peer)
					continue;
				Path path = from.path;
				path.push_back(static_cast<std::uint8_t>(number));
				Node &to = subnet_.node(peer);
				/* The path to the manager's own port is empty. */
				if (!to.is_switch() && peer.node != 0)
					to.ports[peer.port].path = path;
				if (place[static_cast<std::size_t>(peer.node)] >= 0)
					continue;
				place[static_cast<std::size_t>(peer.node)] =
					static_cast<int>(order.size());
				order.push_back(peer.node);
				to.path = std::move(path);
				to.in_port = peer.port;
			}
		}
		for (int index : order) {
			kept.by_guid[node(index).guid] = static_cast<int>(kept.nodes.size());
			kept.nodes.push_back(std::move(node(index)));
		}
		for (Node &each : kept.nodes) {
			each.switch_index = -1;
			for (PortData &port : each.ports)
				port.peer.node =
					port.peer ? place[static_cast<std::size_t>(port.peer.node)]
						  : -1;
		}
		subnet_ = std::move(kept);
	}

	Node &node(int index) { return subnet_.nodes[static_cast<std::size_t>(index)]; }

	/* Queries the node behind each port. Returns the nodes that were not known before. */
	std::vector<int> query_nodes(const std::vector<Frontier> &frontier)
	{
		std::vector<SmpRequest> batch;
		for (const Frontier &f : frontier)
			batch.emplace_back(f.path, MadMethod::get, ib::attr_node_info);
		client_.perform(batch);

		std::vector<int> fresh;
		for (std::size_t i = 0; i < batch.size(); i++) {
			if (!batch[i].ok())
				continue;
			const auto &info = batch[i].answer<ib::NodeInfo>();
			if (!sane(info)) {
				client_.log().warn(SourceLog::kNoLid, client_.now(),
						   "NodeInfo of GUID {:#018x} makes no sense",
						   info.node_guid.value());
				continue;
			}
			auto [found, is_new] = subnet_.by_guid.try_emplace(
				info.node_guid, static_cast<int>(subnet_.nodes.size()));
			if (is_new) {
				subnet_.nodes.push_back(new_node(info, frontier[i].path));
				fresh.push_back(found->second);
			}
			PortRef reached{found->second, info.local_port};
			if (!join(frontier[i].from, reached, info))
				continue;
			PortData &port = subnet_.port(reached);
			if (!subnet_.node(reached).is_switch() && port.path.empty()) {
				port.path = frontier[i].path;
				if (!is_new)
					late_ports_.push_back(reached);
			}
		}
		return fresh;
	}

	static bool sane(const ib::NodeInfo &info)
	{
		auto type = info.type();
		return info.node_guid != std::uint64_t{0} && info.num_ports != 0 &&
		       info.num_ports != 0xff && info.local_port <= info.num_ports &&
		       (type == ib::NodeType::channel_adapter || type == ib::NodeType::switch_ ||
			type == ib::NodeType::router);
	}

	static Node new_node(const ib::NodeInfo &info, const Path &path)
	{
		Node node;
		node.guid = info.node_guid;
		node.info = info;
		node.path = path;
		node.in_port = info.local_port;
		node.ports.resize(info.num_ports + 1u);
		return node;
	}

	bool join(PortRef from, PortRef to, const ib::NodeInfo &info)
	{
		Node &node = subnet_.node(to);
		if (node.info.type() != info.type() || node.info.num_ports != info.num_ports) {
			client_.log().warn(SourceLog::kNoLid, client_.now(),
					   "two nodes claim GUID {:#018x}", node.guid);
			return false;
		}
		PortData &port = node.ports[to.port];
		if (!node.is_switch())
			port.guid = info.port_guid;
		if (!from)
			return true;
		if (port.peer && port.peer != from) {
			client_.log().warn(SourceLog::kNoLid, client_.now(),
					   "GUID {:#018x} port {} seems linked twice", node.guid,
					   to.port);
			return false;
		}
		port.peer = from;
		subnet_.port(from).peer = to;
		return true;
	}

	/* Reads all attributes of new nodes. Returns the ports to query next. */
	std::vector<Frontier> next_level(const std::vector<int> &fresh)
	{
		clear_state_changes(fresh);
		for (int index : fresh) {
			const Node &node = subnet_.nodes[static_cast<std::size_t>(index)];
			ask({index, 0}, node.path, ib::attr_node_description, 0);
			if (node.is_switch())
				ask_ports(index);
			else
				ask({index, node.in_port}, node.path, ib::attr_port_info,
				    node.in_port);
		}
		/* More ports of a CA that is already known. */
		for (PortRef late : std::exchange(late_ports_, {}))
			ask(late, subnet_.port(late).path, ib::attr_port_info, late.port);
		answer_all();

		std::vector<Frontier> frontier;
		for (int index : fresh)
			extend(index, frontier);
		return frontier;
	}

	/*
	 * Reads SwitchInfo and clears its PortStateChange before the ports are read, so that a
	 * later change sets it again and is found by the next sweep.
	 */
	void clear_state_changes(const std::vector<int> &fresh)
	{
		for (int index : fresh) {
			const Node &node = subnet_.nodes[static_cast<std::size_t>(index)];
			if (node.is_switch())
				ask({index, 0}, node.path, ib::attr_switch_info, 0);
		}
		answer_all();
		clear_bits(fresh);
	}

	void clear_bits(const std::vector<int> &nodes)
	{
		std::vector<SmpRequest> batch;
		for (int index : nodes) {
			const Node &node = subnet_.nodes[static_cast<std::size_t>(index)];
			if (node.is_switch() && node.switch_info.port_state_change())
				batch.push_back(
					SmpRequest(node.path, MadMethod::set, ib::attr_switch_info)
						.with(node.switch_info));
		}
		client_.perform(batch);
	}

	void ask_ports(int index)
	{
		for (unsigned port = 0; port < node(index).ports.size(); port++)
			ask({index, static_cast<std::uint8_t>(port)}, node(index).path,
			    ib::attr_port_info, port);
	}

	void ask(PortRef ref, const Path &path, std::uint16_t attribute, std::uint32_t modifier)
	{
		questions_.emplace_back(path, MadMethod::get, attribute, modifier);
		asked_.push_back(ref);
	}

	/* Returns true if all requests were answered. */
	bool answer_all()
	{
		client_.perform(questions_);
		bool all = true;
		for (std::size_t i = 0; i < questions_.size(); i++) {
			all = all && questions_[i].ok();
			if (questions_[i].ok())
				store(asked_[i], questions_[i]);
		}
		questions_.clear();
		asked_.clear();
		return all;
	}

	void store(PortRef ref, const SmpRequest &request)
	{
		Node &node = subnet_.node(ref);
		switch (request.attribute) {
		case ib::attr_node_description:
			node.description = request.answer<ib::NodeDescription>();
			break;
		case ib::attr_switch_info:
			node.switch_info = request.answer<ib::SwitchInfo>();
			break;
		case ib::attr_port_info:
			node.ports[ref.port].info = request.answer<ib::PortInfo>();
			node.ports[ref.port].known = true;
			if (node.is_switch() && ref.port == 0)
				node.ports[0].guid = node.info.port_guid;
			break;
		default:
			break;
		}
	}

	void extend(int index, std::vector<Frontier> &frontier)
	{
		const Node &node = subnet_.nodes[static_cast<std::size_t>(index)];
		/* A path has space for 63 hops (IBA 14.2.1.2). */
		if (node.path.size() + 1 >= ib::smp_path_max)
			return;
		unsigned first = 1;
		unsigned last = node.info.num_ports;
		if (!node.is_switch()) {
			/*
			 * There is nothing behind another node's CA. The manager's own CA has only
			 * one link.
			 */
			if (!node.path.empty())
				return;
			first = last = node.in_port;
		}
		for (unsigned number = first; number <= last; number++) {
			const PortData &port = node.ports[number];
			if (!port.known || port.peer || port.info.state() < ib::PortState::init ||
			    (node.is_switch() && number == node.in_port))
				continue;
			Path path = node.path;
			path.push_back(static_cast<std::uint8_t>(number));
			frontier.push_back(
				{{index, static_cast<std::uint8_t>(number)}, std::move(path)});
		}
	}

	void index()
	{
		for (std::size_t i = 0; i < subnet_.nodes.size(); i++) {
			Node &node = subnet_.nodes[i];
			if (node.is_switch()) {
				node.switch_index = static_cast<int>(subnet_.switches.size());
				subnet_.switches.push_back(static_cast<int>(i));
			}
			for (std::size_t number = 0; number < node.ports.size(); number++) {
				PortData &port = node.ports[number];
				PortRef ref{static_cast<int>(i), static_cast<std::uint8_t>(number)};
				if (!port.known || port.guid == 0)
					continue;
				if (!subnet_.by_port_guid.try_emplace(port.guid, ref).second) {
					client_.log().warn(SourceLog::kNoLid, client_.now(),
							   "two ports claim GUID {:#018x}",
							   port.guid);
					continue;
				}
				subnet_.end_ports.push_back(ref);
			}
		}
	}

	MadClient &client_;
	Subnet subnet_;
	std::vector<PortRef> late_ports_;
	std::vector<SmpRequest> questions_;
	std::vector<PortRef> asked_;
};

} // namespace

Subnet discover(MadClient &client)
{
	return Discovery(client).run();
}

std::optional<Subnet> discover_changes(MadClient &client, const Subnet &before)
{
	return Discovery(client).run_again(before);
}

} // namespace weft::sm
