// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the traps that a card's subnet management agent sends to the subnet manager (IBA
// 14.2.5.1).
#include "cards/hca/subnet_agent.hpp"

#include <algorithm>
#include <cstring>

namespace weft::hca
{

void SubnetAgent::trap_capabilities(const CardPort &port, std::uint16_t change_flags)
{
	ib::CapabilityChangeDetails details{};
	details.lid = port.lid();
	details.other_local_changes = change_flags ? 1 : 0;
	details.capability_mask = port.info().capability_mask;
	details.change_flags = change_flags;
	traps_of(port).raise(ib::trap_capability_change, ib::NoticeType::informational, details);
}

void SubnetAgent::capabilities_changed(const CardPort &port)
{
	if (port.info().capability_mask & ib::port_cap_capability_mask_notice)
		trap_capabilities(port, 0);
}

void SubnetAgent::description_changed()
{
	for (const auto &port : ports_)
		if (port->info().capability_mask & ib::port_cap_other_local_changes_notice)
			trap_capabilities(*port,
					  ib::CapabilityChangeDetails::node_description_changed);
}

void SubnetAgent::key_violation(const CardPort &port, ib::TrapNumber trap,
				const packet::Headers &headers)
{
	const bool datagram = ib::opcode_traits(headers.bth.opcode).has(ib::OpcodeTraits::deth);
	ib::BadKeyDetails details{};
	details.slid = headers.lrh.slid;
	details.dlid = headers.lrh.dlid;
	details.key = trap == ib::trap_bad_qkey ? headers.deth.qkey.value()
						: std::uint32_t{headers.bth.pkey};
	// Packets of connected QPs do not contain the source QP.
	details.sl_source_qp = std::uint32_t{headers.lrh.sl()} << 28 |
			       (datagram ? std::uint32_t{headers.deth.src_qp} : 0);
	details.dest_qp = headers.bth.dest_qp();
	if (headers.has_grh) {
		details.sgid = headers.grh.sgid;
		details.dgid = headers.grh.dgid;
	}
	traps_of(port).raise(trap, ib::NoticeType::security, details);
}

void SubnetAgent::trap_mkey(const CardPort &port, const ib::Smp &smp, ib::Lid slid)
{
	ib::BadMkeyDetails details{};
	details.lid = slid;
	details.method = smp.header.method;
	details.attr_id = smp.header.attr_id;
	details.attr_mod = smp.header.attr_mod;
	details.mkey = smp.mkey;
	if (smp.header.cls() == ib::MgmtClass::subn_directed_route) {
		const unsigned hops = std::min<unsigned>(smp.header.hop_cnt, ib::smp_path_max - 1);
		const unsigned kept = std::min<unsigned>(hops, sizeof(details.dr_return_path));
		details.dr_slid = smp.dr_slid;
		details.dr_hops = static_cast<std::uint8_t>(
			ib::BadMkeyDetails::dr_notice |
			(kept < hops ? ib::BadMkeyDetails::dr_truncated : 0) | kept);
		// Entry 0 of a path is unused.
		std::memcpy(details.dr_return_path, smp.return_path + 1, kept);
	}
	traps_of(port).raise(ib::trap_bad_mkey, ib::NoticeType::security, details);
}

} // namespace weft::hca
