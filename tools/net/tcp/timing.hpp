// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the retransmission timeout from measured round trips (RFC 6298).
#pragma once

#include <algorithm>
#include <chrono>

#include "base/loop.hpp"

namespace weft::tcp
{

class RoundTrip
{
public:
	using Duration = Clock::duration;
	// The RFC requires a minimum of one second, because clocks were coarse. Current
	// implementations use this value.
	static constexpr Duration kLeast = std::chrono::milliseconds(200);
	static constexpr Duration kMost = std::chrono::seconds(60);
	// Initial timeout after a SYN was retransmitted (section 5.7).
	static constexpr Duration kAfterOpening = std::chrono::seconds(3);

	// Handles the round-trip time of a segment that was sent once.
	void sample(Duration sample)
	{
		if (smoothed_ == Duration::zero()) {
			smoothed_ = sample;
			variation_ = sample / 2;
		} else {
			const Duration off =
				smoothed_ > sample ? smoothed_ - sample : sample - smoothed_;
			variation_ = (3 * variation_ + off) / 4;
			smoothed_ = (7 * smoothed_ + sample) / 8;
		}
		timeout_ = measured();
	}
	// Doubles the timeout because no acknowledgement has arrived in time.
	void back_off() { timeout_ = std::min(2 * timeout_, kMost); }
	// Undoes back_off(), because the peer has answered and only had no space.
	void forget_back_off() { timeout_ = measured(); }
	void opened_late() { timeout_ = kAfterOpening; }
	Duration timeout() const { return timeout_; }

private:
	Duration measured() const
	{
		if (smoothed_ == Duration::zero())
			return kUnmeasured;
		return std::clamp(smoothed_ + 4 * variation_, kLeast, kMost);
	}

	static constexpr Duration kUnmeasured = std::chrono::seconds(1);

	Duration smoothed_{}, variation_{};
	Duration timeout_ = kUnmeasured;
};

} // namespace weft::tcp
