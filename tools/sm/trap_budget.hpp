// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Limits the rate at which traps of one sender are handled. Each trap causes a log line, reports,
 * and often a sweep, so one node could otherwise keep the manager busy. A trap beyond the limit is
 * not repressed, so nothing is lost: a compliant sender repeats it (IBA 13.4.9).
 */
#pragma once

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "base/environment.hpp"
#include <ib/types.hpp>

namespace weft::sm
{

class TrapBudget
{
public:
	using TimePoint = Clock::time_point;
	/* Size of a burst. In addition, one trap is handled in each interval. */
	static constexpr unsigned kBurst = 8;
	static constexpr std::chrono::seconds kInterval{1};

	enum class Verdict {
		handle,
		/* the last one that is handled for now */
		handle_last,
		ignore,
	};
	/* Counts a trap of a port. There is at most one counter per LID. */
	Verdict take(ib::Lid sender, TimePoint now)
	{
		Account &account =
			accounts_.try_emplace(sender, Account{kBurst, now}).first->second;
		const auto periods = (now - account.counted_to) / kInterval;
		account.left = static_cast<unsigned>(
			std::min<std::int64_t>(kBurst, account.left + periods));
		account.counted_to += periods * kInterval;
		if (account.left == 0)
			return Verdict::ignore;
		return --account.left == 0 ? Verdict::handle_last : Verdict::handle;
	}

private:
	struct Account {
		unsigned left;
		TimePoint counted_to;
	};
	std::unordered_map<ib::Lid, Account> accounts_;
};

} // namespace weft::sm
