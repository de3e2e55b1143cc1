// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Answers requests on the control socket about a lab's Ethernet segments.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "net/ethernet/network.hpp"

namespace weft::weftd
{

// Describes a link like an InfiniBand link, with only the settings that it has.
nlohmann::json describe_ethernet_link(const ethernet::LinkState &link);
// Returns "ethernet" of "fabric.show": switches, attachments and links.
nlohmann::json describe_ethernet(const ethernet::NetworkState &state);
// Describes an attachment, as "ethernet" of its host.
nlohmann::json describe_attachment(const ethernet::AttachmentState &attachment);
// Returns counters by port and name.
nlohmann::json ethernet_counters(const ethernet::NetworkState &state);

// Stores the latest values of "ethernet" of "fabric.sample": the names of the counters, the ports
// with their values, whether each link is up, and the links that have a guest or a card at their
// end.
class EthernetSampler
{
public:
	// Takes a sample. Returns false if the ports are not those of the sample before.
	bool sample(const ethernet::NetworkState &state, std::uint64_t generation);
	// Returns what has changed after the generation @since; everything if it is 0.
	nlohmann::json changes(std::uint64_t since) const;

private:
	static constexpr std::size_t kColumns = 11;

	struct PortSample {
		std::string name;
		std::array<std::uint64_t, kColumns> values;
		std::uint64_t changed; // generation
	};

	std::vector<PortSample> ports_;
	std::vector<std::pair<std::string, bool>> links_; // true if the link is up
	std::vector<std::string> attached_;
	std::uint64_t links_changed_ = 0, attached_changed_ = 0;
};

// The captures of Ethernet links that one client has started.
class EthernetCaptures
{
public:
	explicit EthernetCaptures(ethernet::Network &network) : network_(network) {}

	// Returns the attachments that @name selects: that of one link, or all of the segment with
	// that name. Returns none if there is no such link or segment.
	std::vector<ethernet::AttachmentState> find(const std::string &name) const;
	// Records the links of @attachments to @file. Throws std::runtime_error.
	void start(const std::vector<ethernet::AttachmentState> &attachments,
		   const std::filesystem::path &file, std::uint64_t most_bytes, bool at_once);
	// Writes all frames to the file, and returns their number.
	std::uint64_t flush() const;
	bool full() const;
	void stop();

private:
	ethernet::Network &network_;
	std::vector<std::shared_ptr<ethernet::Capture>> running_;
};

} // namespace weft::weftd
