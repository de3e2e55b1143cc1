// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Measures the load of a thread: the share of the recent time in which it was busy.
#pragma once

#include <chrono>
#include <cmath>

#include "base/environment.hpp"

namespace weft
{

// BusyTime - an average over the past, in which the weight of a moment halves with each kHalfLife
// that has passed since. It needs no samples at fixed times, so that an idle thread need not wake
// up for it.
class BusyTime
{
public:
	static constexpr Clock::duration kHalfLife = std::chrono::seconds(1);

	// The thread was idle before @start.
	explicit BusyTime(Clock::time_point start) : changed_(start) {}

	bool busy() const { return busy_; }
	// The thread is busy, or idle, from @now on.
	void set_busy(bool busy, Clock::time_point now)
	{
		share_ = share(now);
		busy_ = busy;
		changed_ = now;
	}
	// Returns the share until @now, from 0 to 1.
	double share(Clock::time_point now) const
	{
		const std::chrono::duration<double> half_life = kHalfLife, passed = now - changed_;
		const double kept = std::exp2(-passed / half_life);
		return share_ * kept + (busy_ ? 1 - kept : 0);
	}

private:
	bool busy_ = false;
	double share_ = 0; // until changed_
	Clock::time_point changed_;
};

} // namespace weft
