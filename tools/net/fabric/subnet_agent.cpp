// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/subnet_agent.hpp"

#include <algorithm>
#include <utility>

#include "net/fabric/smp_request.hpp"

namespace weft::fabric
{

namespace
{

/* Stores a block of a table; returns a bit for each entry that has changed. */
template<class Entry>
std::uint32_t store_block(Entry *entries, const Entry *wanted, unsigned first, unsigned count)
{
	std::uint32_t changed = 0;
	for (unsigned i = first; i < count; i++) {
		if (entries[i].raw() == wanted[i].raw())
			continue;
		entries[i] = wanted[i];
		changed |= 1u << i;
	}
	return changed;
}

constexpr std::uint16_t ok_if(bool there_is)
{
	return there_is ? ib::mad_status_ok : ib::mad_status_invalid_value;
}

} // namespace

SubnetAgent::SubnetAgent(const NodeIdentity &identity, std::vector<ManagedPort *> ports,
			 SubnetAgentHost &host)
    : identity_(identity), ports_(std::move(ports)), host_(host)
{
}

SubnetAgent::Outcome SubnetAgent::handle(ib::Smp &smp, unsigned in_port, bool own)
{
	Outcome outcome;
	const SmpRequest request = smp_request(smp.header);
	if (request == SmpRequest::foreign || in_port >= ports_.size() || !ports_[in_port])
		return outcome;

	std::uint16_t status = ib::mad_status_bad_version;
	if (request != SmpRequest::bad_version) {
		ManagedPort &guarded = node_port(in_port);
		if (!guarded.guard.admits(guarded.info, smp, own, host_.now())) {
			outcome.verdict = Verdict::denied;
			return outcome;
		}
		if (request == SmpRequest::trap_repress) {
			outcome.verdict = Verdict::trap_repress;
			return outcome;
		}
		status = request == SmpRequest::set ? set(smp, in_port, outcome)
						    : std::uint16_t{ib::mad_status_ok};
		/* The response to a Set contains the values that are valid now. */
		if (status == ib::mad_status_ok)
			status = get(smp, in_port);
	}
	make_answer(smp.header, status);
	outcome.verdict = Verdict::answered;
	return outcome;
}

ManagedPort *SubnetAgent::select_port(unsigned number, unsigned in_port)
{
	if (!is_switch() && number == 0)
		number = in_port;
	return number < ports_.size() ? ports_[number] : nullptr;
}

ManagedPort *SubnetAgent::select_pkeys(std::uint32_t modifier, unsigned in_port, unsigned &block)
{
	ManagedPort *const port = select_port(is_switch() ? modifier >> 16 : 0, in_port);
	block = modifier & 0xffff;
	return port && block < port->pkeys.size() / kPkeysPerBlock ? port : nullptr;
}

ManagedPort *SubnetAgent::select_vl_arbitration(std::uint32_t modifier, unsigned in_port,
						unsigned &block)
{
	/* Block numbers start at 1. */
	block = (modifier >> 16) - 1;
	return block < kVlArbitrationBlocks
		       ? select_port(is_switch() ? modifier & 0xffff : 0, in_port)
		       : nullptr;
}

ib::NodeInfo SubnetAgent::node_info(unsigned in_port) const
{
	const ManagedPort &port = node_port(in_port);
	ib::NodeInfo info{};
	info.base_version = ib::mad_base_version;
	info.class_version = 1;
	info.node_type = static_cast<std::uint8_t>(identity_.type);
	info.num_ports = static_cast<std::uint8_t>(ports_.size() - 1);
	info.system_image_guid = identity_.system_image_guid;
	info.node_guid = identity_.node_guid;
	info.port_guid = port.guids[0];
	info.partition_cap = static_cast<std::uint16_t>(port.pkeys.size());
	info.device_id = identity_.device_id;
	info.revision = identity_.revision;
	info.local_port = static_cast<std::uint8_t>(in_port);
	info.vendor_id = identity_.vendor_id;
	return info;
}

PortView SubnetAgent::view(unsigned number) const
{
	const ManagedPort &port = *ports_[number];
	PortView view;
	view.node = node_info(number);
	view.port = port.info;
	view.pkeys.assign(port.pkeys.begin(), port.pkeys.end());
	std::ranges::copy(port.guids, view.guids.begin());
	return view;
}

std::uint16_t SubnetAgent::get(ib::Smp &smp, unsigned in_port)
{
	const std::uint32_t modifier = smp.header.attr_mod;
	unsigned block = 0;
	const auto answer = [&smp](const auto &attribute) {
		put_attribute(smp, attribute);
		return std::uint16_t{ib::mad_status_ok};
	};
	switch (smp.header.attr_id.value()) {
	case ib::attr_node_description: {
		/* The description has no terminating zero if all bytes are used. */
		ib::NodeDescription description{};
		identity_.description.copy(description.text, sizeof(description.text));
		return answer(description);
	}
	case ib::attr_node_info:
		return answer(node_info(in_port));
	case ib::attr_guid_info: {
		const ManagedPort *const port = select_port(0, in_port);
		if (!port || modifier != 0)
			return ib::mad_status_invalid_value;
		ib::GuidInfo info;
		std::ranges::copy(port->guids, info.guid);
		return answer(info);
	}
	case ib::attr_port_info: {
		const ManagedPort *const port = select_port(modifier, in_port);
		if (!port)
			return ib::mad_status_invalid_value;
		ib::PortInfo info = port->info;
		/* The port by which the SMP arrived (IBA 14.2.5.6). */
		info.local_port = static_cast<std::uint8_t>(in_port);
		MkeyGuard::conceal(info, smp.mkey);
		return answer(info);
	}
	case ib::attr_pkey_table: {
		const ManagedPort *const port = select_pkeys(modifier, in_port, block);
		if (!port)
			return ib::mad_status_invalid_value;
		ib::PkeyTable table;
		std::copy_n(port->pkeys.begin() + block * kPkeysPerBlock, kPkeysPerBlock,
			    table.pkey);
		return answer(table);
	}
	case ib::attr_sl_to_vl: {
		ib::SlToVl table{};
		if (!is_switch())
			table = ports_[in_port]->sl_to_vl;
		else if (!host_.read_sl_to_vl(modifier >> 8 & 0xff, modifier & 0xff, table))
			return ib::mad_status_invalid_value;
		return answer(table);
	}
	case ib::attr_vl_arbitration: {
		const ManagedPort *const port = select_vl_arbitration(modifier, in_port, block);
		return port ? answer(port->vl_arbitration[block])
			    : std::uint16_t{ib::mad_status_invalid_value};
	}
	case ib::attr_mlnx_extended_port_info:
		if (!identity_.extended_port_info)
			break;
		return select_port(modifier, in_port)
			       ? answer(ib::NodeDescription{}) /* the whole attribute is zero */
			       : std::uint16_t{ib::mad_status_invalid_value};
	case ib::attr_switch_info:
		if (!is_switch())
			break;
		return answer(switch_info_);
	case ib::attr_linear_forwarding: {
		if (!is_switch())
			break;
		ib::LinearForwarding table{};
		return host_.read_lft(modifier, table)
			       ? answer(table)
			       : std::uint16_t{ib::mad_status_invalid_value};
	}
	case ib::attr_multicast_forwarding: {
		if (!is_switch())
			break;
		ib::MulticastForwarding table{};
		return host_.read_mft(modifier >> 28, modifier & 0x1ff, table)
			       ? answer(table)
			       : std::uint16_t{ib::mad_status_invalid_value};
	}
	default:
		break;
	}
	return ib::mad_status_unsupported_method_attribute;
}

std::uint16_t SubnetAgent::set(const ib::Smp &smp, unsigned in_port, Outcome &outcome)
{
	const std::uint32_t modifier = smp.header.attr_mod;
	unsigned block = 0;
	switch (smp.header.attr_id.value()) {
	case ib::attr_guid_info: {
		ManagedPort *const port = select_port(0, in_port);
		return port && modifier == 0
			       ? set_guids(*port, ib::smp_attribute<ib::GuidInfo>(smp))
			       : std::uint16_t{ib::mad_status_invalid_value};
	}
	case ib::attr_port_info: {
		ManagedPort *const port = select_port(modifier, in_port);
		return port ? set_port_info(*port, ib::smp_attribute<ib::PortInfo>(smp), outcome)
			    : std::uint16_t{ib::mad_status_invalid_value};
	}
	case ib::attr_pkey_table: {
		ManagedPort *const port = select_pkeys(modifier, in_port, block);
		if (port)
			set_pkeys(*port, block, ib::smp_attribute<ib::PkeyTable>(smp));
		return ok_if(port);
	}
	case ib::attr_sl_to_vl: {
		const auto &table = ib::smp_attribute<ib::SlToVl>(smp);
		if (is_switch())
			return ok_if(set_sl_to_vl(modifier, table));
		ports_[in_port]->sl_to_vl = table;
		host_.sl_to_vl_set(*ports_[in_port]);
		return ib::mad_status_ok;
	}
	case ib::attr_vl_arbitration: {
		ManagedPort *const port = select_vl_arbitration(modifier, in_port, block);
		if (port)
			port->vl_arbitration[block] = ib::smp_attribute<ib::VlArbitration>(smp);
		return ok_if(port);
	}
	case ib::attr_mlnx_extended_port_info:
		/* A Set has no effect, because no field can be changed. */
		if (!identity_.extended_port_info)
			break;
		return ib::mad_status_ok;
	case ib::attr_switch_info:
		if (!is_switch())
			break;
		return set_switch_info(ib::smp_attribute<ib::SwitchInfo>(smp));
	case ib::attr_linear_forwarding:
		if (!is_switch())
			break;
		return ok_if(
			host_.write_lft(modifier, ib::smp_attribute<ib::LinearForwarding>(smp)));
	case ib::attr_multicast_forwarding:
		if (!is_switch())
			break;
		return ok_if(host_.write_mft(modifier >> 28, modifier & 0x1ff,
					     ib::smp_attribute<ib::MulticastForwarding>(smp)));
	default:
		break;
	}
	return ib::mad_status_unsupported_method_attribute;
}

/*
 * For switches: sets the table of an input and an output port, or of all of either (IBA 14.2.5.8).
 */
bool SubnetAgent::set_sl_to_vl(std::uint32_t modifier, const ib::SlToVl &table)
{
	const auto ports = static_cast<unsigned>(ports_.size());
	unsigned in = modifier >> 8 & 0xff, out = modifier & 0xff;
	unsigned in_end = in + 1, out_end = out + 1;
	const bool optimized =
		(switch_info_.life_time_state_change & ib::SwitchInfo::optimized_sl_to_vl) != 0;
	if (optimized && (modifier & ib::sl_to_vl_all_inputs) != 0)
		in = 0, in_end = ports;
	if (optimized && (modifier & ib::sl_to_vl_all_outputs) != 0)
		out = 0, out_end = ports;
	for (; in < in_end; in++)
		for (unsigned each = out; each < out_end; each++)
			if (!host_.write_sl_to_vl(in, each, table))
				return false;
	return true;
}

std::uint16_t SubnetAgent::set_switch_info(const ib::SwitchInfo &wanted)
{
	if (wanted.linear_fdb_top >= switch_info_.linear_fdb_cap)
		return ib::mad_status_invalid_value;
	switch_info_.linear_fdb_top = wanted.linear_fdb_top;
	switch_info_.multicast_fdb_top = wanted.multicast_fdb_top;
	switch_info_.default_port = wanted.default_port;
	switch_info_.default_mcast_primary_port = wanted.default_mcast_primary_port;
	switch_info_.default_mcast_not_primary_port = wanted.default_mcast_not_primary_port;
	switch_info_.set_life_time(wanted.life_time());
	/* Writing one clears the bit, IBA 14.2.5.4. */
	if (wanted.port_state_change())
		switch_info_.life_time_state_change &=
			static_cast<std::uint8_t>(~ib::SwitchInfo::state_change_bit);
	return ib::mad_status_ok;
}

std::uint16_t SubnetAgent::set_guids(ManagedPort &port, const ib::GuidInfo &wanted)
{
	/* The first GUID is read-only (IBA 14.2.5.5). */
	const std::uint32_t changed =
		store_block(port.guids.data(), wanted.guid, 1, kGuidsPerBlock);
	if (changed != 0)
		host_.guids_set(port, changed);
	return ib::mad_status_ok;
}

void SubnetAgent::set_pkeys(ManagedPort &port, unsigned block, const ib::PkeyTable &wanted)
{
	const std::uint32_t changed = store_block(port.pkeys.data() + block * kPkeysPerBlock,
						  wanted.pkey, 0, kPkeysPerBlock);
	if (changed != 0)
		host_.pkeys_set(port, block, changed);
}

std::uint16_t SubnetAgent::set_port_info(ManagedPort &port, const ib::PortInfo &wanted,
					 Outcome &outcome)
{
	if (!port_info_valid(port.info, wanted, port.kind))
		return ib::mad_status_invalid_value;
	const ib::PortInfo before = port.info;
	store_port_info(port.info, wanted, port.kind);
	if (port.kind != PortKind::switch_management) {
		outcome.link = set_port_states(port.info, wanted);
		if (outcome.link == LinkOrder::none &&
		    enabled_rates(before) != enabled_rates(port.info))
			outcome.link = LinkOrder::enable_rates;
		outcome.port = port.number();
	}
	host_.port_info_set(port, before,
			    port.kind != PortKind::switch_external && wanted.client_reregister());
	return ib::mad_status_ok;
}

void carry_out(LinkOrder order, Port &port, const ib::PortInfo &info)
{
	if (order != LinkOrder::none)
		port.enable_rates(enabled_rates(info));
	switch (order) {
	case LinkOrder::none:
	case LinkOrder::enable_rates:
		break;
	case LinkOrder::train:
		if (port.enabled())
			port.retrain();
		else
			port.enable();
		break;
	case LinkOrder::disable:
		port.disable();
		break;
	}
}

} // namespace weft::fabric
