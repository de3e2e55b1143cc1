/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A channel adapter's part in directed-route SMPs: the rules of include/ib/smi.hpp, for one who speaks through a certain port.
 */
#pragma once

#include <ib/smi.hpp>

namespace mgmt
{

/**
 * smi_outbound() - decide on a directed-route SMP that this node originates or answers
 * @smp: the packet; its hop pointer is advanced
 * @port: the port whose SMI was asked to send; the path must leave by it
 *
 * A path without hops is local: the node talks to itself.
 */
constexpr ib::SmiDecision smi_outbound(ib::Smp &smp, std::uint8_t port)
{
	if (smp.returning() && smp.header.hop_cnt == 0)
		return {ib::SmiAction::local};
	const auto decision = smp.returning() ? ib::smi_return(smp, port) : ib::smi_start(smp);
	if (decision.action == ib::SmiAction::forward && decision.port != port)
		return {ib::SmiAction::discard};
	return decision;
}

/* Decides on one that came in by a port: local, or discard, since an adapter passes nothing on. */
constexpr ib::SmiDecision smi_inbound(ib::Smp &smp, std::uint8_t port)
{
	return ib::smi_receive(smp, false, port, port);
}

} // namespace mgmt
