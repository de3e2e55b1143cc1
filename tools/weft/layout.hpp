// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the positions of the nodes in a drawing of a fabric. Switches with hosts are in a row
// (or several, if there are no other switches), with their hosts below them. Other switches are
// above, by their distance from a host.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft::cli
{

enum class NodeKind { switch_node, host, manager };

struct Node {
	std::string name;
	NodeKind kind;
	std::string detail; // a second line, if boxes are large
};

struct Box {
	Node node;
	int x = 0, y = 0;
	int block = -1; // index of the block of hosts below one switch; -1 for other nodes
	int column = 0; // column in the block
};

struct Layout {
	int width = 0, height = 0;
	int box_width = 0, box_height = 0;
	int gutter = 0;       // space before each column of a block, for lines
	bool compact = false; // show only names, because there are many hosts
	std::vector<Box> boxes;
	std::map<std::string, std::size_t> by_name;

	const Box *find(const std::string &name) const
	{
		const auto found = by_name.find(name);
		return found == by_name.end() ? nullptr : &boxes[found->second];
	}
};

// Computes the positions. @links are pairs of names; links of unknown nodes are ignored.
Layout lay_out(const std::vector<Node> &nodes,
	       const std::vector<std::pair<std::string, std::string>> &links);

} // namespace weft::cli
