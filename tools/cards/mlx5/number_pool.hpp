// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the numbers of one type of object. A freed number is reused only after all others, so
// that a stale request seldom refers to a new object.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace weft::mlx5
{

class NumberPool
{
public:
	// Manages the numbers from @first to @end - 1.
	NumberPool(std::uint32_t first, std::uint32_t end) : first_(first), end_(end), next_(first)
	{
	}

	// Returns nothing if all are in use.
	std::optional<std::uint32_t> take()
	{
		if (next_ < end_)
			return next_++;
		if (free_.empty())
			return std::nullopt;
		const std::uint32_t number = free_.front();
		free_.pop_front();
		return number;
	}
	// @number: a number from take() that was not returned yet.
	void give(std::uint32_t number) { free_.push_back(number); }
	void reset()
	{
		next_ = first_;
		free_.clear();
	}

private:
	const std::uint32_t first_;
	const std::uint32_t end_;
	std::uint32_t next_; // the lowest number that was never used
	std::deque<std::uint32_t> free_;
};

} // namespace weft::mlx5
