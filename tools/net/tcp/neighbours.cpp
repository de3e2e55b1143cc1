// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/tcp/neighbours.hpp"

#include <algorithm>
#include <utility>

namespace weft::tcp
{

Neighbours::Neighbours(Loop &loop, std::function<void(Ip)> ask, std::function<void(Ip)> unreachable)
    : loop_(loop), ask_(std::move(ask)), unreachable_(std::move(unreachable)),
      timer_(loop, [this] { run(); })
{
}

void Neighbours::reach(Ip address, For what, std::function<void(Mac)> send)
{
	Neighbour &neighbour = entry_for(address);
	if (what == For::self)
		neighbour.wanted = loop_.now();
	if (neighbour.mac) {
		const Mac mac = neighbour.mac;
		if (!neighbour.tries && loop_.now() - neighbour.since > kAgeing)
			ask(address, neighbour);
		return send(mac);
	}
	if (neighbour.waiting.size() == kMostWaiting)
		neighbour.waiting.erase(neighbour.waiting.begin());
	neighbour.waiting.push_back(std::move(send));
	if (!neighbour.tries)
		ask(address, neighbour);
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
	if (!is_unicast(mac))
		return;
	Neighbour &neighbour = entry_for(address);
	neighbour.mac = mac;
	neighbour.since = loop_.now();
	neighbour.tries = 0;
	for (const auto &send : std::exchange(neighbour.waiting, {}))
		send(mac);
	arm();
}

bool Neighbours::knows(Ip address) const
{
	const auto found = known_.find(address);
	return found != known_.end() && found->second.mac;
}

// Returns the entry of @address, and creates it if necessary. If kMostUnknown neighbours have not
// answered, a new entry replaces one of these. Otherwise, if the table is full, it replaces one
// that has answered.
Neighbours::Neighbour &Neighbours::entry_for(Ip address)
{
	if (const auto found = known_.find(address); found != known_.end())
		return found->second;
	const auto unknown =
		std::ranges::count_if(known_, [](const auto &each) { return !each.second.mac; });
	if (unknown >= static_cast<std::ptrdiff_t>(kMostUnknown))
		drop_oldest(true);
	else if (known_.size() == kMostNeighbours)
		drop_oldest(false);
	return known_[address];
}

// Drops the entry that this host has not used for the longest time. Among several such entries,
// drops the one with the oldest address or request. @unknown selects among the entries without an
// address, or those with one.
void Neighbours::drop_oldest(bool unknown)
{
	auto oldest = known_.end();
	const auto age = [](const Neighbour &each) { return std::pair(each.wanted, each.since); };
	for (auto it = known_.begin(); it != known_.end(); ++it)
		if (!it->second.mac == unknown &&
		    (oldest == known_.end() || age(it->second) < age(oldest->second)))
			oldest = it;
	known_.erase(oldest);
}

void Neighbours::run()
{
	std::vector<Ip> lost;
	for (auto it = known_.begin(); it != known_.end();) {
		auto &[address, neighbour] = *it;
		if (!neighbour.tries || loop_.now() - neighbour.since < kRetryInterval) {
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
			next = std::min(next, neighbour.since + kRetryInterval);
	if (next == Clock::time_point::max())
		timer_.cancel();
	else
		timer_.arm_at(next);
}

} // namespace weft::tcp
