// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "smi.hpp"

namespace mgmt
{
namespace
{

/* Both counters index arrays of 64, of which entry 0 is unused (IBA 14.2.1.2). */
constexpr bool hops_in_range(const ib::Smp &smp)
{
	return smp.header.hop_cnt < ib::smp_path_max &&
	       smp.header.hop_ptr <= smp.header.hop_cnt + 1;
}

/* The directed part is over: either it ends here, or the packet goes on by LID (IBA C14-9 step 3). */
SmiDecision end_of_path(bool ends_here, SmiNode node)
{
	if (ends_here)
		return SmiDecision::local();
	return node.forwards() ? SmiDecision{SmiRoute::by_lid, 0} : SmiDecision::discard();
}

} // namespace

SmiDecision smi_outbound(ib::Smp &smp, SmiNode node, std::uint8_t port)
{
	auto &hop_ptr = smp.header.hop_ptr;
	const auto hop_cnt = smp.header.hop_cnt;

	if (!hops_in_range(smp))
		return SmiDecision::discard();

	if (!smp.returning()) {
		if (hop_cnt == 0)
			return hop_ptr == 0 ? SmiDecision::local() : SmiDecision::discard();
		if (hop_ptr != 0)
			return SmiDecision::discard();
		if (!node.forwards() && smp.initial_path[1] != port)
			return SmiDecision::discard();
		hop_ptr = 1;
		return SmiDecision::out_of(smp.initial_path[1]);
	}

	if (hop_cnt == 0)
		return SmiDecision::local();
	if (hop_ptr != hop_cnt + 1)
		return SmiDecision::discard();
	hop_ptr--;
	if (!node.forwards() && smp.return_path[hop_ptr] != port)
		return SmiDecision::discard();
	return SmiDecision::out_of(smp.return_path[hop_ptr]);
}

SmiDecision smi_inbound(ib::Smp &smp, SmiNode node, std::uint8_t port)
{
	auto &hop_ptr = smp.header.hop_ptr;
	const auto hop_cnt = smp.header.hop_cnt;

	if (!hops_in_range(smp))
		return SmiDecision::discard();

	if (!smp.returning()) {
		if (hop_cnt == 0)
			return hop_ptr == 0 ? SmiDecision::local() : SmiDecision::discard();
		if (hop_ptr == 0 || hop_ptr > hop_cnt)
			return SmiDecision::discard();
		smp.return_path[hop_ptr] = port;
		if (hop_ptr == hop_cnt) {
			hop_ptr++;
			return end_of_path(smp.dr_dlid.value() == ib::lid_permissive, node);
		}
		if (!node.forwards() || smp.initial_path[hop_ptr + 1] > node.num_ports)
			return SmiDecision::discard();
		hop_ptr++;
		return SmiDecision::out_of(smp.initial_path[hop_ptr]);
	}

	if (hop_ptr <= 1) {
		hop_ptr = 0;
		return end_of_path(smp.dr_slid.value() == ib::lid_permissive, node);
	}
	if (hop_ptr > hop_cnt || !node.forwards())
		return SmiDecision::discard();
	hop_ptr--;
	if (smp.return_path[hop_ptr] > node.num_ports)
		return SmiDecision::discard();
	return SmiDecision::out_of(smp.return_path[hop_ptr]);
}

} // namespace mgmt
