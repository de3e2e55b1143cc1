// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The Ethernets of a lab: switches, stations for machines, links between them, on a loop of their
// own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.hpp"
#include "ethernet/attachment.hpp"
#include "ethernet/capture.hpp"
#include "ethernet/channel.hpp"
#include "ethernet/link.hpp"
#include "ethernet/switch.hpp"

namespace weft::ethernet
{

// How things are at a moment, as a copy.
struct PortState {
	std::string name;
	Counters counters;
};
struct LinkState {
	std::string name;
	PortState ends[2]; // the station's first
	LinkSettings settings;
	std::shared_ptr<Capture> capture;
};
struct StationState {
	std::string name;
	std::string network;          // its switch's name
	std::filesystem::path socket; // empty for a card's
	bool connected;
	LinkState link;
};
struct SwitchState {
	std::string name;
	std::size_t addresses; // that it knows
};
struct NetworkState {
	std::vector<SwitchState> switches;  // by name
	std::vector<StationState> stations; // by name
};

// Any thread may call it.
class Network
{
public:
	// All that is drawn follows from @seed. @reactor: drives it; null: a thread of its own.
	explicit Network(std::uint64_t seed, Reactor *reactor = nullptr);
	~Network();
	Network(const Network &) = delete;
	Network &operator=(const Network &) = delete;

	// Throw std::invalid_argument for a name that is there already, or is not. A switch must
	// have lost its stations.
	void add_switch(const std::string &name);
	void remove_switch(const std::string &name);
	// A station and its link to a switch. Throws std::system_error if @socket cannot be
	// listened on, std::length_error if the switch has no more ports; nothing has changed then.
	void add_station(const std::string &name, const std::string &network,
			 const std::filesystem::path &socket, const LinkSettings &settings);
	// The same for a card, which has the other end of @channel.
	void add_card(const std::string &name, const std::string &network,
		      std::shared_ptr<Channel> channel, const LinkSettings &settings);
	// Its machine, if it has one, loses its connection.
	void remove_station(const std::string &name);
	void set_link(const std::string &station, const LinkSettings &settings);
	// Null ends the one there is.
	void set_capture(const std::string &station, std::shared_ptr<Capture> capture);

	NetworkState state() const;
	Environment &environment() const { return loop_->environment(); }

private:
	struct Place {
		Switch *network;
		std::unique_ptr<Attachment> station;
		Port *facing; // the switch's
		std::unique_ptr<Link> link;
	};

	Switch &switch_of(const std::string &name);
	Place &place_of(const std::string &name);
	// @make: what is behind the place.
	void add(const std::string &name, const std::string &network, const LinkSettings &settings,
		 const std::function<std::unique_ptr<Attachment>()> &make);
	void remove(Place &place);

	const std::uint64_t seed_;
	const std::unique_ptr<Loop> loop_;
	// On the loop.
	std::map<std::string, std::unique_ptr<Switch>> switches_;
	std::map<std::string, Place> places_;
};

} // namespace weft::ethernet
