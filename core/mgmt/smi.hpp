/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The subnet management interface's handling of directed-route SMPs, IBA 14.2.2: where a packet goes that this node sends,
 * or that came in on one of its ports. Pure functions over the packet: no locks, any context.
 */
#pragma once

#include <ib/smp.hpp>

namespace mgmt
{

/* The node that holds the port: a channel adapter never forwards, a switch does. */
struct SmiNode {
	ib::NodeType type;
	std::uint8_t num_ports;

	constexpr bool forwards() const { return type == ib::NodeType::switch_; }
};

enum class SmiRoute : std::uint8_t {
	discard, /* breaks a rule of IBA 14.2.2: silently dropped */
	local,   /* for this node's own agent or manager */
	forward, /* out of SmiDecision::port */
	by_lid,  /* the directed part is over, on by the forwarding tables of a switch */
};

struct SmiDecision {
	SmiRoute route;
	std::uint8_t port;

	static constexpr SmiDecision discard() { return {SmiRoute::discard, 0}; }
	static constexpr SmiDecision local() { return {SmiRoute::local, 0}; }
	static constexpr SmiDecision out_of(std::uint8_t port) { return {SmiRoute::forward, port}; }
};

/**
 * smi_outbound() - decide on a directed-route SMP that this node originates or answers
 * @smp: the packet; its hop pointer is advanced (IBA C14-9 step 1, C14-13 step 1)
 * @node: this node
 * @port: the port whose SMI was asked to send
 *
 * A packet whose directed part is empty (hop count 0) is local: the node talks to itself.
 */
SmiDecision smi_outbound(ib::Smp &smp, SmiNode node, std::uint8_t port);

/**
 * smi_inbound() - decide on a directed-route SMP that came in on a port
 * @smp: the packet; its hop pointer and return path are advanced (IBA C14-9 steps 2 to 4, C14-13 steps 2 to 4)
 * @node: this node
 * @port: the port it came in on
 */
SmiDecision smi_inbound(ib::Smp &smp, SmiNode node, std::uint8_t port);

} // namespace mgmt
