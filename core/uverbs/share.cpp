// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "share.hpp"

namespace uverbs
{

namespace
{

/* Size of the pool if the device reports no limit. */
constexpr u32 unstated = 65536;

u32 limit_of(int stated)
{
	return stated > 0 ? static_cast<u32>(stated) : unstated;
}

} // namespace

Pools::Pools(const ib_device_attr &attr)
    : pds(limit_of(attr.max_pd)), keys(limit_of(attr.max_mr)), cqs(limit_of(attr.max_cq)),
      srqs(limit_of(attr.max_srq)), qps(limit_of(attr.max_qp))
{
}

GroupMembers::~GroupMembers()
{
	/* QPs that the device did not release are leaked, with their memberships. */
	for (Bucket &bucket : bucket_)
		while (bucket.pop_front()) {
		}
}

u32 GroupMembers::bucket_of(const ib_gid &gid)
{
	u32 sum = 0;

	for (const u8 byte : gid.raw)
		sum = sum * 31 + byte;
	return sum % buckets;
}

kern::Result<> GroupMembers::join(Member &member, const kern::UserShare &user, const ib_gid &gid,
				  u32 group_size)
{
	const u32 open = group_size - group_size / 16;
	u32 all = 0, own = 0;
	kern::Guard guard(lock_);
	Bucket &bucket = bucket_[bucket_of(gid)];

	for (const Member &other : bucket) {
		if (!(other.gid_ == gid))
			continue;
		all++;
		own += other.user_ == &user;
	}
	if (!user.user.privileged && !kern::Pool::permits(open, all, own, 1))
		return kern::Error{-EDQUOT};
	member.gid_ = gid;
	member.user_ = &user;
	member.members_ = this;
	bucket.push_back(member);
	return {};
}

void GroupMembers::leave(Member &member)
{
	kern::Guard guard(lock_);
	member.node_.unlink();
}

kern::Quota &Share::of(Kind kind)
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
	for (const kern::Quota *quota :
	     {&contexts, &pds, &ahs, &keys, &cqs, &srqs, &qps, &event_files, &attachments})
		if (quota->taken())
			return false;
	return true;
}

} // namespace uverbs
