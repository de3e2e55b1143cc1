// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the congestion window (RFC 5681), and the retransmissions after several segments of a
// window were lost (RFC 6582, NewReno).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weft::tcp
{

class Congestion
{
public:
	static constexpr unsigned kDuplicates = 3;

	// @mss: maximum segment size in bytes. The initial window is that of RFC 6928.
	explicit Congestion(std::uint32_t mss)
	    : mss_(mss), window_(std::min(10 * mss, std::max(2 * mss, 14600u)))
	{
	}

	std::uint32_t window() const { return window_; }
	bool recovering() const { return recovering_; }

	// Handles the acknowledgement of @acked more bytes. Must not be called during recovery.
	void acknowledged(std::uint32_t acked)
	{
		duplicates_ = 0;
		// The window grows by the acknowledged bytes, at most two segments (section 3.1),
		// or by one segment per window.
		const std::uint32_t more =
			window_ < threshold_
				? std::min(acked, 2 * mss_)
				: std::max<std::uint32_t>(1, std::uint64_t{mss_} * mss_ / window_);
		grow(more);
	}
	// Handles a duplicate acknowledgement. Returns true if the segment that it requests was
	// lost and must be retransmitted now. @in_flight is in bytes.
	bool duplicate(std::uint32_t in_flight)
	{
		if (recovering_) {
			grow(mss_);
			return false;
		}
		if (++duplicates_ < kDuplicates)
			return false;
		threshold_ = std::max(in_flight / 2, 2 * mss_);
		window_ = threshold_ + kDuplicates * mss_;
		recovering_ = true;
		return true;
	}
	// Handles an acknowledgement of a part of the data that was in flight when a loss was
	// detected. The segment after that part was lost, too.
	void partial(std::uint32_t acked)
	{
		window_ = std::max(window_ > acked ? window_ - acked : 0, mss_) + mss_;
	}
	void recovered(std::uint32_t in_flight)
	{
		window_ = std::min(threshold_, std::max(in_flight, mss_) + mss_);
		recovering_ = false;
		duplicates_ = 0;
	}
	// Called if no acknowledgement has arrived in time. @again is true for a segment that has
	// timed out before, which gives no new information about the path (RFC 5681 section 3.1).
	void timed_out(std::uint32_t in_flight, bool again)
	{
		if (!again)
			threshold_ = std::max(in_flight / 2, 2 * mss_);
		window_ = mss_;
		recovering_ = false;
		duplicates_ = 0;
	}

private:
	void grow(std::uint32_t more) { window_ = std::min(window_ + more, kMostWindow); }

	// Upper limit of the window. Peers offer smaller windows, because windows are not scaled.
	static constexpr std::uint32_t kMostWindow = 1 << 20;

	std::uint32_t mss_;
	std::uint32_t window_;
	std::uint32_t threshold_ = std::numeric_limits<std::uint32_t>::max();
	unsigned duplicates_ = 0;
	bool recovering_ = false;
};

} // namespace weft::tcp
