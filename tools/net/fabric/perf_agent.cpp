// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/perf_agent.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace weft::fabric
{

namespace
{

using ib::PortCounters;
using ib::PortCountersExtended;

template<class Value>
std::uint64_t sum(const std::vector<Counters *> &ports, Value Counters::*member)
{
	std::uint64_t total = 0;
	for (Counters *port : ports)
		total += (port->*member).load(std::memory_order_relaxed);
	return total;
}

template<class Value>
void store(const std::vector<Counters *> &ports, Value Counters::*member, std::uint64_t value)
{
	for (Counters *port : ports)
		(port->*member).store(value, std::memory_order_relaxed);
}

/* Counters of limited width saturate (IBA 16.1.3.5). */
template<class Field>
Field saturate(std::uint64_t value, std::uint64_t maximum = std::numeric_limits<Field>::max())
{
	return static_cast<Field>(std::min(value, maximum));
}

void read_counters(PortCounters &out, const std::vector<Counters *> &ports)
{
	out.symbol_errors = saturate<std::uint16_t>(sum(ports, &Counters::symbol_errors));
	out.link_error_recovery =
		saturate<std::uint8_t>(sum(ports, &Counters::link_error_recovery));
	out.link_downed = saturate<std::uint8_t>(sum(ports, &Counters::link_downed));
	out.rcv_errors = saturate<std::uint16_t>(sum(ports, &Counters::rcv_errors));
	out.rcv_remote_physical_errors =
		saturate<std::uint16_t>(sum(ports, &Counters::rcv_remote_physical_errors));
	out.rcv_switch_relay_errors =
		saturate<std::uint16_t>(sum(ports, &Counters::rcv_switch_relay_errors));
	out.xmit_discards = saturate<std::uint16_t>(sum(ports, &Counters::xmit_discards));
	out.xmit_constraint_errors =
		saturate<std::uint8_t>(sum(ports, &Counters::xmit_constraint_errors));
	out.rcv_constraint_errors =
		saturate<std::uint8_t>(sum(ports, &Counters::rcv_constraint_errors));
	out.integrity_overrun = static_cast<std::uint8_t>(
		saturate<std::uint8_t>(sum(ports, &Counters::local_link_integrity_errors), 15)
			<< 4 |
		saturate<std::uint8_t>(sum(ports, &Counters::buffer_overrun_errors), 15));
	out.vl15_dropped = saturate<std::uint16_t>(sum(ports, &Counters::vl15_dropped));
	out.xmit_data = saturate<std::uint32_t>(sum(ports, &Counters::xmit_data));
	out.rcv_data = saturate<std::uint32_t>(sum(ports, &Counters::rcv_data));
	out.xmit_packets = saturate<std::uint32_t>(sum(ports, &Counters::xmit_packets));
	out.rcv_packets = saturate<std::uint32_t>(sum(ports, &Counters::rcv_packets));
	out.xmit_wait = saturate<std::uint32_t>(sum(ports, &Counters::xmit_wait));
}

void write_counters(const PortCounters &in, const std::vector<Counters *> &ports)
{
	const std::uint16_t select = in.counter_select;
	auto write = [&](std::uint16_t bit, auto member, std::uint64_t value) {
		if (select & bit)
			store(ports, member, value);
	};
	write(ib::select_symbol_errors, &Counters::symbol_errors, in.symbol_errors);
	write(ib::select_link_error_recovery, &Counters::link_error_recovery,
	      in.link_error_recovery);
	write(ib::select_link_downed, &Counters::link_downed, in.link_downed);
	write(ib::select_rcv_errors, &Counters::rcv_errors, in.rcv_errors);
	write(ib::select_rcv_remote_physical_errors, &Counters::rcv_remote_physical_errors,
	      in.rcv_remote_physical_errors);
	write(ib::select_rcv_switch_relay_errors, &Counters::rcv_switch_relay_errors,
	      in.rcv_switch_relay_errors);
	write(ib::select_xmit_discards, &Counters::xmit_discards, in.xmit_discards);
	write(ib::select_xmit_constraint_errors, &Counters::xmit_constraint_errors,
	      in.xmit_constraint_errors);
	write(ib::select_rcv_constraint_errors, &Counters::rcv_constraint_errors,
	      in.rcv_constraint_errors);
	write(ib::select_local_link_integrity, &Counters::local_link_integrity_errors,
	      in.integrity_overrun >> 4);
	write(ib::select_buffer_overrun, &Counters::buffer_overrun_errors,
	      in.integrity_overrun & 15);
	write(ib::select_vl15_dropped, &Counters::vl15_dropped, in.vl15_dropped);
	write(ib::select_xmit_data, &Counters::xmit_data, in.xmit_data);
	write(ib::select_rcv_data, &Counters::rcv_data, in.rcv_data);
	write(ib::select_xmit_packets, &Counters::xmit_packets, in.xmit_packets);
	write(ib::select_rcv_packets, &Counters::rcv_packets, in.rcv_packets);
	if (in.counter_select2 & ib::select2_xmit_wait)
		store(ports, &Counters::xmit_wait, in.xmit_wait);
}

void read_extended(PortCountersExtended &out, const std::vector<Counters *> &ports)
{
	std::uint64_t xmit = sum(ports, &Counters::xmit_packets);
	std::uint64_t rcv = sum(ports, &Counters::rcv_packets);
	std::uint64_t multicast_xmit = sum(ports, &Counters::multicast_xmit_packets);
	std::uint64_t multicast_rcv = sum(ports, &Counters::multicast_rcv_packets);
	out.xmit_data = sum(ports, &Counters::xmit_data);
	out.rcv_data = sum(ports, &Counters::rcv_data);
	out.xmit_packets = xmit;
	out.rcv_packets = rcv;
	/* Set(PortCounters) may set the total below the multicast count. */
	out.unicast_xmit_packets = xmit - std::min(xmit, multicast_xmit);
	out.unicast_rcv_packets = rcv - std::min(rcv, multicast_rcv);
	out.multicast_xmit_packets = multicast_xmit;
	out.multicast_rcv_packets = multicast_rcv;
}

void write_extended(const PortCountersExtended &in, const std::vector<Counters *> &ports)
{
	const std::uint16_t select = in.counter_select;
	auto write = [&](std::uint16_t bit, auto member, std::uint64_t value) {
		if (select & bit)
			store(ports, member, value);
	};
	write(ib::select_ext_xmit_data, &Counters::xmit_data, in.xmit_data);
	write(ib::select_ext_rcv_data, &Counters::rcv_data, in.rcv_data);
	write(ib::select_ext_xmit_packets, &Counters::xmit_packets, in.xmit_packets);
	write(ib::select_ext_rcv_packets, &Counters::rcv_packets, in.rcv_packets);
	write(ib::select_ext_multicast_xmit, &Counters::multicast_xmit_packets,
	      in.multicast_xmit_packets);
	write(ib::select_ext_multicast_rcv, &Counters::multicast_rcv_packets,
	      in.multicast_rcv_packets);
}

/* Returns the counters that a port select byte selects; empty if there is no such port. */
std::vector<Counters *> select_ports(unsigned select, unsigned ports,
				     const std::function<Counters *(unsigned)> &counters_of)
{
	std::vector<Counters *> selected;
	unsigned first = select == ib::perf_all_ports ? 1 : select;
	unsigned last = select == ib::perf_all_ports ? ports : select;
	for (unsigned port = std::max(first, 1u); port <= last && port <= ports; port++)
		if (Counters *counters = counters_of(port))
			selected.push_back(counters);
	return selected;
}

std::uint16_t answer(ib::PerfMad &mad, unsigned ports,
		     const std::function<Counters *(unsigned)> &counters_of)
{
	bool set = mad.header.is_method(ib::MadMethod::set);
	switch (mad.header.attr_id.value()) {
	case ib::attr_class_port_info: {
		if (set)
			break;
		ib::ClassPortInfo info{};
		info.base_version = ib::mad_base_version;
		info.class_version = ib::perf_class_version;
		info.capability_mask = static_cast<std::uint16_t>(ib::perf_cap_all_port_select |
								  ib::perf_cap_extended_width |
								  ib::perf_cap_xmit_wait);
		info.capability2_resp_time = 18;
		std::memset(mad.data, 0, sizeof(mad.data));
		std::memcpy(mad.data, &info, sizeof(info));
		return ib::mad_status_ok;
	}
	case ib::attr_port_counters: {
		auto &counters = *reinterpret_cast<PortCounters *>(mad.data);
		auto selected = select_ports(counters.port_select, ports, counters_of);
		if (selected.empty() && counters.port_select != 0)
			return ib::mad_status_invalid_value;
		if (set)
			write_counters(counters, selected);
		read_counters(counters, selected);
		return ib::mad_status_ok;
	}
	case ib::attr_port_counters_extended: {
		auto &counters = *reinterpret_cast<PortCountersExtended *>(mad.data);
		auto selected = select_ports(counters.port_select, ports, counters_of);
		if (selected.empty() && counters.port_select != 0)
			return ib::mad_status_invalid_value;
		if (set)
			write_extended(counters, selected);
		read_extended(counters, selected);
		return ib::mad_status_ok;
	}
	default:
		break;
	}
	return ib::mad_status_unsupported_method_attribute;
}

} // namespace

bool answer_perf_mad(ib::PerfMad &mad, unsigned ports,
		     const std::function<Counters *(unsigned)> &counters_of)
{
	if (!mad.header.is_method(ib::MadMethod::get) && !mad.header.is_method(ib::MadMethod::set))
		return false;
	if (mad.header.base_version != ib::mad_base_version ||
	    mad.header.class_version != ib::perf_class_version)
		mad.header.status = std::uint16_t{ib::mad_status_bad_version};
	else
		mad.header.status = answer(mad, ports, counters_of);
	mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
	return true;
}

} // namespace weft::fabric
