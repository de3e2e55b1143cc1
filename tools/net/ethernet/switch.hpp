// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Models a learning switch (IEEE 802.1Q clause 8). It forwards a frame to the port on which it has
// seen the destination address, or floods it to all ports except the ingress port. It runs on one
// loop, like its links.
//
// If several daemons run a segment, each has a switch for its hosts, and a trunk port for each of
// the other daemons. A frame from a trunk port is never sent to a trunk port (split horizon): the
// daemon that has sent it has sent it to the other daemons, too. There are therefore no loops.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/loop.hpp"
#include "net/ethernet/link.hpp"

namespace weft::ethernet
{

class Switch
{
public:
	static constexpr unsigned kMostPorts = 254;
	// The following limits are for a port of a host. A trunk port has those of all hosts behind
	// it together, because they would have them as hosts of this daemon.
	//
	// Limit of the addresses that are learned from one port. Beyond it, the least recently used
	// address of that port is dropped; those of other ports stay.
	static constexpr std::size_t kMostAddresses = 256;
	static constexpr std::chrono::seconds kAgeing{300};
	// Time for which a frame of a host of this daemon prevents that its address is learned from
	// a trunk.
	static constexpr std::chrono::seconds kProtected{2};
	// Limits of the bytes that the switch copies to other ports because one port floods frames:
	// in a burst, and per second. A frame counts once for each host that gets it.
	static constexpr std::uint64_t kFloodAtOnce = 8 << 20;
	static constexpr std::uint64_t kFloodRate = 125'000'000;
	// Overhead of a copy, which is added to its bytes.
	static constexpr std::uint64_t kCopyOverhead = 256;

	Switch(Loop &loop, std::string name) : loop_(loop), name_(std::move(name)) {}
	Switch(const Switch &) = delete;
	Switch &operator=(const Switch &) = delete;

	const std::string &name() const { return name_; }
	std::size_t addresses() const { return table_.size(); }

	// Adds a port with the lowest free number. Throws std::length_error if there is none.
	Port &add_port();
	// Adds a port with this number, from 1 to kMostPorts. Throws std::length_error for another
	// number, and std::invalid_argument if the port exists.
	Port &add_port(unsigned number);
	// Adds a trunk port with this name, to a daemon that has @hosts hosts of the segment, at
	// least 1. Throws std::length_error if there would be more than kMostPorts hosts.
	Port &add_trunk_port(const std::string &name, unsigned hosts);
	// @port must not have a link.
	void remove_port(const Port &port);
	// Forgets all addresses that were learned from this port.
	void forget(const Port &port);

private:
	struct SwitchPort {
		std::unique_ptr<Port> port;
		std::list<Address> addresses; // learned from this port, least recently used first
		// Time at which a burst of kFloodAtOnce bytes would be permitted again.
		Clock::time_point flooded{};
		unsigned hosts = 1; // number of hosts behind the port
		bool trunk = false;
	};
	using Ports = std::list<SwitchPort>;
	struct Known {
		SwitchPort *behind;
		std::list<Address>::iterator place;
		Clock::time_point seen;
	};

	Port &add(const std::string &name, unsigned hosts, bool trunk);
	Ports::iterator find_port(const Port &port);
	void forget(SwitchPort &port);
	// Returns true if a frame from one port may be sent to the other.
	static bool may_pass(const SwitchPort &from, const SwitchPort &to)
	{
		return &from != &to && !(from.trunk && to.trunk);
	}
	void forward(SwitchPort &from, const FramePtr &frame);
	bool may_flood(SwitchPort &from, const Frame &frame);
	void learn(SwitchPort &from, Address address);
	// Returns the port on which @address was learned, or null if the address is not known.
	SwitchPort *find(Address address);

	Loop &loop_;
	const std::string name_;
	Ports ports_;
	std::map<unsigned, const Port *> numbers_; // those of hosts
	unsigned hosts_ = 0;                       // behind all ports
	std::unordered_map<Address, Known> table_;
};

} // namespace weft::ethernet
