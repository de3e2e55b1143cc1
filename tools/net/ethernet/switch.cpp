// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/switch.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace weft::ethernet
{

Port &Switch::add_port()
{
	unsigned number = 1;
	while (numbers_.contains(number))
		++number;
	return add_port(number);
}

Port &Switch::add_port(unsigned number)
{
	if (number < 1 || number > kMostPorts)
		throw std::length_error(
			fmt::format("{} has {} ports, and no more", name_, kMostPorts));
	const auto name = fmt::format("{}/{}", name_, number);
	if (numbers_.contains(number))
		throw std::invalid_argument(fmt::format("there is a port {} already", name));
	Port &port = add(name, 1, false);
	numbers_[number] = &port;
	return port;
}

Port &Switch::add_trunk_port(const std::string &name, unsigned hosts)
{
	return add(name, hosts, true);
}

Port &Switch::add(const std::string &name, unsigned hosts, bool trunk)
{
	if (hosts > kMostPorts - hosts_)
		throw std::length_error(
			fmt::format("{} has {} hosts, and no more", name_, kMostPorts));
	SwitchPort &added = ports_.emplace_back();
	added.hosts = hosts;
	added.trunk = trunk;
	added.port = std::make_unique<Port>(
		name, [this, &added](const FramePtr &frame) { forward(added, frame); });
	hosts_ += hosts;
	return *added.port;
}

Switch::Ports::iterator Switch::find_port(const Port &port)
{
	return std::ranges::find_if(
		ports_, [&](const SwitchPort &each) { return each.port.get() == &port; });
}

void Switch::remove_port(const Port &port)
{
	const auto found = find_port(port);
	forget(*found);
	hosts_ -= found->hosts;
	std::erase_if(numbers_, [&](const auto &entry) { return entry.second == &port; });
	ports_.erase(found);
}

void Switch::forget(const Port &port)
{
	forget(*find_port(port));
}

void Switch::forget(SwitchPort &port)
{
	for (const Address address : port.addresses)
		table_.erase(address);
	port.addresses.clear();
}

void Switch::forward(SwitchPort &from, const FramePtr &frame)
{
	learn(from, source_of(*frame));
	const Address destination = destination_of(*frame);
	if (is_of_one_link(destination))
		return;
	if (const SwitchPort *to = is_group(destination) ? nullptr : find(destination)) {
		// If the destination is on the sender's port, or both are behind trunks, it has
		// received the frame already.
		if (may_pass(from, *to))
			to->port->send(frame);
		return;
	}
	if (!may_flood(from, *frame)) {
		++from.port->counters.rcv_storm_discards;
		return;
	}
	for (SwitchPort &to : ports_)
		if (may_pass(from, to))
			to.port->send(frame);
}

namespace
{

// Returns the time that the flood limit permits for @bytes. Computed exactly, so that rounding
// errors do not admit frames above the limit over time.
constexpr Clock::duration time_for(std::uint64_t bytes)
{
	constexpr std::uint64_t per_second = 1'000'000'000;
	static_assert(per_second % Switch::kFloodRate == 0);
	return std::chrono::nanoseconds(bytes * (per_second / Switch::kFloodRate));
}

static_assert((kMostFrame + Switch::kCopyOverhead) * Switch::kMostPorts <= Switch::kFloodAtOnce,
	      "the largest frame could never be sent to all ports");

} // namespace

bool Switch::may_flood(SwitchPort &from, const Frame &frame)
{
	const auto now = loop_.now();
	// A frame from a host counts the same wherever the other hosts are.
	unsigned copies = 0;
	for (const SwitchPort &to : ports_)
		copies += may_pass(from, to) ? to.hosts : 0;
	const auto cost = time_for((frame.size() + kCopyOverhead) * copies);
	// Rounded up, so that the limit is exact.
	const auto flooded =
		std::max(from.flooded, now) + (cost + Clock::duration(from.hosts - 1)) / from.hosts;
	if (flooded - now > time_for(kFloodAtOnce))
		return false;
	from.flooded = flooded;
	return true;
}

void Switch::learn(SwitchPort &from, Address address)
{
	// Group addresses and zero are not the address of a single station.
	if (is_group(address) || address == 0)
		return;
	// Otherwise, another daemon could take the frames of a host of this daemon. A host that has
	// sent nothing for a while may have moved.
	if (const auto local = table_.find(address); from.trunk && local != table_.end() &&
						     !local->second.behind->trunk &&
						     loop_.now() - local->second.seen < kProtected)
		return;
	const auto [entry, is_new] = table_.try_emplace(address);
	Known &known = entry->second;
	known.seen = loop_.now();
	if (!is_new) {
		from.addresses.splice(from.addresses.end(), known.behind->addresses, known.place);
	} else {
		from.addresses.push_back(address);
	}
	known.behind = &from;
	known.place = std::prev(from.addresses.end());
	if (from.addresses.size() > kMostAddresses * from.hosts) {
		table_.erase(from.addresses.front());
		from.addresses.pop_front();
	}
}

Switch::SwitchPort *Switch::find(Address address)
{
	const auto found = table_.find(address);
	if (found == table_.end())
		return nullptr;
	SwitchPort *const behind = found->second.behind;
	if (loop_.now() - found->second.seen <= kAgeing)
		return behind;
	behind->addresses.erase(found->second.place);
	table_.erase(found);
	return nullptr;
}

} // namespace weft::ethernet
