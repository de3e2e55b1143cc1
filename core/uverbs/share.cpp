// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "share.hpp"

namespace uverbs
{

kern::Budget &Share::of(Kind kind)
{
	switch (kind) {
	case Kind::pd:
		return pds;
	case Kind::mr:
	case Kind::mw:
		return keys;
	case Kind::cq:
		return cqs;
	case Kind::srq:
		return srqs;
	case Kind::xrcd:
		return xrcds;
	case Kind::qp:
		break;
	}
	return qps;
}

bool Share::idle() const
{
	for (const kern::Budget *budget : {&contexts, &pds, &keys, &cqs, &srqs, &qps, &xrcds, &event_files, &attachments})
		if (budget->taken())
			return false;
	return true;
}

} // namespace uverbs
