// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Maps IP addresses to hardware addresses (RFC 826), and queues frames until an address is known.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "base/loop.hpp"
#include "net/tcp/wire.hpp"

namespace weft::tcp
{

class Neighbours
{
public:
	static constexpr std::size_t kMostNeighbours = 256;
	// Limit of those among them that are wanted but not known.
	static constexpr std::size_t kMostUnknown = 64;
	// Frames that wait for one's address, the newest; times that it is asked for, and how long
	// an answer is waited for.
	static constexpr std::size_t kMostWaiting = 4;
	static constexpr unsigned kMostTries = 3;
	static constexpr Clock::duration kPatience = std::chrono::seconds(1);
	// After which an address is asked for again.
	static constexpr Clock::duration kAgeing = std::chrono::seconds(60);

	// @ask: sends a request for the address. @unreachable: nobody has answered.
	Neighbours(Loop &loop, std::function<void(Ip)> ask, std::function<void(Ip)> unreachable);

	// Purpose of a frame: an answer, which anybody can provoke with any source address, or own
	// traffic of this host. Answers take no place from own traffic.
	enum class For { answer, self };

	// Calls @send with the neighbour's hardware address, now or when it is known, if it ever
	// is.
	void reach(Ip address, For what, std::function<void(Mac)> send);
	// Takes an ARP reply, if the address was asked for or is known.
	void learn(Ip address, Mac mac);
	// Takes the sender of an ARP request for this host, which is about to send to it.
	void learn_anew(Ip address, Mac mac);

	// Returns true if a host has announced that it has this address.
	bool knows(Ip address) const;
	std::size_t size() const { return known_.size(); }

private:
	struct Neighbour {
		Mac mac = 0;                // 0: not known
		Clock::time_point since{};  // known, or asked last
		Clock::time_point wanted{}; // for this host itself, last
		unsigned tries = 0;         // while it is asked for
		std::vector<std::function<void(Mac)>> waiting{};
	};

	Neighbour &place_for(Ip address);
	void make_room(bool unknown);
	void ask(Ip address, Neighbour &neighbour);
	void run();
	void arm();

	Loop &loop_;
	const std::function<void(Ip)> ask_;
	const std::function<void(Ip)> unreachable_;
	std::map<Ip, Neighbour> known_;
	Timer timer_;
};

} // namespace weft::tcp
