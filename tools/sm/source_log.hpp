// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Logs lines that the MADs of a port cause. The lines are limited per port, so that one port can
 * neither fill the log nor suppress lines about other ports.
 */
#pragma once

#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/line_budget.hpp"
#include <ib/types.hpp>

namespace weft::sm
{

class SourceLog
{
public:
	/* Used for lines about nodes whose LID is not known. */
	static constexpr ib::Lid kNoLid = 0;

	template<class... Args>
	void info(ib::Lid source, Clock::time_point now, fmt::format_string<Args...> text,
		  Args &&...args)
	{
		log(spdlog::level::info, source, now, text, std::forward<Args>(args)...);
	}
	template<class... Args>
	void warn(ib::Lid source, Clock::time_point now, fmt::format_string<Args...> text,
		  Args &&...args)
	{
		log(spdlog::level::warn, source, now, text, std::forward<Args>(args)...);
	}

private:
	template<class... Args>
	void log(spdlog::level::level_enum level, ib::Lid source, Clock::time_point now,
		 fmt::format_string<Args...> text, Args &&...args)
	{
		const auto taken = budgets_[source].take(now);
		if (taken.allowed)
			spdlog::log(level, "sm: {}{}",
				    fmt::format(text, std::forward<Args>(args)...),
				    withheld_text(taken.withheld));
	}

	/* At most one entry per LID. */
	std::unordered_map<ib::Lid, LineBudget> budgets_;
};

} // namespace weft::sm
