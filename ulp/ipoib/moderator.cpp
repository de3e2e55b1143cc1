// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements Moderator, which chooses the delay of a CQ's events in adaptive moderation.
#include "moderation.hpp"

namespace ipoib
{
namespace
{

/* Returns true if value is smaller by more than a tenth; smaller differences are noise. */
bool much_less(u64 value, u64 than)
{
	return value * 10 < than * 9;
}

} // namespace

/*
 * Ends an attempt that had no effect or whose conditions do not hold any more, and returns to
 * `level`.
 */
u32 Moderator::fall_back(u32 level)
{
	trying_ = false;
	rested_ = 0;
	rest_ = rest_ * 2 < rest_limit ? rest_ * 2 : rest_limit;
	level_ = level;
	return level_;
}

u32 Moderator::interval(u64 ns, u64 events, u64 completions, u64 bytes)
{
	if (ns >= sparse_ns || !completions) {
		*this = {};
		return level_;
	}
	const u64 us = ns / 1000 ? ns / 1000 : 1;
	const u64 byte_rate = bytes * 1000 / us, completion_rate = completions * 1000 / us;
	const u64 event_share = events * 1024 / completions;

	/* With fewer than two completions per event, a delay saves no events. */
	if (level_ && completions < 2 * events)
		return fall_back(0);
	if (trying_) {
		if (much_less(byte_rate, former_bytes_) ||
		    much_less(completion_rate, former_completions_) ||
		    !much_less(event_share, former_events_))
			return fall_back(level_ - 1);
		trying_ = false;
		rest_ = 1;
		rested_ = 0;
	}
	if (++rested_ < rest_ || level_ + 1 == level_count)
		return level_;
	trying_ = true;
	former_bytes_ = byte_rate;
	former_completions_ = completion_rate;
	former_events_ = event_share;
	return ++level_;
}

} // namespace ipoib
