// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Finds the listener of a device for a service ID. The listeners with the same service ID mask are
 * in one map, and at most eight masks can be in use. So a lookup searches at most eight maps,
 * regardless of the number of listeners.
 */
#pragma once

#include <kern/xarray.hpp>

namespace cm
{

/* The caller provides the locking. */
template<class T>
class Listeners
{
public:
	static constexpr unsigned masks_max = 8;

	/*
	 * Errors: EBUSY if another listener uses the same IDs, or all maps are in use with other
	 * masks; ENOMEM. Context: process.
	 */
	kern::Result<> insert(u64 service_id, u64 mask, T &listener)
	{
		Map *map = find_map(mask);
		if (!map)
			return kern::Error{-EBUSY};
		map->mask = mask;
		KERN_TRY(map->listeners.insert(service_id & mask, &listener));
		map->count++;
		return {};
	}
	void erase(u64 service_id, u64 mask)
	{
		if (Map *map = find_map(mask); map && map->listeners.erase(service_id & mask))
			map->count--;
	}
	/* Returns the listener whose mask has the most bits; nullptr if there is none. */
	T *find(u64 service_id)
	{
		T *best = nullptr;
		unsigned best_bits = 0;
		for (Map &map : maps_) {
			T *found = map.count ? map.listeners.load(service_id & map.mask) : nullptr;
			if (found && (!best || bits(map.mask) > best_bits)) {
				best = found;
				best_bits = bits(map.mask);
			}
		}
		return best;
	}

private:
	struct Map {
		u64 mask = 0;
		unsigned count = 0;
		kern::XArray<T> listeners;
	};

	static constexpr unsigned bits(u64 mask)
	{
		unsigned count = 0;
		for (; mask; mask &= mask - 1)
			count++;
		return count;
	}
	/* Returns the map of the mask or, if there is none, an unused map. */
	Map *find_map(u64 mask)
	{
		Map *vacant = nullptr;
		for (Map &map : maps_) {
			if (map.count && map.mask == mask)
				return &map;
			if (!map.count && !vacant)
				vacant = &map;
		}
		return vacant;
	}

	Map maps_[masks_max];
};

} // namespace cm
