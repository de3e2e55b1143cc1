// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/enable_rates.hpp"
#include "net/fabric/port_info_rules.hpp"

namespace weft::fabric
{

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

bool lids_valid(const ib::PortInfo &wanted, PortKind kind)
{
	const auto valid = [](ib::Lid lid) { return lid == 0 || ib::lid_is_unicast(lid); };
	if (!valid(wanted.lid) || !valid(wanted.sm_lid))
		return false;
	/* The LID of a port is a multiple of the number of LIDs it has (IBA 4.1.3). */
	return kind == PortKind::switch_management ||
	       (wanted.lid & ((1u << wanted.lmc()) - 1)) == 0;
}

/*
 * Returns the new value of a field of enabled rates. If no supported value would be enabled, the
 * Set has no effect on the field.
 */
unsigned enabled(unsigned now, unsigned wanted, unsigned all, unsigned supported)
{
	if (wanted == all)
		return supported;
	return (wanted & supported) != 0 ? wanted & supported : now;
}

/* Values of LinkSpeedExtEnabled that do not select speeds. */
constexpr unsigned kSpeedExtDisabled = 30;
constexpr unsigned kSpeedExtAll = 31;

unsigned enabled_ext(unsigned now, unsigned wanted, unsigned supported)
{
	return wanted == kSpeedExtDisabled ? wanted : enabled(now, wanted, kSpeedExtAll, supported);
}

bool turned_off(const ib::PortInfo &info)
{
	return info.phys_state() == ib::PhysState::sleep ||
	       info.phys_state() == ib::PhysState::disabled;
}

} // namespace

bool port_info_valid(const ib::PortInfo &now, const ib::PortInfo &wanted, PortKind kind)
{
	if (kind != PortKind::switch_external && !lids_valid(wanted, kind))
		return false;
	if (ib::mtu_bytes(wanted.neighbor_mtu()) == 0 || wanted.neighbor_mtu() > now.mtu_cap())
		return false;
	/* Zero means no change. */
	if (wanted.operational_vls() > now.vl_cap())
		return false;
	/* Valid values are no change, sleep, polling and disabled. */
	if (wanted.phys_state() > ib::PhysState::disabled)
		return false;
	return state_reachable(now.state(), wanted.state());
}

void store_port_info(ib::PortInfo &info, const ib::PortInfo &wanted, PortKind kind)
{
	if (kind == PortKind::switch_external) {
		/* Partition enforcement and raw filters. */
		info.vl_oper_enforcement = ib::field_set<3, 0>(info.vl_oper_enforcement,
							       wanted.vl_oper_enforcement & 0x0fu);
	} else {
		info.mkey = wanted.mkey;
		info.mkey_lease_period = wanted.mkey_lease_period;
		info.set_mkey_protect(wanted.mkey_protect());
		info.gid_prefix = wanted.gid_prefix;
		info.lid = wanted.lid;
		info.set_lmc(kind == PortKind::switch_management ? 0u : wanted.lmc());
		info.sm_lid = wanted.sm_lid;
		info.set_sm_sl(wanted.sm_sl());
		info.set_subnet_timeout(wanted.subnet_timeout());
	}
	info.set_neighbor_mtu(wanted.neighbor_mtu());
	if (wanted.operational_vls() != 0)
		info.set_operational_vls(wanted.operational_vls());
	info.vl_high_limit = wanted.vl_high_limit;
	info.vl_stall_hoq_life = wanted.vl_stall_hoq_life;
	info.phys_overrun_errors = wanted.phys_overrun_errors;
	info.link_width_enabled = static_cast<std::uint8_t>(enabled(info.link_width_enabled,
								    wanted.link_width_enabled, 0xff,
								    info.link_width_supported));
	info.set_speed_enabled(
		enabled(info.speed_enabled(), wanted.speed_enabled(), 0xf, info.speed_supported()));
	info.speed_ext_enabled = ib::field_set<4, 0>(info.speed_ext_enabled,
						     enabled_ext(info.speed_ext_enabled & 0x1fu,
								 wanted.speed_ext_enabled & 0x1fu,
								 info.speed_ext_supported()));
	if (wanted.down_default() != 0)
		info.set_down_default(wanted.down_default());
	/* Violation counters can only be cleared. */
	if (wanted.mkey_violations == 0)
		info.mkey_violations = std::uint16_t{0};
	if (wanted.pkey_violations == 0)
		info.pkey_violations = std::uint16_t{0};
	if (wanted.qkey_violations == 0)
		info.qkey_violations = std::uint16_t{0};
}

