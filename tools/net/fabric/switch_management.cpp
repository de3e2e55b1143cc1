// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Management of a switch: SMPs by directed route and by LID, performance MADs, traps.
#include <algorithm>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "net/fabric/perf_agent.hpp"
#include "net/fabric/switch.hpp"
#include "net/fabric/timeline.hpp"

namespace weft::fabric
{

namespace
{

using namespace std::chrono_literals;

/* A trap is repeated until repressed (IBA 13.4.9), but not for ever: a manager that comes later
 * discovers the switch anyway. */
constexpr auto kTrapInterval = 500ms;
constexpr unsigned kTrapRepeatsMax = 10;

/* Returns true for a MAD that a node sends without being a manager. */
bool is_of_managed_node(const ib::MadHeader &header)
{
	return header.is_method(ib::MadMethod::trap) ||
	       (header.is_method(ib::MadMethod::get_resp) && header.attr_id != ib::attr_sm_info);
}

} // namespace

void Switch::receive_management(PortSide &in, Packet &&packet)
{
	if (!in.restricted.load(std::memory_order_relaxed) && pass_on(in, packet))
		return;
	auto mad = mad_of_packet(packet);
	if (!mad)
		return;
	if (in.restricted.load(std::memory_order_relaxed) && !is_of_managed_node(mad->mad.header)) {
		Counters::add(in.port.counters().rcv_constraint_errors);
		return;
	}
	ib::Lid dlid = packet.lrh().dlid;
	bool permissive = dlid == ib::lid_permissive;
	if (!permissive && (dlid != lid() || lid() == 0))
		return forward_unicast(&in, std::move(packet));

	if (!mad->mad.header.is_smp())
		return;
	unsigned hops = packet.hops_;
	/* Make room in the receive buffer before anything is sent in answer. */
	packet.release_credit();
	if (mad->mad.header.cls() == ib::MgmtClass::subn_lid_routed)
		return answer_smp(in, std::move(*mad), hops);

	auto &smp = reinterpret_cast<ib::Smp &>(mad->mad);
	ib::SmiDecision decision = ib::smi_receive(smp, true, static_cast<std::uint8_t>(in.number),
						   static_cast<std::uint8_t>(port_count()));
	act(decision, in, std::move(*mad), hops);
}

/*
 * Sends a directed-route SMP that is only passing on as it is, but for what is written into it on
 * its way. False, and nothing has changed, if it does not pass, shares its bytes, or comes with
 * headers that are not those of all others.
 */
bool Switch::pass_on(PortSide &in, Packet &packet)
{
	static const Packet kUsual = make_mad_packet(MadAddress{}, ib::Mad{});
	const std::span<std::byte> bytes = packet.payload_.own();
	if (bytes.size() != sizeof(ib::Smp) || packet.icrc_error() ||
	    !std::ranges::equal(packet.headers(), kUsual.headers()))
		return false;
	auto &smp = *reinterpret_cast<ib::Smp *>(bytes.data());
	const std::uint8_t here = smp.header.hop_ptr, hops = smp.header.hop_cnt;
	const bool passes = smp.returning() ? here >= 2 && here <= hops : here >= 1 && here < hops;
	if (smp.header.cls() != ib::MgmtClass::subn_directed_route || !passes)
		return false;
	const ib::SmiDecision decision =
		ib::smi_receive(smp, true, static_cast<std::uint8_t>(in.number),
				static_cast<std::uint8_t>(port_count()));
	/* Room in the receive buffer first. */
	packet.release_credit();
	if (decision.action == ib::SmiAction::forward)
		output(nullptr, *sides_[decision.port - 1], std::move(packet));
	return true;
}

void Switch::act(const ib::SmiDecision &decision, PortSide &in, AddressedMad &&mad, unsigned hops)
{
	switch (decision.action) {
	case ib::SmiAction::discard:
		break;
	case ib::SmiAction::local:
		answer_smp(in, std::move(mad), hops);
		break;
	case ib::SmiAction::forward:
		if (decision.port >= 1 && decision.port <= port_count())
			send_smp(*sides_[decision.port - 1], mad.mad, hops);
		break;
	case ib::SmiAction::forward_by_lid: {
		MadAddress address = mad.address;
		address.slid = lid();
		address.dlid = decision.lid;
		Packet packet = make_mad_packet(address, mad.mad);
		packet.hops_ = static_cast<std::uint8_t>(hops);
		forward_unicast(nullptr, std::move(packet));
		break;
	}
	}
}

void Switch::send_smp(PortSide &out, const ib::Mad &mad, unsigned hops)
{
	Packet packet = make_mad_packet(MadAddress{}, mad);
	packet.hops_ = static_cast<std::uint8_t>(hops);
	output(nullptr, out, std::move(packet));
}

void Switch::answer_smp(PortSide &in, AddressedMad &&mad, unsigned hops)
{
	auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
	bool directed = smp.header.cls() == ib::MgmtClass::subn_directed_route;
	const SubnetAgent::Outcome outcome = agent_.handle(smp, in.number);
	if (outcome.verdict == SubnetAgent::Verdict::trap_repress)
		return repress_trap(smp.header.tid);
	if (outcome.verdict == SubnetAgent::Verdict::answered) {
		if (directed) {
			act(ib::smi_return(smp, static_cast<std::uint8_t>(in.number)), in,
			    std::move(mad), hops);
		} else {
			MadAddress back = mad.address.reversed();
			back.slid = lid();
			forward_unicast(nullptr, make_mad_packet(back, mad.mad));
		}
	}
	if (outcome.link != LinkOrder::none)
		carry_out(outcome.link, port(outcome.port), agent_.port_info(outcome.port));
}

void Switch::answer_gmp(PortSide &in, const Packet &packet)
{
	auto mad = mad_of_packet(packet);
	if (!mad || mad->address.dest_qp != ib::qpn_gsi ||
	    mad->mad.header.cls() != ib::MgmtClass::perf || mad->address.qkey != ib::qkey_gsi)
		return;
	const auto own_pkey = agent_.match_pkey(0, mad->address.pkey);
	if (!own_pkey)
		return;
	auto &perf = reinterpret_cast<ib::PerfMad &>(mad->mad);
	if (!answer_perf_mad(perf, port_count(),
			     [this](unsigned number) { return &port(number).counters(); }))
		return;
	MadAddress back = mad->address.reversed();
	back.slid = lid();
	back.vl = 0;
	back.qkey = ib::qkey_gsi;
	back.pkey = *own_pkey;
	static_cast<void>(in);
	forward_unicast(nullptr, make_mad_packet(back, mad->mad));
}

void Switch::send_trap(std::uint64_t number)
{
	{
		const MutexLock lock(trap_mutex_);
		/* A later change has a trap of its own. */
		if (number != trap_number_ || !trap_due_)
			return;
		if (sm_lid_.load(std::memory_order_relaxed) == 0 || lid() == 0 ||
		    trap_repeats_++ >= kTrapRepeatsMax) {
			trap_due_ = false;
			return;
		}
		timeline_.after(kTrapInterval, [this, number] { send_trap(number); }, this);
	}
	ib::Mad mad{};
	auto &smp = reinterpret_cast<ib::Smp &>(mad);
	smp.header.base_version = ib::mad_base_version;
	smp.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
	smp.header.class_version = 1;
	smp.header.method = static_cast<std::uint8_t>(ib::MadMethod::trap);
	smp.header.tid = number;
	smp.header.attr_id = std::uint16_t{ib::attr_sm_notice};
	ib::Notice notice{};
	notice.generic_type = static_cast<std::uint8_t>(ib::Notice::generic_bit) |
			      static_cast<std::uint8_t>(ib::NoticeType::urgent);
	notice.producer = static_cast<std::uint32_t>(ib::NodeType::switch_);
	notice.trap_number = std::uint16_t{ib::trap_link_state_change};
	notice.issuer_lid = lid();
	reinterpret_cast<ib::LinkStateChangeDetails *>(notice.details)->lid = lid();
	std::memcpy(smp.data, &notice, ib::notice_smp_bytes);

	MadAddress address;
	address.slid = lid();
	address.dlid = sm_lid_.load(std::memory_order_relaxed);
	spdlog::debug("switch {} LID {}: trap 128 to LID {}", name_, lid(), address.dlid);
	forward_unicast(nullptr, make_mad_packet(address, mad));
}

void Switch::repress_trap(std::uint64_t tid)
{
	const MutexLock lock(trap_mutex_);
	if (tid == trap_number_)
		trap_due_ = false;
}

} // namespace weft::fabric
