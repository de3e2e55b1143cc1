// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Checks a subnet manager's Set(PortInfo), stores its values, and determines what the port's link
 * must do. The rules are the same for the agents of all nodes (IBA 14.2.5.6).
 */
#pragma once

#include <cstdint>

#include <ib/smp.hpp>

#include "net/fabric/port.hpp"

namespace weft::fabric
{

enum class PortKind : std::uint8_t {
	channel_adapter,
	/* Port 0 of a switch, which has a LID and no link. */
	switch_management,
	switch_external,
};

/*
 * Returns true if all changes from @now to @wanted are valid. A Set that is refused has no effect.
 */
bool port_info_valid(const ib::PortInfo &now, const ib::PortInfo &wanted, PortKind kind);

/*
 * Stores the fields that have no other effect. Port states are excluded, because the link must
 * follow them, and so is the request to reregister, which is passed on once.
 */
void store_port_info(ib::PortInfo &info, const ib::PortInfo &wanted, PortKind kind);

/* Change of the port's link that a Set(PortInfo) requests. */
enum class LinkOrder : std::uint8_t {
	none,
	/* The enabled rates have changed, which affects the next training. */
	enable_rates,
	train,
	disable,
};

/* Returns the rates that a port's attributes enable. */
EnabledRates enabled_rates(const ib::PortInfo &info);

/* Changes the states of a port with a link, and returns what the link must do. */
LinkOrder set_port_states(ib::PortInfo &info, const ib::PortInfo &wanted);

/* Update the attributes after the link came up at @rate, or went down. */
void link_came_up(ib::PortInfo &info, const LinkRate &rate);
void link_went_down(ib::PortInfo &info);

} // namespace weft::fabric
