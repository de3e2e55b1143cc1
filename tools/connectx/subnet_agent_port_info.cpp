// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Set(PortInfo): what a subnet manager may change of a port (IBA 14.2.5.6).
#include "connectx/subnet_agent.hpp"

#include <hw/connectx/eqe.hpp>

#include "connectx/port_events.hpp"

namespace weft::connectx
{

namespace port_info_changed = hw::connectx::port_info_changed;

namespace
{

bool state_reachable(ib::PortState from, ib::PortState to)
{
	switch (to) {
	case ib::PortState::nop:
	case ib::PortState::down:
		return true;
	case ib::PortState::armed:
		return from == ib::PortState::init || from == ib::PortState::armed;
	case ib::PortState::active:
		return from == ib::PortState::armed || from == ib::PortState::active;
	default:
		return false;
	}
}

bool valid(const ib::PortInfo &now, const ib::PortInfo &wanted)
{
	const auto lid_valid = [](ib::Lid lid) { return lid == 0 || ib::lid_is_unicast(lid); };
	if (!lid_valid(wanted.lid) || !lid_valid(wanted.sm_lid))
		return false;
	// The LID of a port is a multiple of the number of LIDs it has (IBA 4.1.3).
	if (wanted.lid & ((1u << wanted.lmc()) - 1))
		return false;
	if (ib::mtu_bytes(wanted.neighbor_mtu()) == 0 || wanted.neighbor_mtu() > now.mtu_cap())
		return false;
	if (wanted.operational_vls() > now.vl_cap()) // 0: no change
		return false;
	if (wanted.phys_state() > ib::PhysState::disabled) // nop, sleep, polling, disabled
		return false;
	return state_reachable(now.state(), wanted.state());
}

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

void apply(ib::PortInfo &info, const ib::PortInfo &wanted)
{
	info.mkey = wanted.mkey;
	info.gid_prefix = wanted.gid_prefix;
	info.lid = wanted.lid;
	info.sm_lid = wanted.sm_lid;
	info.mkey_lease_period = wanted.mkey_lease_period;
	if (wanted.link_width_enabled == 0xff)
		info.link_width_enabled = info.link_width_supported;
	else if (wanted.link_width_enabled & info.link_width_supported)
		info.link_width_enabled = wanted.link_width_enabled & info.link_width_supported;
	if (wanted.speed_enabled() == 0xf)
		info.set_speed_enabled(info.speed_supported());
	else if (wanted.speed_enabled() & info.speed_supported())
		info.set_speed_enabled(wanted.speed_enabled() & info.speed_supported());
	if (wanted.down_default())
		info.set_down_default(wanted.down_default());
	info.set_mkey_protect(wanted.mkey_protect());
	info.set_lmc(wanted.lmc());
	info.set_neighbor_mtu(wanted.neighbor_mtu());
	info.set_sm_sl(wanted.sm_sl());
	info.vl_high_limit = wanted.vl_high_limit;
	if (wanted.operational_vls())
		info.set_operational_vls(wanted.operational_vls());
	info.vl_stall_hoq_life = wanted.vl_stall_hoq_life;
	// Violation counters can be cleared, not set.
	if (wanted.mkey_violations == 0)
		info.mkey_violations = std::uint16_t{0};
	if (wanted.pkey_violations == 0)
		info.pkey_violations = std::uint16_t{0};
	if (wanted.qkey_violations == 0)
		info.qkey_violations = std::uint16_t{0};
	info.set_subnet_timeout(wanted.subnet_timeout());
	info.phys_overrun_errors = wanted.phys_overrun_errors;
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
	if (!valid(port.info(), wanted))
		return ib::mad_status_invalid_value;

	const std::uint32_t changed = differences(port.info(), wanted);
	apply(port.info(), wanted);
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
