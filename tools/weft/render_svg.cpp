// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats a fabric as an SVG drawing.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/layout.hpp"
#include "weft/render.hpp"

namespace weft::cli
{

using nlohmann::json;
using std::string;

namespace
{

// If there are more links than this, rates are not shown on them.
constexpr std::size_t kMostLabels = 40;

string escaped(const string &text)
{
	string result;
	for (char c : text) {
		switch (c) {
		case '<':
			result += "&lt;";
			break;
		case '>':
			result += "&gt;";
			break;
		case '&':
			result += "&amp;";
			break;
		case '"':
			result += "&quot;";
			break;
		default:
			// XML does not permit control characters.
			result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
		}
	}
	return result;
}

string node_of(const string &port)
{
	return port.substr(0, port.rfind('/'));
}

const char *class_of(NodeKind kind)
{
	switch (kind) {
	case NodeKind::switch_node:
		return "switch";
	case NodeKind::host:
		return "host";
	case NodeKind::manager:
		return "manager";
	}
	return "";
}

// Shortens a name to fit into a small box.
string shortened(const string &name, std::size_t longest)
{
	if (name.size() <= longest)
		return name;
	std::size_t first = name.size() - longest + 1;
	while (first < name.size() && (static_cast<unsigned char>(name[first]) & 0xc0) == 0x80)
		++first; // do not split a UTF-8 character
	return "…" + name.substr(first);
}

string draw_box(const Layout &layout, const Box &box, bool on)
{
	const int middle = box.x + layout.box_width / 2;
	string out = fmt::format("<g class=\"node {}{}\" data-name=\"{}\"><title>{}, {}</title>"
				 "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
				 class_of(box.node.kind), on ? " on" : "", escaped(box.node.name),
				 escaped(box.node.name), escaped(box.node.detail), box.x, box.y,
				 layout.box_width, layout.box_height, layout.compact ? 3 : 6);
	if (layout.compact)
		return out + fmt::format("<text x=\"{}\" y=\"{}\" class=\"small\">{}</text></g>\n",
					 middle, box.y + 14,
					 escaped(shortened(
						 box.node.name,
						 static_cast<std::size_t>(layout.box_width / 7))));
	return out + fmt::format("<text x=\"{}\" y=\"{}\" class=\"name\">{}</text>"
				 "<text x=\"{}\" y=\"{}\" class=\"detail\">{}</text></g>\n",
				 middle, box.y + 19, escaped(box.node.name), middle, box.y + 35,
				 escaped(box.node.detail));
}

struct Line {
	string path;
	int label_x, label_y;
};

// Returns the line for a link. @lane separates links between the same two nodes.
Line line_between(const Layout &layout, const Box &from, const Box &to, int lane)
{
	const int step = layout.compact ? 4 : 14;
	const int shift = (lane % 2 ? 1 : -1) * ((lane + 1) / 2) * step;
	const int half = layout.box_width / 2, middle = layout.box_height / 2;
	const int x1 = from.x + half + shift, x2 = to.x + half + shift;
	const int y1 = from.y + middle, y2 = to.y + middle;
	const bool one_block = from.block >= 0 && from.block == to.block;
	if (layout.compact && one_block &&
	    (from.node.kind == NodeKind::switch_node) != (to.node.kind == NodeKind::switch_node)) {
		// The line from a switch to a host below it runs between the columns, and not
		// through other hosts.
		const Box &head = from.node.kind == NodeKind::switch_node ? from : to;
		const Box &host = &head == &from ? to : from;
		const int trunk = host.x - layout.gutter / 2;
		const int bus = head.y + layout.box_height + 10;
		return {fmt::format("M{} {}V{}H{}V{}H{}", head.x + half, head.y + middle, bus,
				    trunk, host.y + middle + shift, host.x),
			trunk, host.y};
	}
	if (y1 == y2) {
		// Nodes of one row: the line runs around the nodes between them.
		const int depth = layout.compact
					  ? std::min(70, 24 + std::abs(x2 - x1) / 12) + 4 * lane
					  : 60 + 14 * lane;
		return {fmt::format("M{} {}Q{} {} {} {}", x1, y1, (x1 + x2) / 2, y1 - depth, x2,
				    y2),
			(x1 + x2) / 2, y1 - depth / 2};
	}
	if (layout.compact && from.block >= 0 && to.block >= 0 && from.x == to.x) {
		// Blocks of one column: the line runs around the blocks between them.
		const int side = std::max(0, std::min(from.x, to.x) - layout.gutter - 4 * lane);
		return {fmt::format("M{} {}Q{} {} {} {}", x1, y1, side, (y1 + y2) / 2, x2, y2),
			side, (y1 + y2) / 2};
	}
	return {fmt::format("M{} {}L{} {}", x1, y1, x2, y2), (x1 + x2) / 2, (y1 + y2) / 2};
}

string draw_link(const json &link, const Line &line, bool labelled)
{
	const auto &settings = link.at("settings");
	const bool up = link.at("up").get<bool>();
	const auto name = escaped(link.at("name").get<string>());
	const auto faults = escaped(link_faults(settings));
	string out = fmt::format(
		"<g class=\"link\" data-name=\"{}\"><title>{}{}</title><path d=\"{}\" class=\"{}\"/>",
		name, name, faults, line.path,
		!up              ? "down"
		: faults.empty() ? "up"
				 : "faulty");
	if (labelled || !faults.empty())
		out += fmt::format(
			"<text x=\"{}\" y=\"{}\" class=\"detail\">{} {}{}{}</text>", line.label_x,
			line.label_y, escaped(settings.at("width").get<string>()),
			escaped(settings.at("speed").get<string>()), up ? "" : " down", faults);
	return out + "</g>\n";
}

constexpr const char *kStyle =
	"text{font-family:sans-serif;text-anchor:middle}.name{font-size:13px;font-weight:bold}"
	".small{font-size:11px}.detail{font-size:10px;fill:#555}"
	".link text{paint-order:stroke;stroke:white;stroke-width:5px}"
	"rect{stroke:#333}.background{fill:white;stroke:none}"
	".switch rect{fill:#cfe3ff}.host rect{fill:#eee}.host.on rect{fill:#d3f2d0}.manager rect{fill:#ffe9c7}"
	"path{fill:none}.up{stroke:#2a7}.down{stroke:#c33;stroke-dasharray:5 4}"
	".faulty{stroke:#b85c00;stroke-dasharray:3 3}";

} // namespace

string fabric_svg(const json &fabric)
{
	std::vector<Node> nodes;
	std::set<string> on;
	for (const auto &node : fabric.at("switches"))
		nodes.push_back({node.at("name").get<string>(), NodeKind::switch_node,
				 fmt::format("switch, LID {}", node.at("lid").get<unsigned>())});
	for (const auto &node : fabric.at("hosts")) {
		const bool guest = node.at("guest").get<bool>();
		nodes.push_back({node.at("name").get<string>(), NodeKind::host,
				 guest ? "guest on" : "no guest"});
		if (guest)
			on.insert(nodes.back().name);
	}
	// The other ends of trunks. Several trunks may lead to the same node.
	std::map<string, bool> remote;
	if (const auto trunks = fabric.find("trunks"); trunks != fabric.end())
		for (const auto &trunk : *trunks) {
			const auto node =
				node_of(trunk.value("end", trunk.at("name").get<string>() + "/1"));
			const auto known = remote.emplace(node, true).first;
			known->second = known->second && trunk.at("connected").get<bool>();
		}
	for (const auto &[name, connected] : remote)
		nodes.push_back({name, NodeKind::host,
				 connected ? "trunk, connected" : "trunk, not connected"});
	const auto managers = fabric.find("subnet_managers");
	if (managers != fabric.end())
		for (const auto &manager : *managers)
			nodes.push_back({manager.at("node").get<string>(), NodeKind::manager,
					 manager.at("state") == "standby" ? "standby manager"
									  : "subnet manager"});
	else if (const auto &manager = fabric.at("subnet_manager"); !manager.is_null())
		nodes.push_back(
			{manager.at("node").get<string>(), NodeKind::manager, "subnet manager"});

	const auto &links = fabric.at("links");
	std::vector<std::pair<string, string>> pairs;
	for (const auto &link : links) {
		auto a = node_of(link.at("ends").at(0).get<string>());
		auto b = node_of(link.at("ends").at(1).get<string>());
		if (b < a)
			std::swap(a, b);
		pairs.emplace_back(std::move(a), std::move(b));
	}

	const Layout layout = lay_out(nodes, pairs);
	string out = fmt::format(
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
		"viewBox=\"0 0 {0} {1}\">\n<style>{2}path{{stroke-width:{3}}}</style>\n"
		"<rect class=\"background\" width=\"{0}\" height=\"{1}\"/>\n",
		layout.width, layout.height, kStyle, layout.compact ? 1 : 2);
	std::map<std::pair<string, string>, int> lanes;
	for (std::size_t i = 0; i < pairs.size(); ++i) {
		const Box *from = layout.find(pairs[i].first), *to = layout.find(pairs[i].second);
		if (from && to)
			out += draw_link(links[i],
					 line_between(layout, *from, *to, lanes[pairs[i]]++),
					 links.size() <= kMostLabels);
	}
	for (const Box &box : layout.boxes)
		out += draw_box(layout, box, on.contains(box.node.name));
	return out + "</svg>\n";
}

} // namespace weft::cli
