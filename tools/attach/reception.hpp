// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Stores incoming RMPP messages for a program until they are complete (IBA 13.6).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/environment.hpp"
#include "core/mad/rmpp.hpp"
#include "net/fabric/mad_packet.hpp"

namespace weft::attach
{

// Limits of one opened port: messages being reassembled, and the bytes of all of them.
constexpr std::size_t kMostReceptions = 64;
constexpr std::size_t kMostReceivedBytes = std::size_t{16} << 20;
// Time without segments after which an incomplete message is dropped, and time for which
// repetitions of the last segment of a complete message are answered.
constexpr std::chrono::seconds kReceptionSilence{40};
constexpr std::chrono::seconds kReceptionLinger{10};

class Receptions
{
public:
	struct Taken {
		// True if the segment neither belongs to a message nor begins one, or if there is
		// no space.
		bool discarded = false;
		mad::RmppReceipt receipt{};
		std::uint32_t received = 0, window_last = 0; // for an ACK
		// the whole message, after its last segment
		std::vector<std::byte> message;
	};

	// Handles a DATA segment.
	Taken take(const fabric::AddressedMad &mad, Clock::time_point now);
	// Returns true if a message of this peer and transaction has begun.
	bool knows(const fabric::AddressedMad &mad) const
	{
		return messages_.contains(key_of(mad));
	}
	// Drops a message that the peer has aborted.
	void give_up(const fabric::AddressedMad &mad);
	void expire(Clock::time_point now);
	// Returns when expire() has work to do, or the clock's maximum if it has none.
	Clock::time_point due() const;

private:
	// Peer, class, direction and transaction.
	using Key = std::tuple<ib::Lid, std::uint32_t, std::uint8_t, bool, std::uint64_t>;
	struct Incoming {
		mad::RmppReceiver receiver;
		std::vector<std::byte> bytes;
		Clock::time_point due;
	};

	static Key key_of(const fabric::AddressedMad &mad);
	bool make_room();
	void end(std::map<Key, Incoming>::iterator message);

	std::map<Key, Incoming> messages_;
	std::size_t bytes_ = 0;
};

} // namespace weft::attach
