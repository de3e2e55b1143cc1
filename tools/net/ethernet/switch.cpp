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
	while (ports_.contains(number))
		++number;
	if (number > kMostPorts)
		throw std::length_error(
			fmt::format("{} has {} ports, and no more", name_, kMostPorts));
	SwitchPort &added = ports_[number];
	added.port = std::make_unique<Port>(
		fmt::format("{}/{}", name_, number),
		[this, &added](const FramePtr &frame) { forward(added, frame); });
	return *added.port;
}

void Switch::remove_port(const Port &port)
{
	const auto found = std::ranges::find_if(
		ports_, [&](const auto &entry) { return entry.second.port.get() == &port; });
	for (const Address address : found->second.addresses)
		table_.erase(address);
	ports_.erase(found);
}

void Switch::forward(SwitchPort &from, const FramePtr &frame)
{
	learn(from, source_of(*frame));
	const Address destination = destination_of(*frame);
	if (is_of_one_link(destination))
		return;
	if (const SwitchPort *to = is_group(destination) ? nullptr : find(destination)) {
		// If the destination is on the sender's port, it has received the frame already.
		if (to != &from)
			to->port->send(frame);
		return;
	}
	if (!may_flood(from, *frame)) {
		++from.port->counters.rcv_storm_discards;
		return;
	}
	for (auto &[number, to] : ports_)
		if (&to != &from)
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
	const auto flooded = std::max(from.flooded, now) +
			     time_for((frame.size() + kCopyOverhead) * (ports_.size() - 1));
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
	if (from.addresses.size() > kMostAddresses) {
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
