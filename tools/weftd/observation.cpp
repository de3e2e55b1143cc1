// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/observation.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

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
	std::uint64_t (*value)(const fabric::Counters &counters);
};

template<auto member>
std::uint64_t counter_value(const fabric::Counters &counters)
{
	return (counters.*member).load(std::memory_order_relaxed);
}

json state_of(const LabRuntime::Manager &each)
{
	const auto status = each.manager->status();
	return {{"node", each.node},
		{"state", state_text(status.state)},
		{"sweeps", status.sweeps},
		{"complete", status.complete}};
}

constexpr CounterName kCounters[] = {
	{"xmit_packets", counter_value<&fabric::Counters::xmit_packets>},
	{"rcv_packets", counter_value<&fabric::Counters::rcv_packets>},
	{"xmit_data", counter_value<&fabric::Counters::xmit_data>},
	{"rcv_data", counter_value<&fabric::Counters::rcv_data>},
	{"multicast_xmit_packets", counter_value<&fabric::Counters::multicast_xmit_packets>},
	{"multicast_rcv_packets", counter_value<&fabric::Counters::multicast_rcv_packets>},
	{"symbol_errors", counter_value<&fabric::Counters::symbol_errors>},
	{"link_error_recovery", counter_value<&fabric::Counters::link_error_recovery>},
	{"link_downed", counter_value<&fabric::Counters::link_downed>},
	{"rcv_errors", counter_value<&fabric::Counters::rcv_errors>},
	{"rcv_remote_physical_errors",
	 counter_value<&fabric::Counters::rcv_remote_physical_errors>},
	{"rcv_switch_relay_errors", counter_value<&fabric::Counters::rcv_switch_relay_errors>},
	{"xmit_discards", counter_value<&fabric::Counters::xmit_discards>},
	{"xmit_constraint_errors", counter_value<&fabric::Counters::xmit_constraint_errors>},
	{"rcv_constraint_errors", counter_value<&fabric::Counters::rcv_constraint_errors>},
	{"local_link_integrity_errors",
	 counter_value<&fabric::Counters::local_link_integrity_errors>},
	{"buffer_overrun_errors", counter_value<&fabric::Counters::buffer_overrun_errors>},
	{"vl15_dropped", counter_value<&fabric::Counters::vl15_dropped>},
	{"xmit_wait", counter_value<&fabric::Counters::xmit_wait>},
};

// Returns the values of all counters in the order of kCounters.
std::array<std::uint64_t, std::size(kCounters)> values_of(const fabric::Counters &counters)
{
	const auto traffic = counters.traffic();
	std::array<std::uint64_t, std::size(kCounters)> values{traffic.xmit_packets,
							       traffic.rcv_packets,
							       traffic.xmit_data,
							       traffic.rcv_data,
							       traffic.multicast_xmit_packets,
							       traffic.multicast_rcv_packets};
	constexpr std::size_t traffic_columns = 6;
	for (std::size_t i = traffic_columns; i < values.size(); ++i)
		values[i] = kCounters[i].value(counters);
	return values;
}

} // namespace

std::string json_text(const json &value)
{
	return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json counters_of(const fabric::Port &port)
{
	json result = json::object();
	for (const CounterName &counter : kCounters)
		result[counter.name] = counter.value(port.counters());
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

json counts_of(const std::vector<cards::Count> &counts)
{
	json result = json::object();
	for (const cards::Count &count : counts)
		result[std::string(count.name)] = count.value;
	return result;
}

Sampler::Sampler(LabRuntime &runtime)
    : runtime_(runtime),
      generation_(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
						     Environment::host().date().time_since_epoch())
						     .count())),
      oldest_(generation_ + 1)
{
	static_assert(std::size(kCounters) == kColumns);
}

void Sampler::sample_ports()
{
	std::vector<const fabric::Port *> linked;
	for (const fabric::Port *port : all_ports(runtime_))
		if (port->link())
			linked.push_back(port);
	if (!std::ranges::equal(linked, ports_, {}, {}, &PortSample::port)) {
		oldest_ = generation_;
		ports_.clear();
		for (const fabric::Port *port : linked)
			ports_.push_back({port, {}, generation_});
	}
	for (PortSample &each : ports_) {
		const auto values = values_of(each.port->counters());
		if (values != each.values)
			each.changed = generation_;
		each.values = values;
	}
}

void Sampler::sample_links()
{
	std::vector<const fabric::Link *> down;
	for (const fabric::Link *link : runtime_.fabric().links())
		if (!link->up())
			down.push_back(link);
	if (down != down_)
		down_changed_ = generation_;
	down_ = std::move(down);
}

void Sampler::sample_hosts()
{
	const auto &hosts = runtime_.hosts();
	if (!std::ranges::equal(
		    hosts, cards_, {}, [](const auto &host) { return host->name; },
		    &CardSample::host)) {
		oldest_ = generation_;
		cards_.clear();
		for (const auto &host : hosts)
			cards_.push_back({host->name, {}, generation_});
	}
	std::vector<std::string> guests;
	for (std::size_t i = 0; i < hosts.size(); ++i) {
		CardSample &card = cards_[i];
		auto counts = hosts[i]->card->activity();
		// A card that has replaced another one may have other counters.
		if (!std::ranges::equal(counts, card.counts,
					[](const cards::Count &a, const cards::Count &b) {
						return a.value == b.value && a.name == b.name;
					}))
			card.changed = generation_;
		card.counts = std::move(counts);
		if (hosts[i]->has_guest())
			guests.push_back(hosts[i]->name);
	}
	if (guests != guests_)
		guests_changed_ = generation_;
	guests_ = std::move(guests);
}

json Sampler::sample(std::uint64_t since, bool with_cards)
{
	++generation_;
	sample_ports();
	sample_links();
	sample_hosts();
	if (!ethernet_.sample(runtime_.ethernet().state(), generation_))
		oldest_ = generation_;
	const bool complete = since < oldest_ || since >= generation_;
	if (complete)
		since = 0; // everything has changed after that

	// Real time is used even for a lab in virtual time, because the user's display updates in
	// real time.
	const std::chrono::duration<double> now = Environment::host().now().time_since_epoch();
	json result{{"time", now.count()},
		    {"generation", generation_},
		    {"ports", json::object()},
		    {"ethernet", ethernet_.changes(since)},
		    {"subnet_manager", state_of_manager(runtime_)}};
	auto &ports = result["ports"];
	for (const PortSample &each : ports_)
		if (each.changed > since)
			ports[each.port->name()] = each.values;
	if (with_cards) {
		auto &cards = result["cards"] = json::object();
		for (const CardSample &each : cards_)
			if (each.changed > since)
				cards[each.host] = counts_of(each.counts);
	}
	if (!complete)
		result["since"] = since;
	else
		for (const CounterName &counter : kCounters)
			result["columns"].push_back(counter.name);
	if (complete || down_changed_ > since) {
		auto &down = result["down"] = json::array();
		for (const fabric::Link *link : down_)
			down.push_back(link->name());
	}
	if (complete || guests_changed_ > since)
		result["guests"] = guests_;
	return result;
}

} // namespace weft::weftd
