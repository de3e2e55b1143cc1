// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/observation.hpp"

#include <chrono>

#include "base/environment.hpp"
#include "net/fabric/link.hpp"
#include "net/fabric/switch.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/ethernet_control.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{

using nlohmann::json;

namespace
{

const char *state_text(ib::SmState state)
{
	switch (state) {
	case ib::SmState::not_active:
		return "not active";
	case ib::SmState::discovering:
		return "discovering";
	case ib::SmState::standby:
		return "standby";
	case ib::SmState::master:
		return "master";
	}
	return "unknown";
}

struct CounterName {
	const char *name;
	fabric::Counters::Value fabric::Counters::*value;
};

json state_of(const LabRuntime::Manager &each)
{
	const auto status = each.manager->status();
	return {{"node", each.node},
		{"state", state_text(status.state)},
		{"sweeps", status.sweeps},
		{"complete", status.complete}};
}

constexpr CounterName kCounters[] = {
	{"xmit_packets", &fabric::Counters::xmit_packets},
	{"rcv_packets", &fabric::Counters::rcv_packets},
	{"xmit_data", &fabric::Counters::xmit_data},
	{"rcv_data", &fabric::Counters::rcv_data},
	{"multicast_xmit_packets", &fabric::Counters::multicast_xmit_packets},
	{"multicast_rcv_packets", &fabric::Counters::multicast_rcv_packets},
	{"symbol_errors", &fabric::Counters::symbol_errors},
	{"link_error_recovery", &fabric::Counters::link_error_recovery},
	{"link_downed", &fabric::Counters::link_downed},
	{"rcv_errors", &fabric::Counters::rcv_errors},
	{"rcv_remote_physical_errors", &fabric::Counters::rcv_remote_physical_errors},
	{"rcv_switch_relay_errors", &fabric::Counters::rcv_switch_relay_errors},
	{"xmit_discards", &fabric::Counters::xmit_discards},
	{"xmit_constraint_errors", &fabric::Counters::xmit_constraint_errors},
	{"rcv_constraint_errors", &fabric::Counters::rcv_constraint_errors},
	{"local_link_integrity_errors", &fabric::Counters::local_link_integrity_errors},
	{"buffer_overrun_errors", &fabric::Counters::buffer_overrun_errors},
	{"vl15_dropped", &fabric::Counters::vl15_dropped},
	{"xmit_wait", &fabric::Counters::xmit_wait},
};

} // namespace

json counters_of(const fabric::Port &port)
{
	json result = json::object();
	for (const CounterName &counter : kCounters)
		result[counter.name] =
			(port.counters().*counter.value).load(std::memory_order_relaxed);
	return result;
}

std::vector<fabric::Port *> all_ports(LabRuntime &runtime)
{
	auto ports = runtime.fabric().end_ports();
	for (fabric::Switch *node : runtime.fabric().switches())
		for (unsigned number = 1; number <= node->port_count(); ++number)
			ports.push_back(&node->port(number));
	return ports;
}

json state_of_manager(const LabRuntime &runtime)
{
	const auto active = runtime.active_manager();
	return active.manager ? state_of(active) : json();
}

json states_of_managers(const LabRuntime &runtime)
{
	json result = json::array();
	for (const auto &each : runtime.subnet_managers())
		result.push_back(state_of(each));
	return result;
}

json observe(LabRuntime &runtime)
{
	// Real time is used even for a lab in virtual time, because the user's display updates in
	// real time.
	const std::chrono::duration<double> now = Environment::host().now().time_since_epoch();
	json result{{"time", now.count()},     {"columns", json::array()},
		    {"ports", json::object()}, {"down", json::array()},
		    {"guests", json::array()}, {"subnet_manager", json()}};
	for (const CounterName &counter : kCounters)
		result["columns"].push_back(counter.name);
	auto &ports = result["ports"];
	for (const fabric::Port *port : all_ports(runtime)) {
		if (!port->link())
			continue;
		json values = json::array();
		for (const CounterName &counter : kCounters)
			values.push_back(
				(port->counters().*counter.value).load(std::memory_order_relaxed));
		ports[port->name()] = std::move(values);
	}
	for (const fabric::Link *link : runtime.fabric().links())
		if (!link->up())
			result["down"].push_back(link->name());
	for (const auto &host : runtime.hosts())
		if (host->has_guest())
			result["guests"].push_back(host->name);
	result["ethernet"] = observe_ethernet(runtime.ethernet().state());
	result["subnet_manager"] = state_of_manager(runtime);
	return result;
}

} // namespace weft::weftd
