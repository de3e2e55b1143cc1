// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tcp/neighbours.hpp"

#include <algorithm>
#include <utility>

namespace weft::tcp
{

Neighbours::Neighbours(Loop &loop, std::function<void(Ip)> ask, std::function<void(Ip)> unreachable)
    : loop_(loop), ask_(std::move(ask)), unreachable_(std::move(unreachable)),
      timer_(loop, [this] { run(); })
{
}

void Neighbours::reach(Ip address, std::function<void(Mac)> send)
{
	const auto found = known_.find(address);
	Neighbour *const neighbour = found != known_.end() ? &found->second : place_for(address);
	if (!neighbour)
		return;
	if (neighbour->mac) {
		const Mac mac = neighbour->mac;
		if (!neighbour->tries && loop_.now() - neighbour->since > kAgeing)
			ask(address, *neighbour);
		return send(mac);
	}
	if (neighbour->waiting.size() == kMostWaiting)
		neighbour->waiting.erase(neighbour->waiting.begin());
	neighbour->waiting.push_back(std::move(send));
	if (!neighbour->tries)
		ask(address, *neighbour);
}

void Neighbours::ask(Ip address, Neighbour &neighbour)
{
	++neighbour.tries;
	neighbour.since = loop_.now();
	ask_(address);
	arm();
}

void Neighbours::learn(Ip address, Mac mac)
{
	if (known_.contains(address))
		learn_anew(address, mac);
}

void Neighbours::learn_anew(Ip address, Mac mac)
{
	// Nobody is many, or no one.
	if (!mac || mac >> 40 & 1)
		return;
	const auto found = known_.find(address);
	Neighbour *const neighbour = found != known_.end() ? &found->second : place_for(address);
	if (!neighbour)
		return;
	neighbour->mac = mac;
	neighbour->since = loop_.now();
	neighbour->tries = 0;
	for (const auto &send : std::exchange(neighbour->waiting, {}))
		send(mac);
	arm();
}

// The one that was heard of longest ago makes room; not one that is being asked for.
Neighbours::Neighbour *Neighbours::place_for(Ip address)
{
	if (known_.size() == kMostNeighbours) {
		auto oldest = known_.end();
		for (auto it = known_.begin(); it != known_.end(); ++it)
			if (!it->second.tries &&
			    (oldest == known_.end() || it->second.since < oldest->second.since))
				oldest = it;
		if (oldest == known_.end())
			return nullptr;
		known_.erase(oldest);
	}
	return &known_[address];
}

void Neighbours::run()
{
	std::vector<Ip> lost;
	for (auto it = known_.begin(); it != known_.end();) {
		auto &[address, neighbour] = *it;
		if (!neighbour.tries || loop_.now() - neighbour.since < kPatience) {
			++it;
			continue;
		}
		if (neighbour.tries < kMostTries) {
			++neighbour.tries;
			neighbour.since = loop_.now();
			ask_(address);
			++it;
			continue;
		}
		lost.push_back(address);
		it = known_.erase(it);
	}
	arm();
	for (const Ip address : lost)
		unreachable_(address);
}

void Neighbours::arm()
{
	auto next = Clock::time_point::max();
	for (const auto &[address, neighbour] : known_)
		if (neighbour.tries)
			next = std::min(next, neighbour.since + kPatience);
	if (next == Clock::time_point::max())
		timer_.cancel();
	else
		timer_.arm_at(next);
}

} // namespace weft::tcp
