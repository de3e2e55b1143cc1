// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Maps IP addresses to Ethernet addresses by ARP (RFC 826), and queues frames until an address is
// known.
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
	// Limit of neighbours whose address was requested and is not known yet.
	static constexpr std::size_t kMostUnknown = 64;
	// Limit of the frames that wait for an address (the newest are kept), number of requests,
	// and time to wait for each answer.
	static constexpr std::size_t kMostWaiting = 4;
	static constexpr unsigned kMostTries = 3;
	static constexpr Clock::duration kRetryInterval = std::chrono::seconds(1);
	// Age after which an address is requested again.
	static constexpr Clock::duration kAgeing = std::chrono::seconds(60);

	// @ask sends a request for the address. @unreachable is called if there was no answer.
	Neighbours(Loop &loop, std::function<void(Ip)> ask, std::function<void(Ip)> unreachable);

	// Purpose of a frame: an answer, which any host can provoke with any source address, or
	// traffic of this host. Entries for answers never replace those for this host's traffic.
	enum class For { answer, self };

	// Calls @send with the neighbour's hardware address, now or when it becomes known. Does not
	// call it if the address never becomes known.
	void reach(Ip address, For what, std::function<void(Mac)> send);
	// Handles an ARP reply, if the address was requested or is known.
	void learn(Ip address, Mac mac);
	// Records the sender of an ARP request for this host, because the sender is about to send
	// to this host.
	void learn_anew(Ip address, Mac mac);

	// Returns true if a host has announced that it has this address.
	bool knows(Ip address) const;
	std::size_t size() const { return known_.size(); }

private:
	struct Neighbour {
		Mac mac = 0;                // 0: not known
		Clock::time_point since{};  // time when it became known, or of the last request
		Clock::time_point wanted{}; // last use for this host's own traffic
		unsigned tries = 0;         // number of requests so far
		std::vector<std::function<void(Mac)>> waiting{};
	};

	Neighbour &entry_for(Ip address);
	void drop_oldest(bool unknown);
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
