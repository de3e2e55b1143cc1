// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/ethernet_control.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "weftd/link_settings.hpp"

namespace weft::weftd
{

using nlohmann::json;

namespace
{

struct FrameCounter {
	const char *name;
	std::uint64_t ethernet::Counters::*value;
};

constexpr FrameCounter kFrameCounters[] = {
	{"xmit_frames", &ethernet::Counters::xmit_frames},
	{"xmit_bytes", &ethernet::Counters::xmit_bytes},
	{"rcv_frames", &ethernet::Counters::rcv_frames},
	{"rcv_bytes", &ethernet::Counters::rcv_bytes},
	{"rcv_group_frames", &ethernet::Counters::rcv_group_frames},
	{"rcv_fcs_errors", &ethernet::Counters::rcv_fcs_errors},
	{"rcv_discards", &ethernet::Counters::rcv_discards},
	{"xmit_discards", &ethernet::Counters::xmit_discards},
	{"xmit_undersize", &ethernet::Counters::xmit_undersize},
	{"xmit_oversize", &ethernet::Counters::xmit_oversize},
	{"rcv_storm_discards", &ethernet::Counters::rcv_storm_discards},
};

} // namespace

json describe_ethernet_link(const ethernet::LinkState &link)
{
	json settings = json::object();
	for (const auto name : ethernet_setting_names())
		settings[std::string(name)] = ethernet_setting(link.settings, name);
	json result{{"name", link.name},
		    {"ends", {link.ends[0].name, link.ends[1].name}},
		    {"up", link.settings.up},
		    {"settings", settings}};
	if (link.capture)
		result["captured_packets"] = link.capture->packets();
	return result;
}

json describe_attachment(const ethernet::AttachmentState &attachment)
{
	json result{{"name", attachment.name},
		    {"network", attachment.network},
		    {"guest", attachment.connected},
		    {"link", attachment.link.name}};
	// The attachment of a card has no socket.
	if (!attachment.socket.empty())
		result["socket"] = attachment.socket.string();
	return result;
}

json describe_ethernet(const ethernet::NetworkState &state)
{
	json result{{"switches", json::array()},
		    {"attachments", json::array()},
		    {"links", json::array()}};
	for (const auto &node : state.switches)
		result["switches"].push_back({{"name", node.name}, {"addresses", node.addresses}});
	for (const auto &attachment : state.attachments) {
		// A trunk is described with the other trunks.
		if (!attachment.trunk)
			result["attachments"].push_back(describe_attachment(attachment));
		result["links"].push_back(describe_ethernet_link(attachment.link));
	}
	return result;
}

bool EthernetSampler::sample(const ethernet::NetworkState &state, std::uint64_t generation)
{
	std::vector<PortSample> ports;
	std::vector<std::pair<std::string, bool>> links;
	std::vector<std::string> attached;
	for (const auto &attachment : state.attachments) {
		links.emplace_back(attachment.link.name, attachment.link.settings.up);
		if (attachment.connected)
			attached.push_back(attachment.link.name);
		for (const auto &end : attachment.link.ends) {
			ports.push_back({end.name, {}, generation});
			for (std::size_t i = 0; i < kColumns; ++i)
				ports.back().values[i] = end.counters.*kFrameCounters[i].value;
		}
	}
	const bool same =
		std::ranges::equal(ports, ports_, {}, &PortSample::name, &PortSample::name);
	for (std::size_t i = 0; same && i < ports.size(); ++i)
		if (ports[i].values == ports_[i].values)
			ports[i].changed = ports_[i].changed;
	if (links != links_)
		links_changed_ = generation;
	if (attached != attached_)
		attached_changed_ = generation;
	ports_ = std::move(ports);
	links_ = std::move(links);
	attached_ = std::move(attached);
	return same;
}

json EthernetSampler::changes(std::uint64_t since) const
{
	static_assert(std::size(kFrameCounters) == kColumns);
	json result{{"ports", json::object()}};
	if (since == 0)
		for (const FrameCounter &counter : kFrameCounters)
			result["columns"].push_back(counter.name);
	for (const PortSample &each : ports_)
		if (each.changed > since)
			result["ports"][each.name] = each.values;
	if (since == 0 || links_changed_ > since) {
		auto &links = result["links"] = json::object();
		for (const auto &[name, up] : links_)
			links[name] = up;
	}
	if (since == 0 || attached_changed_ > since)
		result["attached"] = attached_;
	return result;
}

json ethernet_counters(const ethernet::NetworkState &state)
{
	json result = json::object();
	for (const auto &attachment : state.attachments)
		for (const auto &end : attachment.link.ends)
			for (const FrameCounter &counter : kFrameCounters)
				result[end.name][counter.name] = end.counters.*counter.value;
	return result;
}

std::vector<ethernet::AttachmentState> EthernetCaptures::find(const std::string &name) const
{
	std::vector<ethernet::AttachmentState> found = network_.state().attachments;
	std::erase_if(found, [&](const ethernet::AttachmentState &attachment) {
		return name != attachment.network && name != attachment.link.name &&
		       name != attachment.link.ends[0].name && name != attachment.link.ends[1].name;
	});
	return found;
}

void EthernetCaptures::start(const std::vector<ethernet::AttachmentState> &attachments,
			     const std::filesystem::path &file, std::uint64_t most_bytes,
			     bool at_once)
{
	for (const auto &attachment : attachments)
		if (attachment.link.capture)
			throw std::runtime_error(
				fmt::format("link {} is captured already", attachment.link.name));
	auto capture = std::make_shared<ethernet::Capture>(file.string(), network_.environment(),
							   most_bytes);
	if (at_once)
		capture->write_at_once();
	for (const auto &attachment : attachments)
		network_.set_capture(attachment.name, capture);
	running_.push_back(std::move(capture));
}

std::uint64_t EthernetCaptures::flush() const
{
	std::uint64_t frames = 0;
	for (const auto &capture : running_) {
		capture->flush();
		frames += capture->packets();
	}
	return frames;
}

bool EthernetCaptures::full() const
{
	return std::ranges::any_of(running_, [](const auto &capture) { return capture->full(); });
}

void EthernetCaptures::stop()
{
	// The link may have been removed, or another client may have started a capture on it.
	for (const auto &attachment : network_.state().attachments)
		if (std::ranges::find(running_, attachment.link.capture) != running_.end())
			network_.set_capture(attachment.name, nullptr);
	for (const auto &capture : running_)
		capture->flush();
	running_.clear();
}

} // namespace weft::weftd
