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
	// Numbers from @first up to, and without, @end.
	NumberPool(std::uint32_t first, std::uint32_t end) : first_(first), end_(end), next_(first)
	{
	}

	// Nothing if all are in use.
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
	// @number: out of take(), not given back since.
	void give(std::uint32_t number) { free_.push_back(number); }
	void reset()
	{
		next_ = first_;
		free_.clear();
	}

private:
	const std::uint32_t first_;
	const std::uint32_t end_;
	std::uint32_t next_; // the lowest that was never given out
	std::deque<std::uint32_t> free_;
};

} // namespace weft::mlx5
