// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decides how far each place of a lab in virtual time may advance. The places work in rounds: each
// reports the time of its next event, and all advance to the earliest of these times plus the
// lookahead, which is the smallest delay of a trunk. A packet that is sent in a round therefore
// never arrives before the limit of that round.
//
// The places are not trusted: a report or packet that contradicts the protocol is refused. This
// code uses no sockets (see round_server.hpp).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "virtual_time/round_frame.hpp"

namespace weft::virtual_time
{

// A link between two places.
struct RoundTrunk {
	std::array<std::size_t, 2> places{};
	std::chrono::nanoseconds delay{0}; // greater than 0
};

class Rounds
{
public:
	// Bytes of packets that one direction of a trunk may have in a round, including
	// kPacketBytes for each packet. The flow control of the trunk permits fewer.
	static constexpr std::size_t kMostBytes = 32 << 20;
	static constexpr std::size_t kPacketBytes = 64;
	// The lookahead without trunks.
	static constexpr std::chrono::nanoseconds kNoTrunks = std::chrono::seconds(1);

	Rounds(std::vector<std::string> places, std::vector<RoundTrunk> trunks);

	// These return what is wrong, or an empty string. @place must be lower than places().
	std::string join(std::size_t place);
	std::string take_packet(std::size_t place, RoundPacket packet);
	std::string take_report(std::size_t place, const RoundReport &report);
	// The place ends with this round.
	std::string take_end(std::size_t place, RoundEnd end);

	std::size_t places() const { return places_.size(); }
	const std::string &name(std::size_t place) const { return places_[place].name; }
	bool joined(std::size_t place) const { return places_[place].joined; }
	bool ended(std::size_t place) const { return places_[place].ended.has_value(); }

	struct Grant {
		std::uint64_t round = 0;
		std::uint64_t limit = 0;
		// For each place, sorted by arrival, trunk and number.
		std::vector<std::vector<RoundPacket>> packets;
	};
	// If all places have reported, begins the next round. Returns nothing otherwise, if no
	// place has an event, or if the lab ends.
	std::optional<Grant> advance();
	// If all places have reported, and one of them has ended or all are finished, returns the
	// end of the lab.
	std::optional<RoundEnd> end() const;

	// Returns the places that have not joined or reported, as in "p2, p3".
	std::string awaited() const;
	std::uint64_t limit() const { return limit_; }
	std::uint64_t round() const { return round_; }

private:
	struct Place {
		std::string name;
		bool joined = false;
		bool reported = false;
		bool finished = false;
		std::uint64_t next = kNoTime;
		std::optional<RoundEnd> ended;
		std::vector<RoundPacket> packets; // for this place
	};
	// Of one direction of a trunk.
	struct Direction {
		std::uint64_t packets = 0; // so far
		std::size_t bytes = 0;     // in this round
	};

	bool complete() const;

	std::vector<Place> places_;
	std::vector<RoundTrunk> trunks_;
	std::vector<std::array<Direction, 2>> directions_;
	std::uint64_t lookahead_;
	std::uint64_t round_ = 0;
	// What is done at the start of the lab belongs to round 0.
	std::uint64_t limit_ = 1;
};

} // namespace weft::virtual_time
