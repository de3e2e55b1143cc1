// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Allocates multicast LIDs. */
#pragma once

#include <set>

#include "ib/types.hpp"

namespace weft::sm
{

/*
 * Multicast LIDs, the lowest free one first, at a cost that the number of those in use is no part
 * of.
 */
class MlidPool
{
public:
	/* The lowest free one; beyond ib::lid_multicast_last if there is none. */
	ib::Lid lowest() const { return returned_.empty() ? next_ : *returned_.begin(); }

	/* Takes lowest(), which there must be. */
	void take_lowest()
	{
		if (returned_.empty())
			next_++;
		else
			returned_.erase(returned_.begin());
	}

	void give_back(ib::Lid mlid) { returned_.insert(mlid); }

private:
	/* No MLID from here on was ever taken. */
	ib::Lid next_ = ib::lid_multicast_first;
	/* MLIDs below that are free again. */
	std::set<ib::Lid> returned_;
};

} // namespace weft::sm
