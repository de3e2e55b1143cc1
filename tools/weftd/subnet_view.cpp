// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/subnet_view.hpp"

#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "net/fabric/switch.hpp"
#include "sm/subnet.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/guid_text.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{

using nlohmann::json;

namespace
{

std::optional<ib::Guid> guid_of(LabRuntime &runtime, const std::string &name)
{
	for (const auto &host : runtime.hosts())
		if (host->name == name)
			return host->guid;
	for (const fabric::Switch *node : runtime.fabric().switches())
		if (node->name() == name)
			return node->guid();
	if (name == kSmNode && runtime.lab().sm_enabled)
		return runtime.lab().sm.guid;
	if (name == kStandbyNode && !runtime.lab().sm_standby.empty())
		return runtime.lab().standby().guid;
	return std::nullopt;
}

// Returns the LIDs that are routed to each port, as text ("3, 7-9") because a table has up to 48 Ki
// entries.
json routes_of(const sm::Lft &lft)
{
	struct Range {
		std::size_t first, last;
	};
	std::map<unsigned, std::vector<Range>> by_port;
	for (std::size_t lid = 1; lid < lft.size(); ++lid) {
		if (lft[lid] == ib::lft_drop)
			continue;
		auto &ranges = by_port[lft[lid]];
		if (!ranges.empty() && ranges.back().last + 1 == lid)
			ranges.back().last = lid;
		else
			ranges.push_back({lid, lid});
	}
	json result = json::object();
	for (const auto &[port, ranges] : by_port) {
		std::string text;
		for (const auto &[first, last] : ranges)
			text += fmt::format("{}{}{}", text.empty() ? "" : ", ", first,
					    last > first ? fmt::format("-{}", last) : "");
		result[std::to_string(port)] = std::move(text);
	}
	return result;
}

json describe(const sm::PortData &port)
{
	json pkeys = json::array();
	for (const ib::Pkey pkey : port.pkeys)
		if (pkey != 0)
			pkeys.push_back(fmt::format("{:#06x}", pkey));
	return {{"lid", port.lid}, {"lmc", port.lmc}, {"pkeys", std::move(pkeys)}};
}

} // namespace

std::shared_ptr<const sm::Subnet> managed_subnet(LabRuntime &runtime)
{
	if (!runtime.subnet_manager())
		return nullptr;
	auto status = runtime.subnet_manager()->status();
	return status.state == ib::SmState::master ? std::move(status.subnet) : nullptr;
}

ib::Lid lid_of(const sm::Subnet *subnet, ib::Guid node, std::size_t port)
{
	if (!subnet)
		return 0;
	const auto found = subnet->by_guid.find(node);
	if (found == subnet->by_guid.end())
		return 0;
	const auto &ports = subnet->nodes[static_cast<std::size_t>(found->second)].ports;
	return port < ports.size() ? ports[port].lid : 0;
}

json lids_of_subnet(LabRuntime &runtime)
{
	json result = json::object();
	const auto subnet = managed_subnet(runtime);
	if (!subnet)
		return result;
	for (const sm::Node &node : subnet->nodes) {
		json lids = json::array();
		for (const sm::PortData &port : node.ports)
			lids.push_back(static_cast<unsigned>(port.lid));
		result[guid_text(node.guid)] = std::move(lids);
	}
	return result;
}

json describe_subnet_node(LabRuntime &runtime, const std::string &name,
			  std::optional<ib::Guid> guid)
{
	if (!guid)
		guid = guid_of(runtime, name);
	if (!guid)
		throw std::invalid_argument(fmt::format("there is no node '{}'", name));
	json result{{"ports", json::object()}, {"routes", json::object()}};
	const auto subnet = managed_subnet(runtime);
	if (!subnet)
		return result;
	const auto found = subnet->by_guid.find(*guid);
	if (found == subnet->by_guid.end())
		return result;
	const sm::Node &node = subnet->nodes[static_cast<std::size_t>(found->second)];
	for (std::size_t number = 0; number < node.ports.size(); ++number)
		if (node.ports[number].lid != 0)
			result["ports"][std::to_string(number)] = describe(node.ports[number]);
	if (node.switch_index >= 0 &&
	    static_cast<std::size_t>(node.switch_index) < subnet->lfts.size())
		result["routes"] =
			routes_of(subnet->lfts[static_cast<std::size_t>(node.switch_index)]);
	return result;
}

} // namespace weft::weftd
