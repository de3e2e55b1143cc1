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

// A link between two places.
struct PlannedTrunk {
	std::size_t link; // index in Lab::links
	// Indices of places; the one that comes first in the file listens.
	std::size_t listens, connects;
	unsigned index; // among the trunks for which that place listens
};

struct Plan {
	std::vector<LabPlace> places;
	// Indices of places by the names of nodes, trunks and Ethernets.
	std::map<std::string, std::size_t, std::less<>> place_of;
	std::vector<PlannedTrunk> trunks; // in the order of the links

	// Returns the index of a place. Throws std::invalid_argument if there is none.
	std::size_t find(const std::string &name) const;
	// Gives addresses without a port the default port. Throws LabError if ports of two places
	// then overlap.
	void use_default_ports();
};

// Throws LabError if the lab cannot be divided, and std::invalid_argument for wrong options.
Plan make_plan(const Lab &lab, const PlanOptions &options);

} // namespace weft::weftd
