// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Models a learning switch (IEEE 802.1Q clause 8). It forwards a frame to the port on which it has
// seen the destination address, or floods it to all ports except the ingress port. It runs on one
// loop, like its links.
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
	// Limit of the addresses that are learned from one port. Beyond it, the least recently used
	// address of that port is dropped; those of other ports stay.
	static constexpr std::size_t kMostAddresses = 256;
	static constexpr std::chrono::seconds kAgeing{300};
	// Limits of the bytes that the switch copies to other ports because one port floods frames:
	// in a burst, and per second. A frame counts once for each port that gets it.
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
	// @port must not have a link.
	void remove_port(const Port &port);

private:
	struct SwitchPort {
		std::unique_ptr<Port> port;
		std::list<Address> addresses; // learned from this port, least recently used first
		// Time at which a burst of kFloodAtOnce bytes would be permitted again.
		Clock::time_point flooded{};
	};
	struct Known {
		SwitchPort *behind;
		std::list<Address>::iterator place;
		Clock::time_point seen;
	};

	void forward(SwitchPort &from, const FramePtr &frame);
	bool may_flood(SwitchPort &from, const Frame &frame);
	void learn(SwitchPort &from, Address address);
	// Returns the port on which @address was learned, or null if the address is not known.
	SwitchPort *find(Address address);

	Loop &loop_;
	const std::string name_;
	std::map<unsigned, SwitchPort> ports_; // indexed by number
	std::unordered_map<Address, Known> table_;
};

} // namespace weft::ethernet
