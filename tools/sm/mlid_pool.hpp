// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Allocates multicast LIDs for groups: always the lowest LID that is free, in a time that hardly
 * depends on the number of groups.
 */
#pragma once

#include <set>

#include "ib/types.hpp"

namespace weft::sm
{

/*
 * Allocates the lowest free multicast LID, in a time that does not depend on the number of
 * allocated ones.
 */
class MlidPool
{
public:
	/*
	 * Returns the lowest free multicast LID. If there is none, returns a value above
	 * ib::lid_multicast_last.
	 */
	ib::Lid lowest() const { return returned_.empty() ? next_ : *returned_.begin(); }

	/* Allocates lowest(), which must exist. */
	void take_lowest()
	{
		if (returned_.empty())
			next_++;
		else
			returned_.erase(returned_.begin());
	}

	void release(ib::Lid mlid) { returned_.insert(mlid); }

private:
	/* This MLID and all higher ones were never allocated. */
	ib::Lid next_ = ib::lid_multicast_first;
	/* Free MLIDs below next_. */
	std::set<ib::Lid> returned_;
};

} // namespace weft::sm
