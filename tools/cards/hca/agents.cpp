// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/agents.hpp"

#include <ib/smi.hpp>

#include "net/fabric/perf_agent.hpp"
#include "net/fabric/port.hpp"

namespace weft::hca
{

Agents::Agents(const fabric::NodeIdentity &identity,
	       const std::vector<std::unique_ptr<CardPort>> &ports, Loop &loop,
	       SubnetAgent::Host &host, bool trusted)
    : ports_(ports), subnet_(identity, ports, loop, host), trusted_(trusted)
{
}

bool Agents::local_mad(unsigned port, ib::Mad &mad, ib::Lid slid, bool ignore_mkey)
{
	switch (mad.header.cls()) {
	case ib::MgmtClass::subn_lid_routed:
	case ib::MgmtClass::subn_directed_route: {
		auto &smp = reinterpret_cast<ib::Smp &>(mad);
		if (!trusted_ && !mad.header.is_method(ib::MadMethod::get))
			return false;
		switch (subnet_.handle(port, smp, slid, ignore_mkey)) {
		case SubnetAgent::Verdict::answered:
		case SubnetAgent::Verdict::repressed:
			return true;
		case SubnetAgent::Verdict::denied:
			return false;
		case SubnetAgent::Verdict::foreign:
			break;
		}
		// TrapRepress stops a trap and has no response (IBA 13.4.6.4).
		if (mad.header.is_method(ib::MadMethod::trap_repress))
			return true;
		break;
	}
	case ib::MgmtClass::perf: {
		const auto counters_of = [this](unsigned number) {
			return &ports_[number - 1]->fabric_port().counters();
		};
		if (fabric::answer_perf_mad(reinterpret_cast<ib::PerfMad &>(mad),
					    static_cast<unsigned>(ports_.size()), counters_of))
			return true;
		break;
	}
	default:
		break;
	}
	mad.header.status = ib::mad_status_unsupported_method_attribute;
	mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
	return true;
}

void Agents::key_violation(unsigned port, ib::TrapNumber trap, const packet::Headers &headers)
{
	subnet_.key_violation(*ports_[port - 1], trap, headers);
}

std::optional<ib::Smp> Agents::wire_smp(unsigned port, const ib::Smp &smp, std::uint16_t slid,
					bool &handled)
{
	handled = !trusted_;
	ib::Smp answer = smp;
	const bool directed = smp.header.cls() == ib::MgmtClass::subn_directed_route;
	if (directed) {
		if (smp.returning())
			return std::nullopt;
		if (ib::smi_receive(answer, false, static_cast<std::uint8_t>(port),
				    static_cast<std::uint8_t>(ports_.size()))
			    .action != ib::SmiAction::local) {
			handled = true;
			return std::nullopt;
		}
	} else if (smp.header.cls() != ib::MgmtClass::subn_lid_routed) {
		handled = true;
		return std::nullopt;
	}

	switch (subnet_.handle(port, answer, slid, false)) {
	case SubnetAgent::Verdict::answered:
		break;
	case SubnetAgent::Verdict::denied:
	case SubnetAgent::Verdict::repressed:
		handled = true;
		return std::nullopt;
	case SubnetAgent::Verdict::foreign:
		return std::nullopt;
	}
	handled = true;
	// The response must leave through this port, because the card cannot forward it by LID.
	if (directed && ib::smi_return(answer, static_cast<std::uint8_t>(port)).action !=
				ib::SmiAction::forward)
		return std::nullopt;
	return answer;
}

} // namespace weft::hca
