// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/layout.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

namespace weft::cli
{

namespace
{

constexpr int kMargin = 20;
// Maximum number of hosts with large boxes, in total and below one switch.
constexpr int kMostLarge = 12, kMostLargeBelow = 8;
// Maximum number of switches with hosts in one row, if there are other switches above them.
constexpr int kMostInRow = 24;
// Ratio of width to height of a drawing, as of a screen.
constexpr double kAspect = 1.6;
constexpr int kAbove = 80; // height of the curved links within the first row

struct Sizes {
	int box_width, box_height, gutter, row_gap, tier_gap, block_gap;
};

Sizes sizes_of(bool compact, std::size_t longest_name)
{
	if (!compact)
		return {150, 44, 30, 30, 146, 30};
	const int width = std::clamp(static_cast<int>(longest_name) * 7 + 10, 56, 150);
	return {width, 20, 14, 6, 150, 10};
}

// A switch and its hosts, or the nodes that are linked to no switch.
struct Block {
	std::optional<std::size_t> head;
	std::vector<std::size_t> below;
};

// Arrangement of the blocks in rows of `across`, and of the hosts of a block in `columns` columns.
struct Grid {
	int columns = 1, across = 1;
};

class Arrangement
{
public:
	Arrangement(const std::vector<Node> &nodes,
		    const std::vector<std::pair<std::string, std::string>> &links)
	    : nodes_(nodes), neighbours_(nodes.size()), tier_(nodes.size(), -1)
	{
		for (std::size_t i = 0; i < nodes.size(); ++i)
			number_.emplace(nodes[i].name, i);
		for (const auto &[a, b] : links) {
			const auto one = number_.find(a), other = number_.find(b);
			if (one == number_.end() || other == number_.end())
				continue;
			neighbours_[one->second].push_back(other->second);
			neighbours_[other->second].push_back(one->second);
		}
		find_tiers();
		make_blocks();
	}

	Layout place();

private:
	bool is(std::size_t node, NodeKind kind) const { return nodes_[node].kind == kind; }

	// Returns the first switch to which a node is linked.
	std::optional<std::size_t> home_of(std::size_t node) const
	{
		for (const auto other : neighbours_[node])
			if (is(other, NodeKind::switch_node))
				return other;
		return std::nullopt;
	}

	// Sets each switch's tier, which is its distance from the nearest switch with hosts, or 0
	// if none can be reached.
	void find_tiers()
	{
		std::deque<std::size_t> waiting;
		for (std::size_t i = 0; i < nodes_.size(); ++i) {
			const auto home = is(i, NodeKind::host) ? home_of(i) : std::nullopt;
			if (home && tier_[*home] < 0) {
				tier_[*home] = 0;
				waiting.push_back(*home);
			}
		}
		for (; !waiting.empty(); waiting.pop_front())
			for (const auto other : neighbours_[waiting.front()])
				if (is(other, NodeKind::switch_node) && tier_[other] < 0) {
					tier_[other] = tier_[waiting.front()] + 1;
					waiting.push_back(other);
				}
		for (std::size_t i = 0; i < nodes_.size(); ++i)
			if (is(i, NodeKind::switch_node))
				tier_[i] = std::max(tier_[i], 0);
	}

	void make_blocks()
	{
		std::map<std::size_t, std::size_t> block_of;
		for (std::size_t i = 0; i < nodes_.size(); ++i)
			if (tier_[i] == 0) {
				block_of[i] = blocks_.size();
				blocks_.push_back({i, {}});
			} else if (tier_[i] > 0) {
				if (upper_.size() < static_cast<std::size_t>(tier_[i]))
					upper_.resize(static_cast<std::size_t>(tier_[i]));
				upper_[static_cast<std::size_t>(tier_[i]) - 1].push_back(i);
			}
		Block homeless;
		for (std::size_t i = 0; i < nodes_.size(); ++i) {
			if (is(i, NodeKind::switch_node))
				continue;
			const auto home = home_of(i);
			if (!home)
				homeless.below.push_back(i);
			else if (tier_[*home] == 0)
				blocks_[block_of[*home]].below.push_back(i);
			else // next to its switch
				upper_[static_cast<std::size_t>(tier_[*home]) - 1].push_back(i);
		}
		if (!homeless.below.empty())
			blocks_.push_back(homeless);
	}

	int most_below() const
	{
		std::size_t most = 1;
		for (const Block &block : blocks_)
			most = std::max(most, block.below.size());
		return static_cast<int>(most);
	}

