// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/rounds.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace weft::virtual_time
{

Rounds::Rounds(std::vector<std::string> places, std::vector<RoundTrunk> trunks)
    : places_(places.size()), trunks_(std::move(trunks)), directions_(trunks_.size()),
      lookahead_(static_cast<std::uint64_t>(kNoTrunks.count()))
{
	for (std::size_t i = 0; i < places.size(); ++i)
		places_[i].name = std::move(places[i]);
	for (const RoundTrunk &trunk : trunks_) {
		const auto delay = static_cast<std::uint64_t>(trunk.delay.count());
		if (trunk.delay.count() <= 0 || delay >= kNoTime)
			throw std::invalid_argument("a trunk in virtual time needs a delay");
		lookahead_ = std::min(lookahead_, delay);
	}
}

std::string Rounds::join(std::size_t place)
{
	if (std::exchange(places_[place].joined, true))
		return "it has joined already";
	return {};
}

std::string Rounds::take_packet(std::size_t place, RoundPacket packet)
{
	if (places_[place].reported)
		return "it sends a packet after its report";
	if (packet.trunk >= trunks_.size())
		return "it sends a packet to a trunk that does not exist";
	const RoundTrunk &trunk = trunks_[packet.trunk];
	if (trunk.places[0] != place && trunk.places[1] != place)
		return "it sends a packet to the trunk of other places";
	if (packet.arrival < limit_)
		return "it sends a packet that arrives in the past, at " +
		       seconds_text(packet.arrival) + " s, but the round ends at " +
		       seconds_text(limit_) + " s";
	if (packet.arrival >= limit_ + static_cast<std::uint64_t>(trunk.delay.count()))
		return "it sends a packet that arrives after the delay of the trunk, at " +
		       seconds_text(packet.arrival) + " s";
	const unsigned side = trunk.places[0] == place ? 0 : 1;
	Direction &direction = directions_[packet.trunk][side];
	if (packet.number != direction.packets)
		return "a packet of a trunk is missing or repeated";
	const std::size_t bytes = packet.frame.size() + kPacketBytes;
	if (bytes > kMostBytes - direction.bytes)
		return "it sends too many packets in a round";
	direction.bytes += bytes;
	++direction.packets;
	// Packets to a place that has ended are lost.
	if (Place &to = places_[trunk.places[1 - side]]; !to.ended)
		to.packets.push_back(std::move(packet));
	return {};
}

std::string Rounds::take_report(std::size_t place, const RoundReport &report)
{
	Place &from = places_[place];
	if (from.reported)
		return "it reports twice in a round";
	if (report.round != round_)
		return "it reports the round " + std::to_string(report.round) + " in the round " +
		       std::to_string(round_);
	if (report.next < limit_)
		return "it reports an event at " + seconds_text(report.next) +
		       " s, which it should have executed, because the round ends at " +
		       seconds_text(limit_) + " s";
	from.reported = true;
	from.finished = report.finished != 0;
	from.next = report.next;
	return {};
}

std::string Rounds::take_end(std::size_t place, RoundEnd end)
{
	Place &from = places_[place];
	if (from.ended)
		return "it ends twice";
	from.ended = std::move(end);
	from.reported = true;
	from.next = kNoTime;
	return {};
}

bool Rounds::complete() const
{
	return std::ranges::all_of(places_,
				   [](const Place &each) { return each.joined && each.reported; });
}

std::optional<RoundEnd> Rounds::end() const
{
	if (!complete())
		return std::nullopt;
	// A failure has precedence, and then the order of the places in the lab.
	for (const bool failed : {true, false})
		for (const Place &each : places_)
			if (each.ended && each.ended->failed == failed)
				return each.ended;
	if (std::ranges::all_of(places_, &Place::finished))
		return RoundEnd{false, "all scripts have ended"};
	return std::nullopt;
}

std::optional<Rounds::Grant> Rounds::advance()
{
	if (!complete() || end())
		return std::nullopt;
	std::uint64_t first = kNoTime;
	for (const Place &each : places_) {
		first = std::min(first, each.next);
		for (const RoundPacket &packet : each.packets)
			first = std::min(first, packet.arrival);
	}
	if (first == kNoTime)
		return std::nullopt;
	limit_ = std::min(first + lookahead_, kNoTime);
	Grant grant{++round_, limit_, {}};
	for (Place &each : places_) {
		each.reported = false;
		std::ranges::sort(each.packets, {}, [](const RoundPacket &packet) {
			return std::tuple(packet.arrival, packet.trunk, packet.number);
		});
		grant.packets.push_back(std::exchange(each.packets, {}));
	}
	for (auto &directions : directions_)
		for (Direction &each : directions)
			each.bytes = 0;
	return grant;
}

std::string Rounds::awaited() const
{
	std::string names;
	for (const Place &each : places_)
		if (!each.joined || !each.reported)
			names += (names.empty() ? "" : ", ") + each.name;
	return names;
}

} // namespace weft::virtual_time
