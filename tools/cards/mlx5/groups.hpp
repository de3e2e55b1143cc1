// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds a ConnectX-5's multicast groups: which queue pairs the driver has attached to each by
// commands.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cards/hca/context.hpp"
#include "cards/mlx5/limits.hpp"
#include "cards/mlx5/queue_pair.hpp"

namespace weft::mlx5
{

class MulticastGroups final : public Groups
{
public:
	// Returns false if the group, or the card, has reached its limit. Attaching a member again
	// has no effect.
	bool attach(const ib::Gid &gid, const QueuePair &qp);
	// Returns false if it is not a member.
	bool detach(const ib::Gid &gid, std::uint32_t qpn);
	// Removes a queue pair from all groups; takes time proportional to the number of groups.
	void forget(std::uint32_t qpn);
	void reset() { groups_.clear(); }

	void members(const ib::Gid &gid, std::vector<Member> &out) const override;

private:
	struct Less {
		bool operator()(const ib::Gid &a, const ib::Gid &b) const;
	};
	std::map<ib::Gid, std::vector<Member>, Less> groups_;
};

} // namespace weft::mlx5
