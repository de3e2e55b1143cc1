/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Handles the directed-route SMPs of a node. It applies the rules of include/ib/smi.hpp to one port
 * of an adapter, or to a switch, where one SMI serves all ports.
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
 * @node: the node that sends; the path must leave through one of its ports
 * @in_port: only for a response of a switch: the port at which the request arrived
 *
 * A request whose path begins with a LID-routed part (DrSLID) is sent unchanged by LID. The node
 * with that LID begins the directed part, or answers if there is none. Any other path without hops
 * is local: the node sends the SMP to itself. A request without hops that arrived from the wire is
 * answered through the port at which it arrived; its hop pointer is 1, because smi_inbound() has
 * advanced it. The response to a request whose path ended with a LID-routed part (DrDLID) is sent
 * by LID to the node where the directed part ended (IBA 14.2.2.3).
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
 * Decides what happens to an SMP that arrived at a port: it is handled locally or discarded; a
 * switch can also forward it through a port or by LID.
 */
constexpr ib::SmiDecision smi_inbound(ib::Smp &smp, const SmiNode &node, std::uint8_t in_port)
{
	/*
	 * in_port becomes part of a path that other nodes follow, so check the value that the
	 * hardware reported.
	 */
	if (node.is_switch && in_port > node.port_count)
		return {ib::SmiAction::discard};
	return ib::smi_receive(smp, node.is_switch, in_port,
			       node.is_switch ? node.port_count : node.port);
}

} // namespace mad