	int block_width(int columns) const
	{
		return columns * (sizes_.box_width + sizes_.gutter) + sizes_.block_gap;
	}
	// Returns the height of a block, without the space below the blocks.
	int block_height(int columns) const
	{
		const int rows = (most_below() + columns - 1) / columns;
		const int head =
			compact_ ? sizes_.box_height + 30 : sizes_.box_height + sizes_.tier_gap;
		return head + rows * (sizes_.box_height + sizes_.row_gap);
	}
	int upper_height() const
	{
		return static_cast<int>(upper_.size()) * (sizes_.box_height + sizes_.tier_gap);
	}
	int width_of(const Grid &grid) const
	{
		int width = grid.across * block_width(grid.columns);
		for (const auto &row : upper_)
			width = std::max(width, static_cast<int>(row.size()) *
							(sizes_.box_width + sizes_.gutter));
		return width;
	}
	int row_pitch(const Grid &grid) const
	{
		return block_height(grid.columns) + (compact_ ? 50 : 80);
	}
	int rows_of(const Grid &grid) const
	{
		return (static_cast<int>(blocks_.size()) + grid.across - 1) / grid.across;
	}
	int height_of(const Grid &grid) const
	{
		return upper_height() + rows_of(grid) * row_pitch(grid);
	}

	Grid best_grid() const
	{
		const int blocks = std::max(1, static_cast<int>(blocks_.size()));
		if (!compact_)
			return {most_below(), blocks};
		const bool one_row = !upper_.empty() && blocks <= kMostInRow;
		Grid best;
		double least = INFINITY;
		for (int columns = 1; columns <= most_below(); ++columns)
			for (int across = one_row ? blocks : 1; across <= blocks; ++across) {
				const Grid grid{columns, across};
				const double off = std::abs(std::log(double(width_of(grid)) /
								     height_of(grid) / kAspect));
				if (off < least) {
					least = off;
					best = grid;
				}
			}
		return best;
	}

	void put(Layout &layout, std::size_t node, int x, int y, int block = -1,
		 int column = 0) const
	{
		layout.by_name.emplace(nodes_[node].name, layout.boxes.size());
		layout.boxes.push_back({nodes_[node], x, y, block, column});
	}

	const std::vector<Node> &nodes_;
	std::map<std::string, std::size_t> number_;
	std::vector<std::vector<std::size_t>> neighbours_;
	std::vector<int> tier_; // tier of each switch
	// switches of the upper tiers, lowest tier first
	std::vector<std::vector<std::size_t>> upper_;
	std::vector<Block> blocks_;
	bool compact_ = false;
	Sizes sizes_{};
};

Layout Arrangement::place()
{
	std::size_t longest = 0, others = 0;
	for (const Node &node : nodes_) {
		longest = std::max(longest, node.name.size());
		others += node.kind != NodeKind::switch_node;
	}
	compact_ = others > kMostLarge || most_below() > kMostLargeBelow;
	sizes_ = sizes_of(compact_, longest);

	const Grid grid = best_grid();
	Layout layout;
	layout.compact = compact_;
	layout.box_width = sizes_.box_width;
	layout.box_height = sizes_.box_height;
	layout.gutter = sizes_.gutter;
	const int inner = std::max(width_of(grid), sizes_.box_width);
	layout.width = inner + 2 * kMargin;
	int y = kMargin + kAbove;
	for (auto row = upper_.rbegin(); row != upper_.rend(); ++row) {
		const int pitch = inner / static_cast<int>(row->size());
		for (std::size_t i = 0; i < row->size(); ++i)
			put(layout, (*row)[i],
			    kMargin + static_cast<int>(i) * pitch + (pitch - sizes_.box_width) / 2,
			    y);
		y += sizes_.box_height + sizes_.tier_gap;
	}
	const int width = block_width(grid.columns);
	const int left = kMargin + (inner - grid.across * width) / 2;
	const int head = block_height(grid.columns) - (most_below() + grid.columns - 1) /
							      grid.columns *
							      (sizes_.box_height + sizes_.row_gap);
	for (std::size_t number = 0; number < blocks_.size(); ++number) {
		const int across = static_cast<int>(number) % grid.across;
		const int x = left + across * width;
		const int top = y + static_cast<int>(number) / grid.across * row_pitch(grid);
		const Block &block = blocks_[number];
		if (block.head)
			put(layout, *block.head, x + (width - sizes_.box_width) / 2, top,
			    static_cast<int>(number));
		// If lines are straight, centre a last or only row that is not full.
		const int used = std::min(grid.columns, static_cast<int>(block.below.size()));
		const int indent =
			compact_ ? 0
				 : (grid.columns - used) * (sizes_.box_width + sizes_.gutter) / 2;
		for (std::size_t i = 0; i < block.below.size(); ++i) {
			const int column = static_cast<int>(i) % grid.columns;
			const int row = static_cast<int>(i) / grid.columns;
			put(layout, block.below[i],
			    x + indent + sizes_.gutter +
				    column * (sizes_.box_width + sizes_.gutter),
			    top + head + row * (sizes_.box_height + sizes_.row_gap),
			    static_cast<int>(number), column);
		}
	}
	layout.height = kMargin;
	for (const Box &box : layout.boxes)
		layout.height = std::max(layout.height, box.y + sizes_.box_height + kMargin);
	return layout;
}

} // namespace

Layout lay_out(const std::vector<Node> &nodes,
	       const std::vector<std::pair<std::string, std::string>> &links)
{
	return Arrangement(nodes, links).place();
}

} // namespace weft::cli
