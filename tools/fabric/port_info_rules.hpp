// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What a subnet manager may ask of a port by Set(PortInfo), and what of it is stored: the same for
 * every node's agent (IBA 14.2.5.6).
 */
#pragma once

#include <ib/smp.hpp>

namespace weft::fabric
{

enum class PortKind : std::uint8_t {
	channel_adapter,
	/* Port 0 of a switch: it has a LID and no link. */
	switch_management,
	switch_external,
};

/* True if a port that is @now can become what is wanted; a refused Set changes nothing. */
bool port_info_valid(const ib::PortInfo &now, const ib::PortInfo &wanted, PortKind kind);

/*
 * Stores all that needs nothing but storing. States, which the link has to follow, and the order
 * to reregister, which is passed on once, are left to the agent.
 */
void store_port_info(ib::PortInfo &info, const ib::PortInfo &wanted, PortKind kind);

} // namespace weft::fabric
