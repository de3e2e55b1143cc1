// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Checks and stores a subnet manager's Set(PortInfo). The rules are the same for the agents of all
 * nodes (IBA 14.2.5.6).
 */
#pragma once

#include <cstdint>

#include <ib/smp.hpp>

#include "net/fabric/port.hpp"

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
 * Stores all that needs nothing but storing: no states, which the link has to follow, and no order
 * to reregister, which is passed on once.
 */
void store_port_info(ib::PortInfo &info, const ib::PortInfo &wanted, PortKind kind);

/* Change of the port's link that a Set(PortInfo) requests. */
enum class LinkOrder : std::uint8_t {
	none,
	/* Other rates are enabled, for the next training. */
	enable_rates,
	train,
	disable,
};

/* The rates that a port's attributes enable. */
EnabledRates enabled_rates(const ib::PortInfo &info);

/* Moves the states of a port that has a link, and says what the link has to do about it. */
LinkOrder set_port_states(ib::PortInfo &info, const ib::PortInfo &wanted);

/* The port's link came up at @rate, or it went down. */
void link_came_up(ib::PortInfo &info, const LinkRate &rate);
void link_went_down(ib::PortInfo &info);

} // namespace weft::fabric
