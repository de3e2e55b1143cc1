// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface by which the transport engine finds the members of a multicast group.
#pragma once

#include <cstdint>
#include <vector>

#include <ib/types.hpp>

namespace weft::hca
{

class Groups
{
public:
	struct Member {
		std::uint32_t qpn;
		bool block_loopback;
	};

	virtual ~Groups() = default;
	// Appends a bounded number of members of group @gid to @out.
	virtual void members(const ib::Gid &gid, std::vector<Member> &out) const = 0;
};

} // namespace weft::hca
