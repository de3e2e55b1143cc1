// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Derives GUIDs for nodes that have none in the lab file.
#pragma once

#include <cstddef>
#include <string_view>

#include <ib/types.hpp>

namespace weft::weftd
{

/*
 * Default GUIDs look like those of a vendor: 00:02:c9 identifies a company, whose adapters have 03
 * as the next byte. Locally administered GUIDs (0x02 in the top byte) cannot be used, because some
 * software, such as SRP targets, listens on its node's GUID as a service ID. Communication managers
 * assign service IDs with that top byte themselves (IBA A3.2.3.3).
 *
 * 18 of the other bits are derived from the lab's name, so that labs differ, and a lab has the same
 * GUIDs at each start. 14 bits are the number of the node. The subnet manager has the lowest
 * number, because among managers of equal priority the lower GUID is master. Hosts beyond this
 * range, which only subnets without guests have, have 04 instead of 03, 16 bits from the name and
 * 16 bits for the number.
 */
class DefaultGuids
{
public:
	static constexpr std::size_t kHosts = 3071 + 16384;
	static constexpr std::size_t kSwitches = 4096;

	explicit DefaultGuids(std::string_view lab_name);

	// The GUIDs of a node's ports follow the node's GUID.
	ib::Guid subnet_manager() const { return base_ + kPerEndNode - 2; }
	// Returns the GUID of the manager on standby. It is the lower one, so its priority must be
	// lower, too.
	static ib::Guid standby_of(ib::Guid manager) { return manager - 2; }
	// Return the GUID of host or switch @index, or 0 if there is none left.
	ib::Guid host(std::size_t index) const
	{
		if (index < kFirstHosts)
			return base_ + (index + 1) * kPerEndNode;
		return index < kHosts ? further_ + (index - kFirstHosts) * kPerEndNode : 0;
	}
	ib::Guid switch_node(std::size_t index) const
	{
		return index < kSwitches ? base_ + (kFirstHosts + 1) * kPerEndNode + index : 0;
	}

private:
	static constexpr unsigned kNodeBits = 14;
	static constexpr std::size_t kPerEndNode = 4; // a host has at most two ports
	static constexpr std::size_t kFirstHosts = 3071;
	static_assert((kFirstHosts + 1) * kPerEndNode + kSwitches == std::size_t{1} << kNodeBits);
	static constexpr unsigned kFurtherBits = 16;
	static_assert((kHosts - kFirstHosts) * kPerEndNode == std::size_t{1} << kFurtherBits);

	const ib::Guid base_, further_;
};

} // namespace weft::weftd
