// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "weft/render.hpp"

namespace weft::cli
{

using nlohmann::json;
using std::string;

namespace
{

constexpr int kBoxWidth = 150;
constexpr int kBoxHeight = 44;
constexpr int kGap = 30;
constexpr int kMargin = 20;
constexpr int kRowHeight = 190;

struct Box {
	string name;
	string detail;
	const char *colour;
	int x = 0;
	int y = 0;
};

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
			// XML has no control characters.
			result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
		}
	}
	return result;
}

string node_of(const string &port)
{
	return port.substr(0, port.rfind('/'));
}

// Spreads a row over the width of the drawing.
void place(std::vector<Box> &row, int width, int y)
{
	const int count = static_cast<int>(row.size());
	const int used = count * kBoxWidth + (count - 1) * kGap;
	int x = (width - used) / 2;
	for (Box &box : row) {
		box.x = x;
		box.y = y;
		x += kBoxWidth + kGap;
	}
}

int width_of(const std::vector<Box> &row)
{
	return static_cast<int>(row.size()) * (kBoxWidth + kGap) - kGap + 2 * kMargin;
}

string draw_box(const Box &box)
{
	return fmt::format(
		"<g><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" "
		"stroke=\"#333\"/><text x=\"{}\" y=\"{}\" class=\"name\">{}</text>"
		"<text x=\"{}\" y=\"{}\" class=\"detail\">{}</text></g>\n",
		box.x, box.y, kBoxWidth, kBoxHeight, box.colour, box.x + kBoxWidth / 2, box.y + 19,
		escaped(box.name), box.x + kBoxWidth / 2, box.y + 35, escaped(box.detail));
}

// @lane keeps links between the same two nodes apart.
string draw_link(const json &link, const Box &from, const Box &to, int lane)
{
	const int shift = (lane % 2 ? 1 : -1) * ((lane + 1) / 2) * 14;
	const int x1 = from.x + kBoxWidth / 2 + shift, x2 = to.x + kBoxWidth / 2 + shift;
	const int y1 = from.y + kBoxHeight / 2, y2 = to.y + kBoxHeight / 2;
	const auto &settings = link.at("settings");
	const bool up = link.at("up").get<bool>();
	string path = fmt::format("M{} {}L{} {}", x1, y1, x2, y2);
	int label_x = (x1 + x2) / 2, label_y = (y1 + y2) / 2;
	if (y1 == y2) {
		// Nodes of one row: around those between.
		const int depth = 60 + 14 * lane;
		path = fmt::format("M{} {}Q{} {} {} {}", x1, y1, (x1 + x2) / 2, y1 - depth, x2, y2);
		label_y = y1 - depth / 2;
	}
	return fmt::format("<g><title>{}</title><path d=\"{}\" class=\"{}\"/>"
			   "<text x=\"{}\" y=\"{}\" class=\"detail\">{} {}{}</text></g>\n",
			   escaped(link.at("name").get<string>()), path, up ? "up" : "down",
			   label_x, label_y, escaped(settings.at("width").get<string>()),
			   escaped(settings.at("speed").get<string>()), up ? "" : " down");
}

} // namespace

string fabric_svg(const json &fabric)
{
	std::vector<Box> switches, hosts;
	for (const auto &node : fabric.at("switches"))
		switches.push_back({node.at("name").get<string>(),
				    fmt::format("switch, LID {}", node.at("lid").get<unsigned>()),
				    "#cfe3ff"});
	for (const auto &node : fabric.at("hosts")) {
		const bool machine = node.at("machine").get<bool>();
		hosts.push_back({node.at("name").get<string>(),
				 machine ? "machine on" : "no machine",
				 machine ? "#d3f2d0" : "#eeeeee"});
	}
	if (const auto &manager = fabric.at("subnet_manager"); !manager.is_null())
		hosts.push_back({manager.at("node").get<string>(), "subnet manager", "#ffe9c7"});

	const int width = std::max({width_of(switches), width_of(hosts), 2 * kMargin + kBoxWidth});
	const int top = kMargin + 80;
	place(switches, width, top);
	place(hosts, width, switches.empty() ? top : top + kRowHeight);
	const int height = top + (switches.empty() ? 0 : kRowHeight) + kBoxHeight + kMargin;

	std::map<string, const Box *> boxes;
	for (const auto *row : {&switches, &hosts})
		for (const Box &box : *row)
			boxes[box.name] = &box;

	string out = fmt::format(
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
		"viewBox=\"0 0 {0} {1}\">\n<style>text{{font-family:sans-serif;text-anchor:middle}}"
		".name{{font-size:13px;font-weight:bold}}.detail{{font-size:10px;fill:#555}}"
		"path{{fill:none;stroke-width:2}}.up{{stroke:#2a7}}"
		".down{{stroke:#c33;stroke-dasharray:5 4}}</style>\n"
		"<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
		width, height);
	std::map<std::pair<string, string>, int> lanes;
	for (const auto &link : fabric.at("links")) {
		auto a = node_of(link.at("ends").at(0).get<string>());
		auto b = node_of(link.at("ends").at(1).get<string>());
		if (b < a)
			std::swap(a, b);
		const auto from = boxes.find(a), to = boxes.find(b);
		if (from != boxes.end() && to != boxes.end())
			out += draw_link(link, *from->second, *to->second, lanes[{a, b}]++);
	}
	for (const auto *row : {&switches, &hosts})
		for (const Box &box : *row)
			out += draw_box(box);
	return out + "</svg>\n";
}

} // namespace weft::cli
