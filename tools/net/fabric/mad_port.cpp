// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/mad_port.hpp"

#include <algorithm>
#include <utility>

#include <ib/smi.hpp>

#include "net/fabric/perf_agent.hpp"

namespace weft::fabric
{

namespace
{

/*
 * Limit of MADs that wait for credit. MADs beyond it are dropped, which is permitted because MADs
 * are unreliable.
 */
constexpr std::size_t kWaitingMax = 4096;

NodeAgent::Config agent_config(const MadPort::Config &config)
{
	NodeAgent::Config agent;
	agent.identity.node_guid = config.node_guid;
	agent.identity.system_image_guid = config.node_guid;
	agent.identity.vendor_id = 0x0002c9;
	agent.identity.description = config.description;
	agent.port_guids = {config.node_guid, config.node_guid + 1};
	agent.capability_mask = ib::port_cap_trap | ib::port_cap_notice | ib::port_cap_sl_mapping |
				ib::port_cap_system_image_guid |
				ib::port_cap_client_reregistration |
				(config.is_sm ? std::uint32_t{ib::port_cap_is_sm} : 0u);
	agent.mtu = config.mtu;
	return agent;
}

} // namespace

MadPort::MadPort(Port &port, const Config &config, Handlers handlers)
    : port_(port), config_(config), handlers_(std::move(handlers)),
      agent_(agent_config(config), *this), egress_(port)
{
	port_.attach(*this);
	port_.enable();
}

MadPort::~MadPort()
{
	port_.detach();
}

ib::Gid MadPort::gid() const
{
	return ib::Gid::from_parts(port_info().gid_prefix, config_.node_guid + 1);
}

bool MadPort::has_lid(ib::Lid lid) const
{
	ib::PortInfo info = port_info();
	return info.lid != 0 && lid >= info.lid && lid < info.lid + (1u << info.lmc());
}

void MadPort::set_is_sm(bool is_sm)
{
	agent_.update_port_info(1, [&](ib::PortInfo &info) {
		std::uint32_t mask = info.capability_mask & ~std::uint32_t{ib::port_cap_is_sm};
		info.capability_mask = is_sm ? mask | ib::port_cap_is_sm : mask;
	});
}

bool MadPort::send_directed(const ib::Smp &original)
{
	ib::Smp smp = original;
	if (smp.header.cls() != ib::MgmtClass::subn_directed_route)
		return false;
	ib::SmiDecision decision =
		smp.header.is_response() ? ib::smi_return(smp, 1) : ib::smi_start(smp);
	switch (decision.action) {
	case ib::SmiAction::local:
		loop_back(smp);
		return true;
	case ib::SmiAction::forward:
		return decision.port == 1 &&
		       transmit(make_mad_packet(MadAddress{},
						reinterpret_cast<const ib::Mad &>(smp)));
	default:
		return false;
	}
}

void MadPort::send_mad(const MadAddress &address, std::uint8_t path_bits, const ib::Mad &mad)
{
	const auto &smp = reinterpret_cast<const ib::Smp &>(mad);
	if (mad.header.cls() == ib::MgmtClass::subn_directed_route && !begins_by_lid(smp)) {
		if (answers_itself(smp))
			deliver({MadAddress{}, mad});
		else
			send_directed(smp);
		return;
	}
	const ib::PortInfo info = port_info();
	const auto path_mask = (1u << info.lmc()) - 1;
	send_from(static_cast<ib::Lid>(info.lid | (path_bits & path_mask)), address, mad);
}

void MadPort::describe(std::function<void(PortView &&)> done)
{
	done(agent_.view(1));
}

bool MadPort::send(MadAddress address, const ib::Mad &mad)
{
	return send_from(port_info().lid, std::move(address), mad);
}

bool MadPort::send_from(ib::Lid slid, MadAddress address, const ib::Mad &mad)
{
	ib::PortInfo info = port_info();
	address.slid = slid;
	bool smp = address.src_qp == ib::qpn_smi;
	address.vl = smp ? ib::vl_management : agent_.sl_to_vl(1).vl(address.sl);
	if (!smp) {
		if (address.qkey == 0)
			address.qkey = ib::qkey_gsi;
		/*
		 * Responses use the port's own key, too: a limited member may have sent a request
		 * with a limited key.
		 */
		const auto own = own_pkey(address.pkey);
		if (!own)
			return false;
		address.pkey = *own;
	}
	if (has_lid(address.dlid)) {
		AddressedMad own{address, mad};
		if (smp)
			handle_smp(std::move(own));
		else
			handle_gmp(std::move(own));
		return true;
	}
	if (!smp && info.state() != ib::PortState::active)
		return false;
	return transmit(make_mad_packet(address, mad));
}

bool MadPort::transmit(Packet &&packet)
{
	switch (egress_.send(std::move(packet), kWaitingMax)) {
	case EgressQueue::Result::dropped:
		Counters::add(port_.counters().xmit_discards);
		return false;
	case EgressQueue::Result::link_down:
		return false;
	default:
		return true;
	}
}

void MadPort::loop_back(const ib::Smp &original)
{
	AddressedMad mad{MadAddress{}, reinterpret_cast<const ib::Mad &>(original)};
	auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
	const SubnetAgent::Outcome outcome = agent_.handle(smp, 1);
	if (outcome.verdict == SubnetAgent::Verdict::answered)
		smp.header.status =
			static_cast<std::uint16_t>(smp.header.status | ib::mad_status_direction);
	deliver(std::move(mad));
	carry_out(outcome.link, port_, port_info());
}

void MadPort::receive(Packet &&arriving)
{
	Packet packet(std::move(arriving));
	auto mad = mad_of_packet(packet);
	if (!mad)
		return;
	packet.release_credit();
	bool smi = mad->address.dest_qp == ib::qpn_smi;
	if (smi != mad->mad.header.is_smp())
		return;
	if (smi) {
		if (mad->address.vl == ib::vl_management)
			handle_smp(std::move(*mad));
		return;
	}
	if (mad->address.qkey != ib::qkey_gsi || !own_pkey(mad->address.pkey))
		return;
	handle_gmp(std::move(*mad));
}

void MadPort::handle_gmp(AddressedMad &&mad)
{
	if (mad.mad.header.cls() == ib::MgmtClass::perf && !mad.mad.header.is_response()) {
		auto &perf = reinterpret_cast<ib::PerfMad &>(mad.mad);
		if (answer_perf_mad(perf, 1, [this](unsigned) { return &port_.counters(); }))
			send(mad.address.reversed(), mad.mad);
		return;
	}
	if (receiver_.offer(mad))
		return;
	/* The subnet manager supports only the class of the SA. */
	if (handlers_.received &&
	    (!config_.is_sm || mad.mad.header.cls() == ib::MgmtClass::subn_adm))
		handlers_.received(std::move(mad));
	else if (refuse_request(mad.mad.header))
		send(mad.address.reversed(), mad.mad);
}

void MadPort::deliver(AddressedMad &&mad)
{
	if (!receiver_.offer(mad) && handlers_.received)
		handlers_.received(std::move(mad));
}

void MadPort::handle_smp(AddressedMad &&mad)
{
	auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
	bool directed = smp.header.cls() == ib::MgmtClass::subn_directed_route;
	if (directed && ib::smi_receive(smp, false, 1, 1).action != ib::SmiAction::local)
		return;
	const SubnetAgent::Outcome outcome = agent_.handle(smp, 1);
	switch (outcome.verdict) {
	case SubnetAgent::Verdict::answered:
		break;
	case SubnetAgent::Verdict::denied:
		return;
	case SubnetAgent::Verdict::foreign:
	case SubnetAgent::Verdict::trap_repress:
		deliver(std::move(mad));
		return;
	}
	if (!directed)
		send(mad.address.reversed(), mad.mad);
	else if (ib::smi_return(smp, 1).action == ib::SmiAction::forward)
		transmit(make_mad_packet(MadAddress{}, mad.mad));
	carry_out(outcome.link, port_, port_info());
}

void MadPort::link_changed(bool up)
{
	agent_.link_changed(1, up, port_.rate(), port_.mtu_cap());
	receiver_.port_changed();
	if (handlers_.port_changed)
		handlers_.port_changed();
}

void MadPort::port_info_set(const ManagedPort &, const ib::PortInfo &, bool)
{
	receiver_.port_changed();
	if (handlers_.port_changed)
		handlers_.port_changed();
}

} // namespace weft::fabric
