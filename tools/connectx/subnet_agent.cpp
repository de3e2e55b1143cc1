// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/subnet_agent.hpp"

#include <algorithm>
#include <cstring>

#include <hw/connectx/registers.hpp>

#include "connectx/port_events.hpp"
#include "fabric/smp_request.hpp"

namespace weft::connectx
{

namespace
{

constexpr std::uint32_t kMellanoxVendorId = 0x0002c9;
// Drivers take it for the revision of the chip; 0xa0 would switch large sends off.
constexpr std::uint32_t kRevision = 0xb0;

using fabric::guids_per_block;
using fabric::pkeys_per_block;
using fabric::put_attribute;
using fabric::vl_arbitration_block;

} // namespace

SubnetAgent::SubnetAgent(const NodeIdentity &identity,
			 const std::vector<std::unique_ptr<CardPort>> &ports, EventQueues &events,
			 Loop &loop, Host &host)
    : identity_(identity), ports_(ports), events_(events), host_(host)
{
	for (const auto &port : ports_)
		port_agents_.push_back(std::make_unique<PortAgent>(loop, *port, host_));
}

SubnetAgent::PortAgent::PortAgent(Loop &loop, const CardPort &port, Host &host)
    : traps(loop, port, [&host, number = port.number()](const ib::Smp &smp) {
	      host.send_to_manager(number, smp);
      })
{
}

CardPort *SubnetAgent::select(CardPort &addressed, std::uint32_t number) const
{
	if (number == 0)
		return &addressed;
	return number <= ports_.size() ? ports_[number - 1].get() : nullptr;
}

SubnetAgent::Verdict SubnetAgent::handle(unsigned number, ib::Smp &smp, ib::Lid slid,
					 bool ignore_mkey)
{
	using fabric::SmpRequest;
	const SmpRequest request = fabric::smp_request(smp.header);
	if (number == 0 || number > ports_.size() || request == SmpRequest::foreign)
		return Verdict::foreign;
	CardPort &port = *ports_[number - 1];
	PortAgent &agent = agent_of(port);

	std::uint16_t status = ib::mad_status_bad_version;
	if (request != SmpRequest::bad_version) {
		if (!agent.guard.admits(port.info(), smp, ignore_mkey, Clock::now())) {
			trap_mkey(port, smp, slid);
			return Verdict::denied;
		}
		if (request == SmpRequest::trap_repress)
			return agent.traps.repress(smp.header.tid) ? Verdict::repressed
								   : Verdict::foreign;
		status = request == SmpRequest::set ? set(port, smp)
						    : std::uint16_t{ib::mad_status_ok};
		// A Set is answered with what holds now.
		if (status == ib::mad_status_ok)
			status = get(port, smp);
	}
	fabric::make_answer(smp.header, status);
	return Verdict::answered;
}

std::uint16_t SubnetAgent::get(CardPort &port, ib::Smp &smp)
{
	const std::uint32_t modifier = smp.header.attr_mod;
	switch (smp.header.attr_id.value()) {
	case ib::attr_node_description: {
		ib::NodeDescription description{};
		std::memcpy(description.text, identity_.description.data(),
			    std::min(identity_.description.size(), sizeof(description.text)));
		put_attribute(smp, description);
		return ib::mad_status_ok;
	}
	case ib::attr_node_info: {
		ib::NodeInfo info{};
		info.base_version = ib::mad_base_version;
		info.class_version = 1;
		info.node_type = static_cast<std::uint8_t>(ib::NodeType::channel_adapter);
		info.num_ports = static_cast<std::uint8_t>(ports_.size());
		info.system_image_guid = identity_.system_image_guid;
		info.node_guid = identity_.node_guid;
		info.port_guid = port.guid();
		info.partition_cap = CardPort::kPkeys;
		info.device_id = hw::connectx::pci_device_id;
		info.revision = kRevision;
		info.local_port = static_cast<std::uint8_t>(port.number());
		info.vendor_id = kMellanoxVendorId;
		put_attribute(smp, info);
		return ib::mad_status_ok;
	}
	case ib::attr_guid_info: {
		if (modifier >= CardPort::kGids / guids_per_block)
			return ib::mad_status_invalid_value;
		ib::GuidInfo info{};
		std::copy_n(port.guids().begin() + modifier * guids_per_block, guids_per_block,
			    info.guid);
		put_attribute(smp, info);
		return ib::mad_status_ok;
	}
	case ib::attr_port_info: {
		const CardPort *chosen = select(port, modifier);
		if (!chosen)
			return ib::mad_status_invalid_value;
		ib::PortInfo info = chosen->info();
		info.local_port = static_cast<std::uint8_t>(port.number()); // the one it came by
		fabric::MkeyGuard::conceal(info, smp.mkey);
		put_attribute(smp, info);
		return ib::mad_status_ok;
	}
	case ib::attr_pkey_table: {
		const std::uint32_t block = modifier & 0xffff;
		if (block >= CardPort::kPkeys / pkeys_per_block)
			return ib::mad_status_invalid_value;
		ib::PkeyTable table{};
		std::copy_n(port.pkeys().begin() + block * pkeys_per_block, pkeys_per_block,
			    table.pkey);
		put_attribute(smp, table);
		return ib::mad_status_ok;
	}
	case ib::attr_sl_to_vl:
		put_attribute(smp, port.sl_to_vl());
		return ib::mad_status_ok;
	case ib::attr_vl_arbitration: {
		const std::uint32_t block = vl_arbitration_block(modifier);
		if (block >= port.vl_arbitration().size())
			return ib::mad_status_invalid_value;
		put_attribute(smp, port.vl_arbitration()[block]);
		return ib::mad_status_ok;
	}
	case ib::attr_mlnx_extended_port_info:
		// Asked for by drivers of a QDR port. No extended speed is active.
		if (!select(port, modifier))
			return ib::mad_status_invalid_value;
		std::memset(smp.data, 0, sizeof(smp.data));
		return ib::mad_status_ok;
	default:
		return ib::mad_status_unsupported_method_attribute;
	}
}

std::uint16_t SubnetAgent::set(CardPort &port, ib::Smp &smp)
{
	const std::uint32_t modifier = smp.header.attr_mod;
	switch (smp.header.attr_id.value()) {
	case ib::attr_guid_info:
		return set_guids(port, modifier, ib::smp_attribute<ib::GuidInfo>(smp));
	case ib::attr_port_info: {
		CardPort *chosen = select(port, modifier);
		return chosen ? set_port_info(*chosen, ib::smp_attribute<ib::PortInfo>(smp))
			      : std::uint16_t{ib::mad_status_invalid_value};
	}
	case ib::attr_pkey_table:
		return set_pkeys(port, modifier & 0xffff, ib::smp_attribute<ib::PkeyTable>(smp));
	case ib::attr_sl_to_vl:
		port.sl_to_vl() = ib::smp_attribute<ib::SlToVl>(smp);
		host_.port_changed(port.number());
		return ib::mad_status_ok;
	case ib::attr_vl_arbitration: {
		const std::uint32_t block = vl_arbitration_block(modifier);
		if (block >= port.vl_arbitration().size())
			return ib::mad_status_invalid_value;
		port.vl_arbitration()[block] = ib::smp_attribute<ib::VlArbitration>(smp);
		return ib::mad_status_ok;
	}
	case ib::attr_mlnx_extended_port_info:
		return ib::mad_status_ok; // nothing in it can be changed
	default:
		return ib::mad_status_unsupported_method_attribute;
	}
}

std::uint16_t SubnetAgent::set_guids(CardPort &port, std::uint32_t block, const ib::GuidInfo &info)
{
	if (block >= CardPort::kGids / guids_per_block)
		return ib::mad_status_invalid_value;
	std::uint32_t changed = 0;
	for (unsigned i = 0; i < guids_per_block; ++i) {
		ib::Guid &guid = port.guids()[block * guids_per_block + i];
		// The first of the table is burnt in (IBA 14.2.5.5).
		if ((block == 0 && i == 0) || guid == info.guid[i])
			continue;
		guid = info.guid[i];
		changed |= 1u << i;
	}
	if (changed) {
		host_.port_changed(port.number());
		raise_guid_info(events_, port.number(), block, changed);
	}
	return ib::mad_status_ok;
}

std::uint16_t SubnetAgent::set_pkeys(CardPort &port, std::uint32_t block,
				     const ib::PkeyTable &table)
{
	if (block >= CardPort::kPkeys / pkeys_per_block)
		return ib::mad_status_invalid_value;
	std::uint32_t changed = 0;
	for (unsigned i = 0; i < pkeys_per_block; ++i) {
		std::uint16_t &pkey = port.pkeys()[block * pkeys_per_block + i];
		if (pkey == table.pkey[i])
			continue;
		pkey = table.pkey[i];
		changed |= 1u << i;
	}
	if (changed) {
		host_.port_changed(port.number());
		raise_pkey_table(events_, port.number(), block, changed);
	}
	return ib::mad_status_ok;
}

void SubnetAgent::set_state(CardPort &port, ib::PortState state)
{
	const bool was_active = port.active();
	if (port.state() == state)
		return;
	port.info().set_state(state);
	host_.port_changed(port.number());
	if (was_active != port.active())
		raise_port_state(events_, port.number(), port.active());
}

} // namespace weft::connectx
