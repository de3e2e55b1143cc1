/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A node's part in directed-route SMPs: the rules of include/ib/smi.hpp, for one port of an
 * adapter, and for a switch, whose single SMI serves all its ports.
 */
#pragma once

#include <ib/smi.hpp>

namespace mad
{

struct SmiNode {
	bool is_switch;
	std::uint8_t port; /* port of an adapter; for a switch, port 0 */
	std::uint8_t port_count;

	constexpr bool can_send_by(std::uint8_t out) const
	{
		return is_switch ? out >= 1 && out <= port_count : out == port;
	}
};

/**
 * smi_outbound() - decide on a directed-route SMP that this node originates or answers
 * @smp: the packet; its hop pointer is advanced
 * @node: whose SMI was asked to send; the path must leave by a port of it
 * @in_port: of a switch: where the question came in that this answers
 *
 * A path that begins by LID (DrSLID) is sent so, as it is: the node with that LID begins its
 * directed part, and answers if there is none. Another path without hops is local: the node talks
 * to itself. One that came in by the wire all the same (its hop pointer says so: smi_inbound() has
 * advanced it) is answered by the port that it came in by. An answer to what came at last by LID
 * goes back so, to the node where the directed part ended (IBA 14.2.2.3).
 */
constexpr ib::SmiDecision smi_outbound(ib::Smp &smp, const SmiNode &node, std::uint8_t in_port = 0)
{
	const ib::MadHeader &h = smp.header;

	if (!smp.returning() && smp.dr_slid != ib::lid_permissive)
		return {h.hop_cnt < ib::smp_path_max && h.hop_ptr == 0
				? ib::SmiAction::forward_by_lid
				: ib::SmiAction::discard};
	if (h.hop_cnt == 0 && h.hop_ptr == 0)
		return {ib::SmiAction::local};
	if (h.hop_cnt == 0 && (h.hop_ptr != 1 || !smp.returning()))
		return {ib::SmiAction::discard};
	if (smp.returning() && h.hop_cnt < ib::smp_path_max && h.hop_ptr == h.hop_cnt + 1 &&
	    smp.dr_dlid != ib::lid_permissive)
		return {ib::SmiAction::forward_by_lid};
	const auto decision = smp.returning()
				      ? ib::smi_return(smp, node.is_switch ? in_port : node.port)
				      : ib::smi_start(smp);
	if (decision.action == ib::SmiAction::forward && !node.can_send_by(decision.port))
		return {ib::SmiAction::discard};
	return decision;
}

/*
 * Decides about an SMP that arrived at a port: local or discard, and in a switch also forwarding by
 * a port or by LID.
 */
constexpr ib::SmiDecision smi_inbound(ib::Smp &smp, const SmiNode &node, std::uint8_t in_port)
{
	/* in_port becomes part of a path that other nodes follow, so check the hardware's value. */
	if (node.is_switch && in_port > node.port_count)
		return {ib::SmiAction::discard};
	return ib::smi_receive(smp, node.is_switch, in_port,
			       node.is_switch ? node.port_count : node.port);
}

} // namespace mad
