// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tracks the state that one guest has in the time server. The guest's messages determine this
// state. This code uses no socket: the server of a socket, a test or a fuzzer passes it the
// messages.
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
		// has sent its number; the acknowledgement follows with its first time slice
		ready,
		running,
		waiting,
	};

	State state() const { return state_; }
	// Returns the member's number, which is valid from `ready` on.
	std::uint64_t number() const { return number_; }
	// Returns the time of the next time slice in the states `ready` and `waiting`, or nothing
	// if none is planned.
	std::optional<std::uint64_t> due() const { return due_; }

	// The answer to a message, if there is one, or the reason why the message is invalid.
	struct Outcome {
		std::optional<Message> answer;
		const char *trouble = nullptr;
	};
	Outcome take(const Message &message, std::uint64_t now, std::uint64_t time_of_day);

	// Returns the message that starts the time slice of a member that is in the state `ready`
	// or `waiting`.
	Message run(std::uint64_t now);

private:
	State state_ = State::unidentified;
	std::uint64_t number_ = 0;
	std::optional<std::uint64_t> due_;
	std::uint32_t start_ = 0;     // the sequence number of the Start that must be acknowledged
	std::uint32_t sequence_ = 0;  // sequence number of the last Run
	bool unacknowledged_ = false; // true until that Run is acknowledged
};

} // namespace weft::virtual_time
