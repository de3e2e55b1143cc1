// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the management of a switch: it handles SMPs by directed route and by LID, answers
// performance MADs, and sends traps.
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

/*
 * A trap is repeated until it is repressed (IBA 13.4.9), but only a few times, because a manager
 * that starts later discovers the switch anyway.
 */
constexpr auto kTrapInterval = 500ms;
constexpr unsigned kTrapRepeatsMax = 10;

/* Returns true for MADs that nodes send without being a subnet manager. */
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
	/* Return the credit before the response is sent. */
	packet.release_credit();
	if (mad->mad.header.cls() == ib::MgmtClass::subn_lid_routed)
		return answer_smp(in, std::move(*mad), hops);

	auto &smp = reinterpret_cast<ib::Smp &>(mad->mad);
	ib::SmiDecision decision = ib::smi_receive(smp, true, static_cast<std::uint8_t>(in.number),
						   static_cast<std::uint8_t>(port_count()));
	act(decision, in, std::move(*mad), hops);
}

/*
 * Forwards a directed-route SMP in place, and updates only the fields that change on its way.
 * Returns false without effect if the SMP needs other handling, shares its bytes with another
 * packet, or has unusual headers.
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
	/* Return the credit first. */
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
	if (outcome.verdict == SubnetAgent::Verdict::trap_repress && repress_trap(smp.header.tid))
		return;
	if (outcome.verdict == SubnetAgent::Verdict::trap_repress ||
	    outcome.verdict == SubnetAgent::Verdict::foreign) {
		receiver_.offer(mad);
		return;
	}
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

bool Switch::answer_perf(ib::Mad &mad)
{
	return answer_perf_mad(reinterpret_cast<ib::PerfMad &>(mad), port_count(),
			       [this](unsigned number) { return &port(number).counters(); });
}

void Switch::answer_gmp(const Packet &packet)
{
	auto mad = mad_of_packet(packet);
	if (!mad || mad->address.dest_qp != ib::qpn_gsi || mad->address.qkey != ib::qkey_gsi ||
	    mad->mad.header.is_smp())
		return;
	const auto own_pkey = agent_.match_pkey(0, mad->address.pkey);
	if (!own_pkey)
		return;
	if (mad->mad.header.cls() == ib::MgmtClass::perf && !mad->mad.header.is_response()) {
		if (!answer_perf(mad->mad))
			return;
	} else if (receiver_.offer(*mad) || !refuse_request(mad->mad.header)) {
		return;
	}
	MadAddress back = mad->address.reversed();
	back.slid = lid();
	back.vl = 0;
	back.qkey = ib::qkey_gsi;
	back.pkey = *own_pkey;
	forward_unicast(nullptr, make_mad_packet(back, mad->mad));
}

void Switch::send_trap(std::uint64_t number)
{
	{
		const MutexLock lock(trap_mutex_);
		/* A later change has replaced this trap. */
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
	/* The subnet manager is a program on this switch. */
	if (address.dlid == lid()) {
		receiver_.offer({address, mad});
		return;
	}
	forward_unicast(nullptr, make_mad_packet(address, mad));
}

bool Switch::repress_trap(std::uint64_t tid)
{
	const MutexLock lock(trap_mutex_);
	if (tid != trap_number_)
		return false;
	trap_due_ = false;
	return true;
}

void Switch::set_is_sm(bool is_sm)
{
	agent_.update_port_info(0, [is_sm](ib::PortInfo &info) {
		const std::uint32_t mask =
			info.capability_mask & ~std::uint32_t{ib::port_cap_is_sm};
		info.capability_mask = is_sm ? mask | ib::port_cap_is_sm : mask;
	});
}

void Switch::send_mad(const MadAddress &to, std::uint8_t path_bits, const ib::Mad &mad)
{
	const auto &smp = reinterpret_cast<const ib::Smp &>(mad);
	const bool directed = mad.header.cls() == ib::MgmtClass::subn_directed_route;
	if (directed && !begins_by_lid(smp)) {
		if (!answers_itself(smp))
			return send_directed(smp);
		receiver_.offer({MadAddress{}, mad});
		return;
	}
	/* A base switch port 0 has no LMC (IBA 14.2.5.6). */
	static_cast<void>(path_bits);
	MadAddress address = to;
	address.slid = lid();
	if (address.src_qp == ib::qpn_smi) {
		address.vl = ib::vl_management;
	} else {
		address.vl = 0;
		if (address.qkey == 0)
			address.qkey = ib::qkey_gsi;
		const auto own = agent_.match_pkey(0, address.pkey);
		if (!own)
			return;
		address.pkey = *own;
	}
	if (address.dlid == lid() && lid() != 0)
		return send_to_self({address, mad});
	forward_unicast(nullptr, make_mad_packet(address, mad));
}

void Switch::send_directed(const ib::Smp &original)
{
	AddressedMad mad{MadAddress{}, reinterpret_cast<const ib::Mad &>(original)};
	auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
	const ib::SmiDecision decision =
		smp.returning() ? ib::smi_return(smp, 0) : ib::smi_start(smp);
	switch (decision.action) {
	case ib::SmiAction::local: {
		const SubnetAgent::Outcome outcome = agent_.handle(smp, 0);
		if (outcome.verdict == SubnetAgent::Verdict::denied)
			return;
		if (outcome.verdict == SubnetAgent::Verdict::answered)
			smp.header.status = static_cast<std::uint16_t>(smp.header.status |
								       ib::mad_status_direction);
		receiver_.offer(mad);
		if (outcome.link != LinkOrder::none)
			carry_out(outcome.link, port(outcome.port), agent_.port_info(outcome.port));
		return;
	}
	case ib::SmiAction::forward:
		if (decision.port >= 1 && decision.port <= port_count())
			send_smp(*sides_[decision.port - 1], mad.mad, 0);
		return;
	default:
		return;
	}
}

void Switch::send_to_self(AddressedMad &&mad)
{
	if (mad.mad.header.is_smp()) {
		auto &smp = reinterpret_cast<ib::Smp &>(mad.mad);
		const SubnetAgent::Outcome outcome = agent_.handle(smp, 0);
		if (outcome.verdict == SubnetAgent::Verdict::denied)
			return;
		receiver_.offer(mad);
		if (outcome.link != LinkOrder::none)
			carry_out(outcome.link, port(outcome.port), agent_.port_info(outcome.port));
		return;
	}
	if (mad.mad.header.cls() == ib::MgmtClass::perf && !mad.mad.header.is_response()) {
		if (!answer_perf(mad.mad))
			return;
	} else if (receiver_.offer(mad) || !refuse_request(mad.mad.header)) {
		return;
	}
	receiver_.offer(mad);
}

} // namespace weft::fabric
