// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/fabric_view.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "net/fabric/capture.hpp"
#include "net/fabric/switch.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/ethernet_control.hpp"
#include "weftd/guid_text.hpp"
#include "weftd/lab_runtime.hpp"
#include "weftd/link_settings.hpp"
#include "weftd/observation.hpp"
#include "weftd/subnet_view.hpp"

namespace weft::weftd
{

using nlohmann::json;

namespace
{

json describe(const fabric::Port &port)
{
	return {{"name", port.name()},
		{"link", port.link() ? json(port.link()->name()) : json()},
		{"up", port.link_up()}};
}

json describe(const fabric::Switch &node)
{
	json ports = json::array();
	for (unsigned number = 1; number <= node.port_count(); ++number)
		ports.push_back(describe(node.port(number)));
	return {{"name", node.name()},
		{"guid", guid_text(node.guid())},
		{"lid", node.lid()},
		{"ports", ports}};
}

json describe(const LabBoot &boot)
{
	json result = json::object();
	const auto put = [&](const char *key, const auto &value) {
		if (value)
			result[key] = *value;
	};
	put("kernel", boot.kernel);
	put("stack", boot.stack);
	put("modules", boot.modules);
	put("initrd", boot.initrd);
	put("share", boot.share);
	put("append", boot.append);
	put("memory", boot.memory);
	put("cpus", boot.cpus);
	return result;
}

json describe(Host &host, const sm::Subnet *subnet)
{
	json ports = json::array();
	for (const fabric::Port *port : host.ports) {
		ports.push_back(describe(*port));
		ports.back()["lid"] = lid_of(subnet, host.guid, ports.size());
	}
	return {{"name", host.name},
		{"number", host.number ? json(host.number) : json()},
		{"guid", guid_text(host.guid)},
		{"model", std::string(host.model)},
		{"socket", host.server ? json(host.socket.string()) : json()},
		{"bus", host.server ? json(text_of(host.bus)) : json()},
		{"guest", host.has_guest()},
		{"boot", describe(host.boot)},
		{"faults", counts_of(host.card->faults())},
		{"armed", counts_of(host.card->armed())},
		{"ports", ports}};
}

json describe(const RunningTrunk &running)
{
	const trunk::State state = running.trunk.state();
	return {{"name", running.name},
		{"end", running.end},
		{"ethernet", running.network.empty() ? json() : json(running.network)},
		{"role", running.trunk.role() == trunk::Role::listens ? "listens" : "connects"},
		{"address", state.address},
		{"connected", state.connected},
		{"peer", state.connected ? json(state.peer) : json()},
		{"reason", state.connected ? json() : json(state.last_reason)},
		{"refusal", state.last_refusal.empty() ? json() : json(state.last_refusal)},
		{"connections", state.connections},
		{"refused", state.refused},
		{"violations", state.violations}};
}

} // namespace

json describe(const fabric::Link &link)
{
	const auto config = config_of(link);
	json settings = json::object();
	for (const auto name : link_setting_names())
		settings[std::string(name)] = link_setting(config, name);
	json result{{"name", link.name()},
		    {"ends", {link.end(0).name(), link.end(1).name()}},
		    {"up", link.up()},
		    {"settings", settings}};
	if (const auto capture = link.capture())
		result["captured_packets"] = capture->packets();
	return result;
}

FabricView::FabricView(LabRuntime &runtime, bool with_lids)
    : runtime_(runtime), with_lids_(with_lids)
{
	begin();
}

void FabricView::begin()
{
	changes_ = runtime_.changes();
	++begins_;
	text_ = "{";
	section_ = 0;
	item_ = 0;
	const auto subnet = managed_subnet(runtime_);
	const auto ethernets =
		std::make_shared<const ethernet::NetworkState>(runtime_.ethernet().state());
	sections_ = {
		{"hosts", runtime_.hosts().size(),
		 [this, subnet, ethernets](std::size_t i) {
			 Host &host = *runtime_.hosts()[i];
			 json result = describe(host, subnet.get());
			 const auto attachment =
				 std::ranges::find(ethernets->attachments, host.name + "/eth0",
						   &ethernet::AttachmentState::name);
			 if (attachment != ethernets->attachments.end())
				 result["ethernet"] = describe_attachment(*attachment);
			 return result;
		 }},
		{"switches", runtime_.fabric().switches().size(),
		 [nodes = runtime_.fabric().switches()](std::size_t i) {
			 return describe(*nodes[i]);
		 }},
		{"links", runtime_.fabric().links().size(),
		 [links = runtime_.fabric().links()](std::size_t i) {
			 return describe(*links[i]);
		 }},
		{"trunks", runtime_.trunks().size(),
		 [this](std::size_t i) { return describe(*runtime_.trunks()[i]); }},
	};
	rest_ = {{"seed", fmt::format("{:#x}", runtime_.fabric().seed())},
		 {"ethernet", describe_ethernet(*ethernets)}};
}

std::optional<std::string> FabricView::step()
{
	// Parts that the view has not described yet may have been removed.
	if (changes_ != runtime_.changes())
		begin();
	for (std::size_t left = kItemsPerStep; section_ < sections_.size(); --left) {
		if (left == 0 && begins_ < kMostBegins)
			return std::nullopt;
		const Section &section = sections_[section_];
		if (item_ == 0)
			text_ += fmt::format("\"{}\":[", section.name);
		if (item_ < section.items) {
			text_ += item_ ? "," : "";
			text_ += json_text(section.describe(item_++));
		}
		if (item_ < section.items)
			continue;
		text_ += "],";
		++section_;
		item_ = 0;
	}
	rest_["subnet_manager"] = state_of_manager(runtime_);
	rest_["subnet_managers"] = states_of_managers(runtime_);
	// Ports of other places of the lab have LIDs only in the subnet of the manager's place.
	if (with_lids_)
		rest_["lids"] = lids_of_subnet(runtime_);
	return text_ + json_text(rest_).substr(1);
}

} // namespace weft::weftd
