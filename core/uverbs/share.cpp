// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "share.hpp"

namespace uverbs
{

kern::Result<> GroupPlaces::take(Place &place, const ib_gid &gid, u32 group_size)
{
	const u32 most = group_size < 4 ? 1 : group_size / 4;
	u32 has = 0;
	kern::Guard guard(lock_);

	for (const Place &other : taken_)
		has += __builtin_memcmp(other.gid_.raw, gid.raw, sizeof(gid.raw)) == 0;
	if (has >= most)
		return kern::Error{-EDQUOT};
	place.gid_ = gid;
	place.places_ = this;
	taken_.push_back(place);
	return {};
}

void GroupPlaces::leave(Place &place)
{
	kern::Guard guard(lock_);
	place.node_.unlink();
}

kern::Budget &Share::of(Kind kind)
{
	switch (kind) {
	case Kind::pd:
		return pds;
	case Kind::ah:
		return ahs;
	case Kind::mr:
	case Kind::mw:
		return keys;
	case Kind::cq:
	case Kind::xrcd:
		return cqs;
	case Kind::srq:
		return srqs;
	case Kind::qp:
		break;
	}
	return qps;
}

bool Share::idle() const
{
	for (const kern::Budget *budget :
	     {&contexts, &pds, &ahs, &keys, &cqs, &srqs, &qps, &event_files, &attachments})
		if (budget->taken())
			return false;
	return true;
}

} // namespace uverbs
