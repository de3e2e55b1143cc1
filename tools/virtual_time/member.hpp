// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The state of one guest in a time server, as determined by the guest's messages. It uses no
// socket: a socket, a test or a fuzzer passes it the messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "virtual_time/protocol.hpp"

namespace weft::virtual_time
{

class Member
{
public:
	enum class State {
		unidentified, // has not sent its number
		ready,        // has sent it; the acknowledgement follows with its first time slice
		running,
		waiting,
	};

	State state() const { return state_; }
	// The member's number; valid from Ready on.
	std::uint64_t number() const { return number_; }
	// Time of its next slice, if it is Ready or Waiting; nothing if none is planned.
	std::optional<std::uint64_t> due() const { return due_; }

	// Answer to a message at that time, if there is one; or why the message is invalid.
	struct Outcome {
		std::optional<Message> answer;
		const char *trouble = nullptr;
	};
	Outcome take(const Message &message, std::uint64_t now, std::uint64_t time_of_day);

	// Returns the message that starts the turn of a member that is Ready or Waiting.
	Message run(std::uint64_t now);

private:
	State state_ = State::unidentified;
	std::uint64_t number_ = 0;
	std::optional<std::uint64_t> due_;
	std::uint32_t start_ = 0;     // the sequence number of the Start that must be acknowledged
	std::uint32_t sequence_ = 0;  // sequence number of the last Run
	bool unacknowledged_ = false; // that Run is not acknowledged
};

} // namespace weft::virtual_time
