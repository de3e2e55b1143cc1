// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Keys ordered by the time at which they are due. A check costs nothing while none is due.
 */
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "base/environment.hpp"

namespace weft::sm
{

/* The clock's maximum as a time means never; such keys are not kept. */
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
	/* @due: the time that the key was added with. */
	void remove(TimePoint due, const Key &key) { entries_.erase({due, key}); }

	/* The clock's maximum if there is none. */
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
