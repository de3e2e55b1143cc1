// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sorts keys by the time at which they are due. If no key is due, a check costs only the comparison
 * with the first time.
 */
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "base/environment.hpp"

namespace weft::sm
{

/* The clock's maximum means never. Keys with that time are not stored. */
template<class Key>
class DueIndex
{
public:
	using TimePoint = Clock::time_point;

	void add(TimePoint due, const Key &key)
	{
		if (due != TimePoint::max())
			entries_.emplace(due, key);
	}
	/* @due is the time with which the key was added. */
	void remove(TimePoint due, const Key &key) { entries_.erase({due, key}); }

	/* Returns the earliest time, or the clock's maximum if there are no keys. */
	TimePoint first() const
	{
		return entries_.empty() ? TimePoint::max() : entries_.begin()->first;
	}
	/* Removes and returns the first key that is due. */
	std::optional<Key> take_due(TimePoint now)
	{
		if (first() > now || entries_.empty())
			return std::nullopt;
		return std::move(entries_.extract(entries_.begin()).value().second);
	}

private:
	std::set<std::pair<TimePoint, Key>> entries_;
};

} // namespace weft::sm
