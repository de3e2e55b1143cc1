// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/subnet_agent.hpp"

namespace weft::hca
{

namespace
{

std::vector<fabric::ManagedPort *> managed(const std::vector<std::unique_ptr<CardPort>> &ports)
{
	std::vector<fabric::ManagedPort *> all{nullptr};
	for (const auto &port : ports)
		all.push_back(&port->managed());
	return all;
}

// Returns the changes of which the driver is notified.
std::uint32_t differences(const ib::PortInfo &before, const ib::PortInfo &now)
{
	std::uint32_t changed = 0;
	if (before.sm_lid != now.sm_lid)
		changed |= port_info_changed::kSmLid;
	if (before.gid_prefix != now.gid_prefix)
		changed |= port_info_changed::kGidPrefix;
	if (before.lid != now.lid || before.lmc() != now.lmc())
		changed |= port_info_changed::kLid;
	if (before.sm_sl() != now.sm_sl())
		changed |= port_info_changed::kSmSl;
	return changed;
}

} // namespace

SubnetAgent::SubnetAgent(const fabric::NodeIdentity &identity,
			 const std::vector<std::unique_ptr<CardPort>> &ports, Loop &loop,
			 Host &host)
    : ports_(ports), loop_(loop), host_(host), agent_(identity, managed(ports), *this)
{
	for (const auto &port : ports_)
		traps_.push_back(std::make_unique<TrapSender>(
			loop, *port, [&host, number = port->number()](const ib::Smp &smp) {
				host.send_to_manager(number, smp);
			}));
}

SubnetAgent::Verdict SubnetAgent::handle(unsigned number, ib::Smp &smp, ib::Lid slid,
					 bool ignore_mkey)
{
	const fabric::SubnetAgent::Outcome outcome = agent_.handle(smp, number, ignore_mkey);
	switch (outcome.verdict) {
	case fabric::SubnetAgent::Verdict::answered:
		if (outcome.link != fabric::LinkOrder::none)
			host_.order_link(outcome.port, outcome.link);
		return Verdict::answered;
	case fabric::SubnetAgent::Verdict::denied:
		trap_mkey(*ports_[number - 1], smp, slid);
		return Verdict::denied;
	case fabric::SubnetAgent::Verdict::trap_repress:
		return traps_of(*ports_[number - 1]).repress(smp.header.tid) ? Verdict::repressed
									     : Verdict::foreign;
	case fabric::SubnetAgent::Verdict::foreign:
		break;
	}
	return Verdict::foreign;
}

// Addresses are reported first, because drivers read them when they are notified that the port is
// active.
void SubnetAgent::port_info_set(const fabric::ManagedPort &port, const ib::PortInfo &before,
				bool reregister)
{
	const std::uint32_t changed = differences(before, port.info) |
				      (reregister ? port_info_changed::kClientReregister : 0);
	if (changed) {
		host_.port_changed(port.number());
		host_.port_info_changed(port.number(), changed);
	}
	report_state(port.number(), before, port.info);
}

void SubnetAgent::pkeys_set(const fabric::ManagedPort &port, unsigned block, std::uint32_t changed)
{
	host_.port_changed(port.number());
	host_.pkeys_changed(port.number(), block, changed);
}

void SubnetAgent::guids_set(const fabric::ManagedPort &port, std::uint32_t changed)
{
	host_.port_changed(port.number());
	host_.guids_changed(port.number(), 0, changed);
}

void SubnetAgent::sl_to_vl_set(const fabric::ManagedPort &port)
{
	host_.port_changed(port.number());
}

void SubnetAgent::report_state(unsigned port, const ib::PortInfo &before, const ib::PortInfo &now)
{
	if (before.state() == now.state())
		return;
	host_.port_changed(port);
	const bool active = now.state() == ib::PortState::active;
	if (active != (before.state() == ib::PortState::active))
		host_.port_state_changed(port, active);
}

void SubnetAgent::link_changed(CardPort &port, bool was_down)
{
	const fabric::Port &end = port.fabric_port();
	ib::PortInfo &info = port.info();
	ib::PortInfo before = info;
	if (was_down || !end.link_up()) {
		fabric::link_went_down(info);
		report_state(port.number(), before, info);
		before = info;
	}
	if (end.link_up() && port.state() == ib::PortState::down) {
		fabric::link_came_up(info, end.rate());
		report_state(port.number(), before, info);
	}
}

void SubnetAgent::port_closed(CardPort &port)
{
	const ib::PortInfo before = port.info();
	port.info().set_phys_state(ib::PhysState::disabled);
	port.info().set_state(ib::PortState::down);
	traps_of(port).clear();
	report_state(port.number(), before, port.info());
}

} // namespace weft::hca
