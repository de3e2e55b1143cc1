// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Holds the state of a port in the subnet management agent of any node: the attributes that
 * managers get and set (IBA 14.2.5).
 */
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ib/smp.hpp>

#include "net/fabric/mkey_guard.hpp"
#include "net/fabric/port_info_rules.hpp"

namespace weft::fabric
{

/* Tables that are read and written by blocks. */
constexpr unsigned kPkeysPerBlock = 32;
constexpr unsigned kGuidsPerBlock = 8;
constexpr unsigned kVlArbitrationBlocks = 4;

struct ManagedPort {
	struct Config {
		PortKind kind = PortKind::channel_adapter;
		unsigned number = 1;
		/*
		 * For end ports: the first GUID, which managers cannot change, and CapabilityMask.
		 */
		ib::Guid guid = 0;
		std::uint32_t capability_mask = 0;
		ib::Mtu mtu = ib::Mtu::mtu_4096;
		unsigned vl_cap = 4;
		/* Rounded up to whole blocks. */
		unsigned pkey_entries = kPkeysPerBlock;
	};
	/*
	 * Sets the state after power-on: no LID and link down. A switch's port 0 has no link and is
	 * active.
	 */
	explicit ManagedPort(const Config &config);

	unsigned number() const { return info.local_port; }

	PortKind kind;
	ib::PortInfo info{};
	std::vector<ib::be16> pkeys;
	std::array<ib::be64, kGuidsPerBlock> guids{};
	/*
	 * For channel adapters. Switches have such tables for each pair of ports: SubnetAgentHost.
	 */
	ib::SlToVl sl_to_vl{};
	std::array<ib::VlArbitration, kVlArbitrationBlocks> vl_arbitration{};
	MkeyGuard guard;
};

} // namespace weft::fabric
