// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/program_ports.hpp"

#include <algorithm>
#include <utility>

#include <ib/smi.hpp>

#include "net/fabric/mad_packet.hpp"
#include "net/fabric/smp_request.hpp"

namespace weft::hca
{

namespace
{

// Limits of programs' MADs that wait for the card's loop, and that wait for credit. MADs beyond
// them are dropped, which is permitted because MADs are unreliable.
constexpr std::size_t kMostOutgoing = 16384;
constexpr std::size_t kMostWaiting = 4096;
// Number of MADs that are sent before the loop runs other tasks.
constexpr std::size_t kSlice = 64;

// Returns true for requests that only the node's agent handles. On an mthca card, the guest's
// driver passes them to the agent.
bool is_for_agent(const ib::MadHeader &header)
{
	const fabric::SmpRequest request = fabric::smp_request(header);
	return request != fabric::SmpRequest::foreign;
}

// The node of an agent to which no SMPs are passed.
class Unchanged final : public fabric::SubnetAgentHost
{
	Clock::time_point now() const override { return {}; }
	void port_info_set(const fabric::ManagedPort &, const ib::PortInfo &, bool) override {}
};

} // namespace

ProgramPort::ProgramPort(fabric::PortView at_power_on) : at_power_on_(std::move(at_power_on)) {}

/* --------------------------------------------------------------------------- on any thread */

void ProgramPort::send_mad(const fabric::MadAddress &address, std::uint8_t path_bits,
			   const ib::Mad &mad)
{
	const MutexLock lock(mutex_);
	if (!connected_ || outgoing_.size() >= kMostOutgoing)
		return;
	outgoing_.push_back({address, path_bits, mad});
	connection_->wakeup.signal();
}

void ProgramPort::describe(std::function<void(fabric::PortView &&)> done)
{
	{
		const MutexLock lock(mutex_);
		if (connected_) {
			asked_.push_back(std::move(done));
			connection_->wakeup.signal();
			return;
		}
	}
	done(fabric::PortView(at_power_on_));
}

void ProgramPort::set_is_sm(bool is_sm)
{
	const MutexLock lock(mutex_);
	is_sm_ = is_sm;
	if (connected_)
		connection_->wakeup.signal();
}

/* ------------------------------------------------------------------------ on the card's loop */

void ProgramPort::connect(Loop &loop, CardPort &port, Transport &transport, SubnetAgent &subnet)
{
	{
		const MutexLock lock(mutex_);
		connection_.emplace(loop, port, transport, subnet, [this] { work(); });
		connected_ = true;
		connection_->wakeup.signal();
	}
	changed();
}

void ProgramPort::disconnect()
{
	std::vector<std::function<void(fabric::PortView &&)>> asked;
	{
		const MutexLock lock(mutex_);
		connected_ = false;
		outgoing_.clear();
		asked.swap(asked_);
	}
	batch_.clear();
	next_ = 0;
	connection_.reset();
	for (const auto &done : asked)
		done(fabric::PortView(at_power_on_));
	changed();
}

void ProgramPort::drop()
{
	const MutexLock lock(mutex_);
	outgoing_.clear();
	batch_.clear();
	next_ = 0;
}

bool ProgramPort::offer(const fabric::Packet &packet)
{
	if (!connection_ || receiver_.empty())
		return false;
	auto mad = fabric::mad_of_packet(packet);
	if (!mad || mad->mad.header.is_smp() != (mad->address.dest_qp == ib::qpn_smi))
		return false;
	if (mad->address.dest_qp == ib::qpn_smi) {
		if (is_for_agent(mad->mad.header) || !has_arrived(mad->mad))
			return false;
	} else if (mad->address.qkey != ib::qkey_gsi ||
		   connection_->port.find_pkey(mad->address.pkey) < 0) {
		return false; // a P_Key violation, which the driver's QP1 reports
	}
	return receiver_.offer(*mad);
}

bool ProgramPort::has_arrived(ib::Mad &mad) const
{
	if (mad.header.cls() != ib::MgmtClass::subn_directed_route)
		return true;
	const auto number = static_cast<std::uint8_t>(connection_->port.number());
	return ib::smi_receive(reinterpret_cast<ib::Smp &>(mad), false, number, number).action ==
	       ib::SmiAction::local;
}

void ProgramPort::credit_available(std::uint8_t vl)
{
	connection_->egress.drain(vl);
}

void ProgramPort::work()
{
	std::vector<std::function<void(fabric::PortView &&)>> asked;
	bool is_sm;
	{
		const MutexLock lock(mutex_);
		is_sm = is_sm_;
		asked.swap(asked_);
		if (next_ == batch_.size()) {
			batch_.clear();
			next_ = 0;
			batch_.swap(outgoing_);
		}
	}
	CardPort &port = connection_->port;
	if (port.set_program_is_sm(is_sm))
		connection_->subnet.capabilities_changed(port);
	for (const auto &done : asked)
		done(connection_->subnet.view(port.number()));
	// Sending may call drop(), which discards the remaining MADs of the batch.
	for (std::size_t i = 0; i < kSlice && next_ < batch_.size(); ++i) {
		const Outgoing mad = batch_[next_++];
		send(mad);
	}
	const MutexLock lock(mutex_);
	if (next_ < batch_.size() || !outgoing_.empty())
		connection_->wakeup.signal();
}

void ProgramPort::send(const Outgoing &outgoing)
{
	const auto &smp = reinterpret_cast<const ib::Smp &>(outgoing.mad);
	if (smp.header.cls() == ib::MgmtClass::subn_directed_route && !fabric::begins_by_lid(smp)) {
		if (fabric::answers_itself(smp))
			receiver_.offer({fabric::MadAddress{}, outgoing.mad});
		else
			send_directed(smp);
		return;
	}
	const CardPort &port = connection_->port;
	const auto path_mask = (1u << port.lmc()) - 1;
	fabric::MadAddress address = outgoing.address;
	address.slid = static_cast<ib::Lid>(port.lid() | (outgoing.path_bits & path_mask));
	if (address.src_qp == ib::qpn_smi) {
		address.vl = ib::vl_management;
	} else {
		const int pkey_index = port.find_pkey(address.pkey);
		if (!port.active() || pkey_index < 0)
			return;
		address.vl = port.vl(address.sl);
		address.pkey = port.pkey(static_cast<unsigned>(pkey_index));
		if (address.qkey == 0)
			address.qkey = ib::qkey_gsi;
	}
	if (port.owns_lid(address.dlid))
		send_to_self(address, outgoing.mad);
	else
		transmit(address, outgoing.mad);
}

void ProgramPort::send_directed(ib::Smp smp)
{
	const auto number = static_cast<std::uint8_t>(connection_->port.number());
	const ib::SmiDecision decision =
		smp.header.is_response() ? ib::smi_return(smp, number) : ib::smi_start(smp);
	const auto &mad = reinterpret_cast<const ib::Mad &>(smp);
	if (decision.action == ib::SmiAction::forward && decision.port == number) {
		transmit(fabric::MadAddress{}, mad);
	} else if (decision.action == ib::SmiAction::local) {
		if (answer(smp, ib::lid_permissive))
			smp.header.status = static_cast<std::uint16_t>(smp.header.status |
								       ib::mad_status_direction);
		receiver_.offer({fabric::MadAddress{}, mad});
	}
}

void ProgramPort::send_to_self(const fabric::MadAddress &address, const ib::Mad &mad)
{
	ib::Smp smp = reinterpret_cast<const ib::Smp &>(mad);
	if (smp.header.cls() == ib::MgmtClass::subn_lid_routed && is_for_agent(smp.header)) {
		if (answer(smp, address.slid))
			receiver_.offer(
				{address.reversed(), reinterpret_cast<const ib::Mad &>(smp)});
		return;
	}
	connection_->transport.receive(connection_->port.number(),
				       fabric::make_mad_packet(address, mad));
}

bool ProgramPort::answer(ib::Smp &smp, ib::Lid slid)
{
	managing_ = true;
	const auto verdict =
		connection_->subnet.handle(connection_->port.number(), smp, slid, false);
	managing_ = false;
	return verdict == SubnetAgent::Verdict::answered;
}

void ProgramPort::transmit(const fabric::MadAddress &address, const ib::Mad &mad)
{
	using Result = fabric::EgressQueue::Result;
	if (connection_->egress.send(fabric::make_mad_packet(address, mad), kMostWaiting) ==
	    Result::dropped)
		fabric::Counters::add(connection_->port.fabric_port().counters().xmit_discards);
}

ProgramPorts::ProgramPorts(const fabric::NodeIdentity &identity,
			   const std::vector<std::unique_ptr<CardPort>> &ports)
{
	std::vector<fabric::ManagedPort *> managed{nullptr};
	for (const auto &port : ports)
		managed.push_back(&port->managed());
	Unchanged host;
	const fabric::SubnetAgent agent(identity, std::move(managed), host);
	for (const auto &port : ports)
		ports_.push_back(std::make_unique<ProgramPort>(agent.view(port->number())));
}

std::vector<fabric::LocalAccess *> ProgramPorts::access() const
{
	std::vector<fabric::LocalAccess *> all;
	for (const auto &port : ports_)
		all.push_back(port.get());
	return all;
}

} // namespace weft::hca
