// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fabric/subnet_agent.hpp"

#include <algorithm>
#include <utility>

#include "fabric/port_info_rules.hpp"
#include "fabric/smp_request.hpp"

namespace weft::fabric
{

namespace
{

using ib::PhysState;
using ib::PortState;

} // namespace

SubnetAgent::SubnetAgent(Config config, SubnetAgentHost &host)
    : config_(std::move(config)), host_(host), ports_(config_.ports + 1)
{
	/* Not terminated when all bytes are used. */
	config_.description.copy(description_.text, sizeof(description_.text));
	unsigned pkey_entries =
		(config_.pkey_entries + pkeys_per_block - 1) / pkeys_per_block * pkeys_per_block;
	for (unsigned number = 0; number < ports_.size(); number++) {
		PortData &port = ports_[number];
		port.exists = number != 0 || is_switch();
		port.pkeys.assign(pkey_entries, ib::be16(0));
		port.pkeys[0] = ib::pkey_default_full;
		bool end_port = !is_switch() || number == 0;
		ib::PortInfo &info = port.info;
		if (end_port) {
			info.gid_prefix = ib::gid_prefix_link_local;
			info.capability_mask = config_.capability_mask;
			info.guid_cap = 8;
			std::size_t at =
				std::min<std::size_t>(number, config_.port_guids.size() - 1);
			port.guids.guid[0] = config_.port_guids[at];
			info.set_subnet_timeout(18);
			info.resp_time = 16;
		}
		info.local_port = static_cast<std::uint8_t>(number);
		info.link_width_enabled = ib::width_1x | ib::width_4x;
		info.link_width_supported = ib::width_1x | ib::width_4x;
		info.link_width_active = ib::width_4x;
		info.set_speed_supported(7);
		info.set_speed_enabled(7);
		info.set_speed_active(ib::speed_sdr);
		info.set_state(PortState::down);
		info.set_phys_state(PhysState::polling);
		info.set_down_default(static_cast<unsigned>(PhysState::polling));
		info.set_neighbor_mtu(config_.mtu);
		info.set_mtu_cap(config_.mtu);
		info.set_vl_cap(config_.vl_cap);
		info.set_operational_vls(1);
		info.vl_arb_high_cap = 8;
		info.vl_arb_low_cap = 8;
		info.phys_overrun_errors = 0x88;
		if (number == 0 && is_switch()) {
			/* A base switch port 0 has no link of its own, IBA 14.2.5.6. */
			info.set_state(PortState::active);
			info.set_phys_state(PhysState::link_up);
			info.set_speed_active(ib::speed_qdr);
		}
		for (auto &entry : port.vl_arb[0].entry)
			entry = {0, 0};
		port.vl_arb[0].entry[0] = {0, 64};
		port.vl_arb[2].entry[0] = {0, 64};
	}
	switch_info_.linear_fdb_cap = static_cast<std::uint16_t>(config_.lft_entries);
	switch_info_.multicast_fdb_cap = static_cast<std::uint16_t>(config_.mft_entries);
	switch_info_.lids_per_port = 0;
	switch_info_.partition_enforcement_cap = static_cast<std::uint16_t>(pkey_entries);
	switch_info_.enforcement_flags =
		ib::SwitchInfo::inbound_enforcement_cap | ib::SwitchInfo::outbound_enforcement_cap;
	switch_info_.set_life_time(18);
}

SubnetAgent::Outcome SubnetAgent::handle(ib::Smp &smp, unsigned in_port)
{
	Outcome outcome;
	const SmpRequest request = smp_request(smp.header);
	if (request == SmpRequest::foreign || request == SmpRequest::trap_repress ||
	    in_port >= ports_.size())
		return outcome;

	std::uint16_t status = ib::mad_status_bad_version;
	if (request != SmpRequest::bad_version) {
		std::lock_guard lock(mutex_);
		/* A wrong M_Key is not even answered, IBA 14.2.4. */
		PortData &guarded = key_port(in_port);
		if (!guarded.guard.admits(guarded.info, smp, false,
					  std::chrono::steady_clock::now()))
			return outcome;
		status = request == SmpRequest::set ? set(smp, in_port, outcome.after)
						    : get(smp, in_port);
	}
	make_answer(smp.header, status);
	outcome.reply = true;
	return outcome;
}

SubnetAgent::PortData &SubnetAgent::key_port(unsigned in_port)
{
	return ports_[is_switch() ? 0 : std::max(in_port, 1u)];
}

bool SubnetAgent::select_port(std::uint32_t modifier, unsigned in_port, unsigned &port) const
{
	port = modifier & 0xff;
	/* A CA's agent answers for the port addressed if the modifier is zero. */
	if (!is_switch() && port == 0)
		port = std::max(in_port, 1u);
	return port < ports_.size() && ports_[port].exists;
}

bool SubnetAgent::select_pkeys(std::uint32_t modifier, unsigned in_port, unsigned &port,
			       unsigned &block) const
{
	block = modifier & 0xffff;
	return select_port(is_switch() ? modifier >> 16 : 0, in_port, port) &&
	       block < ports_[port].pkeys.size() / pkeys_per_block;
}

bool SubnetAgent::select_vl_arbitration(std::uint32_t modifier, unsigned in_port, unsigned &port,
					unsigned &block) const
{
	block = vl_arbitration_block(modifier);
	return block < vl_arbitration_blocks && select_port(is_switch() ? modifier & 0xffff : 0, in_port, port);
}

std::uint16_t SubnetAgent::get(ib::Smp &smp, unsigned in_port)
{
	std::uint32_t modifier = smp.header.attr_mod;
	unsigned port = 0;
	unsigned block = 0;
	switch (smp.header.attr_id.value()) {
	case ib::attr_node_description:
		put_attribute(smp, description_);
		return ib::mad_status_ok;
	case ib::attr_node_info: {
		ib::NodeInfo info{};
		info.base_version = 1;
		info.class_version = 1;
		info.node_type = static_cast<std::uint8_t>(config_.type);
		info.num_ports = static_cast<std::uint8_t>(config_.ports);
		info.system_image_guid = config_.system_guid;
		info.node_guid = config_.node_guid;
		info.port_guid = key_port(in_port).guids.guid[0];
		info.partition_cap = static_cast<std::uint16_t>(key_port(in_port).pkeys.size());
		info.device_id = config_.device_id;
		info.revision = config_.revision;
		info.local_port = static_cast<std::uint8_t>(in_port);
		info.vendor_id = config_.vendor_id;
		put_attribute(smp, info);
		return ib::mad_status_ok;
	}
	case ib::attr_switch_info:
		if (!is_switch())
			return ib::mad_status_unsupported_method_attribute;
		put_attribute(smp, switch_info_);
		return ib::mad_status_ok;
	case ib::attr_guid_info:
		if (!select_port(0, in_port, port) || modifier != 0)
			return ib::mad_status_invalid_value;
		put_attribute(smp, ports_[port].guids);
		return ib::mad_status_ok;
	case ib::attr_port_info: {
		if (!select_port(modifier, in_port, port))
			return ib::mad_status_invalid_value;
		ib::PortInfo info = ports_[port].info;
		/* The port that the SMP came by, IBA 14.2.5.6. */
		info.local_port = static_cast<std::uint8_t>(in_port);
		MkeyGuard::conceal(info, smp.mkey);
		put_attribute(smp, info);
		return ib::mad_status_ok;
	}
	case ib::attr_pkey_table: {
		if (!select_pkeys(modifier, in_port, port, block))
			return ib::mad_status_invalid_value;
		ib::PkeyTable table;
		std::copy_n(ports_[port].pkeys.begin() + block * pkeys_per_block, pkeys_per_block,
			    table.pkey);
		put_attribute(smp, table);
		return ib::mad_status_ok;
	}
	case ib::attr_sl_to_vl: {
		ib::SlToVl table{};
		if (is_switch()) {
			if (!host_.read_sl_to_vl(modifier >> 8 & 0xff, modifier & 0xff, table))
				return ib::mad_status_invalid_value;
		} else {
			select_port(0, in_port, port);
			table = ports_[port].sl_to_vl;
		}
		put_attribute(smp, table);
		return ib::mad_status_ok;
	}
	case ib::attr_vl_arbitration:
		if (!select_vl_arbitration(modifier, in_port, port, block))
			return ib::mad_status_invalid_value;
		put_attribute(smp, ports_[port].vl_arb[block]);
		return ib::mad_status_ok;
	case ib::attr_linear_forwarding: {
		ib::LinearForwarding table;
		if (!is_switch())
			return ib::mad_status_unsupported_method_attribute;
		if (!host_.read_lft(modifier, table))
			return ib::mad_status_invalid_value;
		put_attribute(smp, table);
		return ib::mad_status_ok;
	}
	case ib::attr_multicast_forwarding: {
		ib::MulticastForwarding table;
		if (!is_switch())
			return ib::mad_status_unsupported_method_attribute;
		if (!host_.read_mft(modifier >> 28, modifier & 0x1ff, table))
			return ib::mad_status_invalid_value;
		put_attribute(smp, table);
		return ib::mad_status_ok;
	}
	default:
		return ib::mad_status_unsupported_method_attribute;
	}
}

std::uint16_t SubnetAgent::set(ib::Smp &smp, unsigned in_port, std::function<void()> &after)
{
	std::uint32_t modifier = smp.header.attr_mod;
	unsigned port = 0;
	unsigned block = 0;
	switch (smp.header.attr_id.value()) {
	case ib::attr_switch_info: {
		if (!is_switch())
			return ib::mad_status_unsupported_method_attribute;
		const auto &want = ib::smp_attribute<ib::SwitchInfo>(smp);
		if (want.linear_fdb_top >= config_.lft_entries)
			return ib::mad_status_invalid_value;
		switch_info_.linear_fdb_top = want.linear_fdb_top;
		switch_info_.multicast_fdb_top = want.multicast_fdb_top;
		switch_info_.default_port = want.default_port;
		switch_info_.default_mcast_primary_port = want.default_mcast_primary_port;
		switch_info_.default_mcast_not_primary_port = want.default_mcast_not_primary_port;
		switch_info_.set_life_time(want.life_time());
		/* Writing one clears the bit, IBA 14.2.5.4. */
		if (want.port_state_change())
			switch_info_.life_time_state_change &=
				static_cast<std::uint8_t>(~ib::SwitchInfo::state_change_bit);
		break;
	}
	case ib::attr_guid_info: {
		if (!select_port(0, in_port, port) || modifier != 0)
			return ib::mad_status_invalid_value;
		/* Entry 0 is burnt in. */
		const auto &want = ib::smp_attribute<ib::GuidInfo>(smp);
		std::copy_n(want.guid + 1, 7, ports_[port].guids.guid + 1);
		break;
	}
	case ib::attr_port_info:
		return set_port_info(smp, in_port, after);
	case ib::attr_pkey_table: {
		if (!select_pkeys(modifier, in_port, port, block))
			return ib::mad_status_invalid_value;
		const auto &want = ib::smp_attribute<ib::PkeyTable>(smp);
		std::copy_n(want.pkey, pkeys_per_block,
			    ports_[port].pkeys.begin() + block * pkeys_per_block);
		host_.pkeys_updated(port, ports_[port].pkeys);
		break;
	}
	case ib::attr_sl_to_vl: {
		const auto &want = ib::smp_attribute<ib::SlToVl>(smp);
		if (!is_switch()) {
			select_port(0, in_port, port);
			ports_[port].sl_to_vl = want;
		} else if (!host_.write_sl_to_vl(modifier >> 8 & 0xff, modifier & 0xff, want)) {
			return ib::mad_status_invalid_value;
		}
		break;
	}
	case ib::attr_vl_arbitration:
		if (!select_vl_arbitration(modifier, in_port, port, block))
			return ib::mad_status_invalid_value;
		ports_[port].vl_arb[block] = ib::smp_attribute<ib::VlArbitration>(smp);
		break;
	case ib::attr_linear_forwarding:
		if (!is_switch())
			return ib::mad_status_unsupported_method_attribute;
		if (!host_.write_lft(modifier, ib::smp_attribute<ib::LinearForwarding>(smp)))
			return ib::mad_status_invalid_value;
		break;
	case ib::attr_multicast_forwarding:
		if (!is_switch())
			return ib::mad_status_unsupported_method_attribute;
		if (!host_.write_mft(modifier >> 28, modifier & 0x1ff,
				     ib::smp_attribute<ib::MulticastForwarding>(smp)))
			return ib::mad_status_invalid_value;
		break;
	default:
		return ib::mad_status_unsupported_method_attribute;
	}
	return get(smp, in_port);
}

std::uint16_t SubnetAgent::set_port_info(ib::Smp &smp, unsigned in_port,
					 std::function<void()> &after)
{
	unsigned number = 0;
	if (!select_port(smp.header.attr_mod, in_port, number))
		return ib::mad_status_invalid_value;
	const ib::PortInfo want = ib::smp_attribute<ib::PortInfo>(smp);
	PortData &port = ports_[number];
	ib::PortInfo &info = port.info;
	bool management_port = is_switch() && number == 0;
	PortKind kind = !is_switch()    ? PortKind::channel_adapter
			: management_port ? PortKind::switch_management
					  : PortKind::switch_external;
	if (!port_info_valid(info, want, kind)) {
		get(smp, in_port);
		return ib::mad_status_invalid_value;
	}
	store_port_info(info, want, kind);
	if (kind != PortKind::switch_external)
		info.set_client_reregister(want.client_reregister());

	if (!management_port) {
		bool off = want.phys_state() == PhysState::disabled ||
			   want.phys_state() == PhysState::sleep;
		if (off)
			after = [this, number] { host_.enable_port(number, false); };
		else if (want.phys_state() == PhysState::polling &&
			 info.phys_state() != PhysState::link_up)
			after = [this, number] { host_.enable_port(number, true); };
		else if (want.state() == PortState::down)
			after = [this, number] { host_.retrain_port(number); };
		else if (want.state() != PortState::nop)
			info.set_state(want.state());
		if (off)
			info.set_phys_state(want.phys_state());
	}
	host_.port_updated(number, info);
	std::uint16_t status = get(smp, in_port);
	/* The order to reregister is passed on once, not stored. */
	info.set_client_reregister(false);
	return status;
}

ib::PortState SubnetAgent::link_changed(unsigned number, bool up, const LinkRate &rate, ib::Mtu mtu)
{
	std::lock_guard lock(mutex_);
	ib::PortInfo &info = ports_.at(number).info;
	if (up) {
		info.set_state(PortState::init);
		info.set_phys_state(PhysState::link_up);
		info.link_width_active = rate.width;
		info.set_speed_active(rate.speed);
		info.set_speed_ext(rate.speed_ext, rate.speed_ext);
		info.link_width_supported |= rate.width;
		info.link_width_enabled |= rate.width;
		info.set_mtu_cap(std::min(config_.mtu, mtu));
		info.set_neighbor_mtu(std::min(info.neighbor_mtu(), info.mtu_cap()));
	} else {
		info.set_state(PortState::down);
		if (info.phys_state() != PhysState::disabled &&
		    info.phys_state() != PhysState::sleep)
			info.set_phys_state(PhysState::polling);
	}
	if (is_switch())
		switch_info_.life_time_state_change |= ib::SwitchInfo::state_change_bit;
	host_.port_updated(number, info);
	return info.state();
}

ib::PortInfo SubnetAgent::port_info(unsigned port) const
{
	std::lock_guard lock(mutex_);
	return ports_.at(port).info;
}

void SubnetAgent::update_port_info(unsigned port, const std::function<void(ib::PortInfo &)> &change)
{
	std::lock_guard lock(mutex_);
	change(ports_.at(port).info);
	host_.port_updated(port, ports_[port].info);
}

std::optional<ib::Pkey> SubnetAgent::match_pkey(unsigned port, ib::Pkey pkey) const
{
	std::lock_guard lock(mutex_);
	for (ib::Pkey own : ports_.at(port).pkeys)
		if (ib::pkey_match(own, pkey))
			return own;
	return std::nullopt;
}

ib::SlToVl SubnetAgent::sl_to_vl(unsigned port) const
{
	std::lock_guard lock(mutex_);
	return ports_.at(port).sl_to_vl;
}

ib::SwitchInfo SubnetAgent::switch_info() const
{
	std::lock_guard lock(mutex_);
	return switch_info_;
}

} // namespace weft::fabric
