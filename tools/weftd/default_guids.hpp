// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Derives GUIDs for nodes that have none in the lab file.
#pragma once

#include <cstddef>
#include <string_view>

#include <ib/types.hpp>

namespace weft::weftd
{

/*
 * They look like a vendor's: 00:02:c9 is a company's identifier, 03 what its adapters have next.
 * Locally administered ones (0x02 in the top byte) will not do, for software listens on its node's
 * GUID as a service ID (SRP targets do), and service IDs with that top byte are those which
 * communication managers assign themselves (IBA A3.2.3.3).
 *
 * 18 bits of the rest are made from the lab's name, so that labs differ and a lab is the same at
 * each start; 14 bits number the nodes. The subnet manager has the lowest, because among managers
 * of equal priority the lower GUID is master. Hosts beyond those that 14 bits number, as subnets
 * without machines have them, have 04 instead of 03, 16 bits of the name's and 16 of their own.
 */
class DefaultGuids
{
public:
	static constexpr std::size_t kHosts = 3071 + 16384;
	static constexpr std::size_t kSwitches = 4096;

	explicit DefaultGuids(std::string_view lab_name);

	// Each has room for the ports' own, which follow.
	ib::Guid subnet_manager() const { return base_ + kPerEndNode - 2; }
	// 0 if there is none for host @index or switch @index.
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
	static constexpr std::size_t kPerEndNode = 4; // a host has two ports at the most
	static constexpr std::size_t kFirstHosts = 3071;
	static_assert((kFirstHosts + 1) * kPerEndNode + kSwitches == std::size_t{1} << kNodeBits);
	static constexpr unsigned kFurtherBits = 16;
	static_assert((kHosts - kFirstHosts) * kPerEndNode == std::size_t{1} << kFurtherBits);

	const ib::Guid base_, further_;
};

} // namespace weft::weftd
