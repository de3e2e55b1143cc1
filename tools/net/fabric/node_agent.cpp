// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/node_agent.hpp"

#include <algorithm>
#include <utility>

namespace weft::fabric
{

NodeAgent::NodeAgent(Config config, SubnetAgentHost &host)
    : config_(std::move(config)), host_(host), ports_(make_ports()),
      agent_(config_.identity, managed(), host)
{
	ib::SwitchInfo &info = agent_.switch_info();
	info.linear_fdb_cap = static_cast<std::uint16_t>(config_.lft_entries);
	info.multicast_fdb_cap = static_cast<std::uint16_t>(config_.mft_entries);
	info.partition_enforcement_cap = static_cast<std::uint16_t>(ports_[0].pkeys.size());
	info.enforcement_flags =
		ib::SwitchInfo::inbound_enforcement_cap | ib::SwitchInfo::outbound_enforcement_cap;
	if (config_.optimized_sl_to_vl)
		info.life_time_state_change |= ib::SwitchInfo::optimized_sl_to_vl;
	info.set_life_time(18);
}

std::vector<ManagedPort> NodeAgent::make_ports() const
{
	std::vector<ManagedPort> ports;
	for (unsigned number = 0; number <= config_.ports; number++)
		ports.emplace_back(
			ManagedPort::Config{.kind = !is_switch()  ? PortKind::channel_adapter
						    : number == 0 ? PortKind::switch_management
								  : PortKind::switch_external,
					    .number = number,
					    .guid = config_.port_guids[std::min<std::size_t>(
						    number, config_.port_guids.size() - 1)],
					    .capability_mask = config_.capability_mask,
					    .mtu = config_.mtu,
					    .vl_cap = config_.vl_cap,
					    .pkey_entries = config_.pkey_entries});
	return ports;
}

std::vector<ManagedPort *> NodeAgent::managed()
{
	std::vector<ManagedPort *> all;
	for (ManagedPort &port : ports_)
		all.push_back(port.number() == 0 && !is_switch() ? nullptr : &port);
	return all;
}

SubnetAgent::Outcome NodeAgent::handle(ib::Smp &smp, unsigned in_port)
{
	const MutexLock lock(mutex_);
	return agent_.handle(smp, in_port);
}

void NodeAgent::link_changed(unsigned number, bool up, const LinkRate &rate, ib::Mtu mtu)
{
	const MutexLock lock(mutex_);
	ib::PortInfo &info = ports_.at(number).info;
	const ib::PortInfo before = info;
	if (up) {
		link_came_up(info, rate);
		info.set_mtu_cap(std::min(config_.mtu, mtu));
		info.set_neighbor_mtu(std::min(info.neighbor_mtu(), info.mtu_cap()));
	} else {
		link_went_down(info);
	}
	if (is_switch())
		agent_.switch_info().life_time_state_change |= ib::SwitchInfo::state_change_bit;
	host_.port_info_set(ports_.at(number), before, false);
}

ib::PortInfo NodeAgent::port_info(unsigned number) const
{
	const MutexLock lock(mutex_);
	return ports_.at(number).info;
}

void NodeAgent::update_port_info(unsigned number, const std::function<void(ib::PortInfo &)> &change)
{
	const MutexLock lock(mutex_);
	const ib::PortInfo before = ports_.at(number).info;
	change(ports_.at(number).info);
	host_.port_info_set(ports_.at(number), before, false);
}

std::optional<ib::Pkey> NodeAgent::match_pkey(unsigned number, ib::Pkey pkey) const
{
	const MutexLock lock(mutex_);
	for (ib::Pkey own : ports_.at(number).pkeys)
		if (ib::pkey_match(own, pkey))
			return own;
	return std::nullopt;
}

ib::SlToVl NodeAgent::sl_to_vl(unsigned number) const
{
	const MutexLock lock(mutex_);
	return ports_.at(number).sl_to_vl;
}

PortView NodeAgent::view(unsigned number) const
{
	const MutexLock lock(mutex_);
	return agent_.view(number);
}

} // namespace weft::fabric
