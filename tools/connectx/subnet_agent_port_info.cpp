// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Set(PortInfo): what a subnet manager may change of a port (IBA 14.2.5.6).
#include "connectx/subnet_agent.hpp"

#include <hw/connectx/eqe.hpp>

#include "connectx/port_events.hpp"
#include "fabric/port_info_rules.hpp"

namespace weft::connectx
{

namespace port_info_changed = hw::connectx::port_info_changed;

namespace
{

// What the driver is to hear of the difference.
std::uint32_t differences(const ib::PortInfo &now, const ib::PortInfo &wanted)
{
	std::uint32_t changed = 0;
	if (now.sm_lid != wanted.sm_lid)
		changed |= port_info_changed::sm_lid;
	if (now.gid_prefix != wanted.gid_prefix)
		changed |= port_info_changed::gid_prefix;
	if (now.lid != wanted.lid || now.lmc() != wanted.lmc())
		changed |= port_info_changed::lid;
	if (now.sm_sl() != wanted.sm_sl())
		changed |= port_info_changed::sm_sl;
	if (wanted.client_reregister())
		changed |= port_info_changed::client_reregister;
	return changed;
}

} // namespace

// The port goes down, and its link trains again. Managers take nothing from an answer that says
// DOWN, the new LID included (seen: OpenSM), so a port whose link is up says INIT at once; and one
// that was in INIT anyway gains nothing by dropping what is under way on its link.
void SubnetAgent::retrain(CardPort &port)
{
	if (port.state() == ib::PortState::init)
		return;
	if (port.state() == ib::PortState::down)
		port.info().set_phys_state(ib::PhysState::polling);
	else
		set_state(port, ib::PortState::init);
	host_.request_link(port.number(), Host::LinkRequest::train);
}

std::uint16_t SubnetAgent::set_port_info(CardPort &port, const ib::PortInfo &wanted_in_smp)
{
	const ib::PortInfo wanted = wanted_in_smp; // it lies where the answer will
	constexpr auto kind = fabric::PortKind::channel_adapter;
	if (!fabric::port_info_valid(port.info(), wanted, kind))
		return ib::mad_status_invalid_value;

	const std::uint32_t changed = differences(port.info(), wanted);
	fabric::store_port_info(port.info(), wanted, kind);
	if (changed) {
		host_.port_changed(port.number());
		raise_port_info(events_, port, changed);
	}

	// Addresses come first: drivers read them when they hear that the port is active.
	if (wanted.phys_state() == ib::PhysState::sleep ||
	    wanted.phys_state() == ib::PhysState::disabled) {
		port.info().set_phys_state(wanted.phys_state());
		set_state(port, ib::PortState::down);
		host_.request_link(port.number(), Host::LinkRequest::disable);
	} else if (wanted.phys_state() == ib::PhysState::polling ||
		   wanted.state() == ib::PortState::down) {
		retrain(port);
	} else if (wanted.state() != ib::PortState::nop) {
		set_state(port, wanted.state());
	}
	return ib::mad_status_ok;
}

} // namespace weft::connectx
