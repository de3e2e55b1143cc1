// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Plans a lab that several daemons (places) run together: decides the place of each node, and which
// links become trunks between daemons.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weftd/lab.hpp"

namespace weft::weftd
{

constexpr std::size_t kMostPlaces = 64;
// The TCP port of the first trunk of a place whose address has none.
constexpr unsigned kTrunkPort = 7470;

bool has_trunk_port(const std::string &address);
// Returns an address of the lab file or of an option, with a port.
std::string with_trunk_port(const std::string &address);

// Switches to which a lab's subnet manager should be connected; empty if to any.
struct ManagerSwitches {
	std::set<std::string, std::less<>> names;
	std::string required_place; // empty if others may be used
};

// Returns the switches at the place of the subnet manager, if the lab file has places and does not
// specify the switch. Links of @lab need no port numbers yet. Throws LabError.
ManagerSwitches manager_switches(const Lab &lab);

struct PlanOptions {
	// The number of places, p1, p2 and so on, if the lab file has none.
	std::size_t places = 0;
	// Addresses of places by name, instead of those in the file.
	std::map<std::string, trunk::Address, std::less<>> peers;
};

// A link between two places, or between the parts of an Ethernet at two places.
struct PlannedTrunk {
	std::string name;
	std::string network; // the Ethernet; empty for a link
	std::size_t link;    // index in Lab::links, or SIZE_MAX for an Ethernet
	// Indices of places; the one that comes first in the file listens.
	std::size_t listens, connects;
	unsigned index; // among the trunks for which that place listens
};

struct Plan {
	std::vector<LabPlace> places;
	// Indices of places by the names of nodes and trunks.
	std::map<std::string, std::size_t, std::less<>> place_of;
	// The places at which an Ethernet has hosts, and their number. An Ethernet without hosts
	// is at the first place.
	std::map<std::string, std::map<std::size_t, unsigned>, std::less<>> ethernets;
	std::vector<PlannedTrunk> trunks; // in the order of the links, and then of the Ethernets

	// Returns the name of the part of an Ethernet that is at a place.
	std::string part_name(const std::string &network, std::size_t place) const;
	// Returns the name of the port of this part that leads to the part at another place.
	std::string port_name(const std::string &network, std::size_t place,
			      std::size_t peer) const;

	// Returns the index of a place. Throws std::invalid_argument if there is none.
	std::size_t find(const std::string &name) const;
	// Gives addresses without a port the default port. Throws LabError if ports of two places
	// then overlap.
	void use_default_ports();
};

// Throws LabError if the lab cannot be divided, and std::invalid_argument for wrong options.
Plan make_plan(const Lab &lab, const PlanOptions &options);

} // namespace weft::weftd