EnabledRates enabled_rates(const ib::PortInfo &info)
{
	EnabledRates rates;
	/*
	 * A cable may support rates that the port's attributes include only while its link is up.
	 */
	if (info.link_width_enabled != info.link_width_supported)
		rates.widths = info.link_width_enabled;
	if (info.speed_enabled() != info.speed_supported())
		rates.speeds = static_cast<std::uint8_t>(info.speed_enabled());
	const unsigned ext = info.speed_ext_enabled & 0x1fu;
	if (ext == kSpeedExtDisabled)
		rates.speeds_ext = 0;
	else if (ext != 0 && ext != info.speed_ext_supported())
		rates.speeds_ext = static_cast<std::uint8_t>(ext);
	return rates;
}

bool enable_rates(ib::PortInfo &info, const EnabledRates &wanted)
{
	const unsigned widths = wanted.widths & info.link_width_supported;
	const unsigned speeds = wanted.speeds & info.speed_supported();
	const unsigned ext = wanted.speeds_ext & info.speed_ext_supported();
	if (widths == 0 || (speeds | ext) == 0)
		return false;
	info.link_width_enabled = static_cast<std::uint8_t>(widths);
	info.set_speed_enabled(speeds);
	info.speed_ext_enabled =
		ib::field_set<4, 0>(info.speed_ext_enabled, ext != 0 ? ext : kSpeedExtDisabled);
	return true;
}

namespace
{

/* Returns true if training would result in the present rate. */
bool rate_is_enabled(const ib::PortInfo &info)
{
	const EnabledRates rates = enabled_rates(info);
	return (rates.widths & info.link_width_active) != 0 &&
	       (info.speed_ext_active() != 0 ? (rates.speeds_ext & info.speed_ext_active()) != 0
					     : (rates.speeds & info.speed_active()) != 0);
}

} // namespace

LinkOrder set_port_states(ib::PortInfo &info, const ib::PortInfo &wanted)
{
	if (turned_off(wanted)) {
		info.set_phys_state(wanted.phys_state());
		info.set_state(ib::PortState::down);
		return LinkOrder::disable;
	}
	if (wanted.phys_state() == ib::PhysState::polling ||
	    wanted.state() == ib::PortState::down) {
		/*
		 * A port that was disabled by a change of its physical state can only be enabled by
		 * another one.
		 */
		if (turned_off(info) && wanted.phys_state() != ib::PhysState::polling)
			return LinkOrder::none;
		/*
		 * The port goes down and its link trains again. Managers ignore all attributes in a
		 * response with state DOWN, including a new LID (seen: OpenSM), so a port whose
		 * link is up reports INIT at once. If it was in INIT already, nothing is done,
		 * because retraining would only drop packets in flight.
		 */
		if (info.state() == ib::PortState::init && rate_is_enabled(info))
			return LinkOrder::none;
		if (info.state() == ib::PortState::down)
			info.set_phys_state(ib::PhysState::polling);
		else
			info.set_state(ib::PortState::init);
		return LinkOrder::train;
	}
	if (wanted.state() != ib::PortState::nop)
		info.set_state(wanted.state());
	return LinkOrder::none;
}

void link_came_up(ib::PortInfo &info, const LinkRate &rate)
{
	info.set_state(ib::PortState::init);
	info.set_phys_state(ib::PhysState::link_up);
	info.link_width_active = rate.width;
	info.set_speed_active(rate.speed);
	info.set_speed_ext(rate.speed_ext, rate.speed_ext > info.speed_ext_supported()
						   ? rate.speed_ext * 2u - 1u
						   : info.speed_ext_supported());
	/* The cable has a width that the port does not normally support. */
	if ((info.link_width_supported & rate.width) == 0) {
		info.link_width_supported |= rate.width;
		info.link_width_enabled |= rate.width;
	}
}

void link_went_down(ib::PortInfo &info)
{
	info.set_state(ib::PortState::down);
	if (!turned_off(info))
		info.set_phys_state(ib::PhysState::polling);
}

} // namespace weft::fabric
