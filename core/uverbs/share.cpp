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

Shares::~Shares()
{
	kern::Guard guard(lock_);
	while (Share *share = shares_.pop_front())
		kern::destroy(share);
}

kern::Result<Shares::Member> Shares::enter(u32 user)
{
	kern::Guard guard(lock_);
	Share *own = nullptr;

	for (Share &share : shares_)
		if (share.user == user)
			own = &share;
	if (!own) {
		own = TRY(kern::make<Share>(kern::Gfp::kernel, user)).release();
		shares_.push_back(*own);
	}
	own->files_++;
	return Member(*this, *own);
}

void Shares::leave(Share &share)
{
	kern::Guard guard(lock_);

	if (--share.files_ || !share.idle())
		return;
	share.node_.unlink();
	kern::destroy(&share);
}

} // namespace uverbs
