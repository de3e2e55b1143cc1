// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the rules by which the subnet management interface handles a directed-route SMP: the
 * port by which the SMP leaves, and the changes to its hop pointer and return path (IBA 14.2.2).
 * The functions depend only on the SMP, so weft's kernel stack and emulated nodes share them.
 */
#pragma once

#include "smp.hpp"

namespace ib
{

enum class SmiAction : std::uint8_t {
	/* The SMP breaks a rule: drop it, silently. */
	discard,
	/* The SMP is for the node's own agent or manager. */
	local,
	/* The SMP leaves by `port`, with permissive LIDs. */
	forward,
	/* The directed part has ended: forward by LID to `lid`. */
	forward_by_lid,
};

struct SmiDecision {
	SmiAction action;
	std::uint8_t port = 0;
	Lid lid = 0;
};

/*
 * A directed-route SMP leaves its origin (a request from the node's manager, D bit clear).
 * Updates the hop pointer. `local` means that the SMP is for this very node.
 */
constexpr SmiDecision smi_start(Smp &smp)
{
	MadHeader &h = smp.header;
	if (h.hop_cnt >= smp_path_max || smp.returning())
		return {SmiAction::discard};
	if (h.hop_cnt == 0)
		return {SmiAction::local};
	/* C14-9, first case. A path with a LID-routed start does not begin at this node. */
	if (h.hop_ptr != 0 || smp.dr_slid != lid_permissive)
		return {SmiAction::discard};
	h.hop_ptr = 1;
	return {SmiAction::forward, smp.initial_path[1]};
}

/*
 * The node's agent has answered in place: turn the SMP round (D bit) and send it back.
 * @in_port: where the request came in, for a path without hops.
 */
constexpr SmiDecision smi_return(Smp &smp, std::uint8_t in_port)
{
	MadHeader &h = smp.header;
	if (h.hop_cnt >= smp_path_max)
		return {SmiAction::discard};
	h.status = static_cast<std::uint16_t>(h.status | mad_status_direction);
	/* Without hops the whole way was by LID, or by one link. */
	if (h.hop_cnt == 0) {
		h.hop_ptr = 0;
		return smp.dr_slid != lid_permissive
			       ? SmiDecision{SmiAction::forward_by_lid, 0, smp.dr_slid}
			       : SmiDecision{SmiAction::forward, in_port};
	}
	/* C14-13, first case. */
	if (h.hop_ptr != h.hop_cnt + 1)
		return {SmiAction::discard};
	h.hop_ptr--;
	return {SmiAction::forward, smp.return_path[h.hop_ptr]};
}

/*
 * A directed-route SMP arrived by in_port.
 * @num_ports: external ports of the node.
 */
constexpr SmiDecision smi_receive(Smp &smp, bool is_switch, std::uint8_t in_port,
				  std::uint8_t num_ports)
{
	MadHeader &h = smp.header;
	if (h.hop_cnt >= smp_path_max)
		return {SmiAction::discard};
	auto exists = [&](std::uint8_t port) { return port >= 1 && port <= num_ports; };

	if (!smp.returning()) {
		/* C14-9. */
		if (h.hop_ptr != 0 && h.hop_ptr < h.hop_cnt) {
			if (!is_switch)
				return {SmiAction::discard};
			smp.return_path[h.hop_ptr] = in_port;
			h.hop_ptr++;
			std::uint8_t out = smp.initial_path[h.hop_ptr];
			return exists(out) ? SmiDecision{SmiAction::forward, out}
					   : SmiDecision{SmiAction::discard};
		}
		/*
		 * Arrived by the part by LID that a path begins with: here the directed part does
		 * (C14-9, first case).
		 */
		if (h.hop_ptr == 0 && h.hop_cnt != 0 && smp.dr_slid != lid_permissive) {
			if (!is_switch)
				return {SmiAction::discard};
			h.hop_ptr = 1;
			return exists(smp.initial_path[1])
				       ? SmiDecision{SmiAction::forward, smp.initial_path[1]}
				       : SmiDecision{SmiAction::discard};
		}
		if (h.hop_ptr == h.hop_cnt) {
			if (h.hop_cnt != 0)
				smp.return_path[h.hop_ptr] = in_port;
			h.hop_ptr++;
			if (smp.dr_dlid == lid_permissive)
				return {SmiAction::local};
			return is_switch ? SmiDecision{SmiAction::forward_by_lid, 0, smp.dr_dlid}
					 : SmiDecision{SmiAction::discard};
		}
		/* Arrived by its part by LID. */
		if (h.hop_ptr == h.hop_cnt + 1)
			return {SmiAction::local};
		return {SmiAction::discard};
	}

	/* C14-13. */
	if (h.hop_ptr >= 2 && h.hop_ptr <= h.hop_cnt) {
		if (!is_switch)
			return {SmiAction::discard};
		h.hop_ptr--;
		std::uint8_t out = smp.return_path[h.hop_ptr];
		return exists(out) ? SmiDecision{SmiAction::forward, out}
				   : SmiDecision{SmiAction::discard};
	}
	if (h.hop_ptr == 1) {
		h.hop_ptr = 0;
		if (smp.dr_slid == lid_permissive)
			return {SmiAction::local};
		return is_switch ? SmiDecision{SmiAction::forward_by_lid, 0, smp.dr_slid}
				 : SmiDecision{SmiAction::discard};
	}
	if (h.hop_ptr == 0)
		return {SmiAction::local};
	/* The end of the part by LID that a way back began with. */
	if (h.hop_ptr == h.hop_cnt + 1 && is_switch && h.hop_cnt != 0) {
		h.hop_ptr--;
		std::uint8_t out = smp.return_path[h.hop_ptr];
		return exists(out) ? SmiDecision{SmiAction::forward, out}
				   : SmiDecision{SmiAction::discard};
	}
	return {SmiAction::discard};
}

} // namespace ib
