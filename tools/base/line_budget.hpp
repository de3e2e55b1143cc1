// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Limits how many log lines a source (a guest, a port, a link) can cause. A source may write a
// burst of a few lines, and then one line per interval. The next line that is logged gives the
// number of suppressed lines.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/environment.hpp"

namespace weft
{

// Not synchronised: the owner's lock or loop protects it.
class LineBudget
{
public:
	static constexpr unsigned kBurst = 8;
	static constexpr std::chrono::seconds kInterval{10};

	struct Taken {
		bool allowed;
		// Lines that were not allowed since the last one that was.
		std::size_t withheld;
	};
	// Decides if one more line may be logged.
	Taken take(Clock::time_point now)
	{
		const auto periods = (now - counted_to_) / kInterval;
		if (periods > 0) {
			left_ = static_cast<unsigned>(
				std::min<std::int64_t>(kBurst, std::int64_t{left_} + periods));
			counted_to_ += periods * kInterval;
		}
		if (left_ == 0) {
			withheld_++;
			return {false, 0};
		}
		left_--;
		return {true, std::exchange(withheld_, 0)};
	}

private:
	unsigned left_ = kBurst;
	Clock::time_point counted_to_{};
	std::size_t withheld_ = 0;
};

// Text to append to a line logged after others were withheld; empty if none were.
inline std::string withheld_text(std::size_t withheld)
{
	return withheld == 0 ? std::string()
			     : " (" + std::to_string(withheld) + " lines about it left out)";
}

} // namespace weft
