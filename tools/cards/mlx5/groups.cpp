// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/groups.hpp"

#include <algorithm>

namespace weft::mlx5
{

bool MulticastGroups::Less::operator()(const ib::Gid &a, const ib::Gid &b) const
{
	return std::ranges::lexicographical_compare(a.raw, b.raw);
}

bool MulticastGroups::attach(const ib::Gid &gid, const QueuePair &qp)
{
	const auto found = groups_.find(gid);
	if (found == groups_.end()) {
		if (groups_.size() >= std::size_t{1} << limits::kLogGroups)
			return false;
		groups_[gid] = {{qp.qpn, qp.block_loopback}};
		return true;
	}
	std::vector<Member> &members = found->second;
	if (std::ranges::find(members, qp.qpn, &Member::qpn) != members.end())
		return true;
	if (members.size() >= limits::kMostMembers)
		return false;
	members.push_back({qp.qpn, qp.block_loopback});
	return true;
}

bool MulticastGroups::detach(const ib::Gid &gid, std::uint32_t qpn)
{
	const auto found = groups_.find(gid);
	if (found == groups_.end() || !std::erase_if(found->second, [qpn](const Member &member) {
		    return member.qpn == qpn;
	    }))
		return false;
	if (found->second.empty())
		groups_.erase(found);
	return true;
}

void MulticastGroups::forget(std::uint32_t qpn)
{
	for (auto group = groups_.begin(); group != groups_.end();) {
		std::erase_if(group->second,
			      [qpn](const Member &member) { return member.qpn == qpn; });
		group = group->second.empty() ? groups_.erase(group) : std::next(group);
	}
}

void MulticastGroups::members(const ib::Gid &gid, std::vector<Member> &out) const
{
	if (const auto found = groups_.find(gid); found != groups_.end())
		out.insert(out.end(), found->second.begin(), found->second.end());
}

} // namespace weft::mlx5
