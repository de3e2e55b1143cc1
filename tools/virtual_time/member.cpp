// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/member.hpp"

#include <algorithm>
#include <cassert>

namespace weft::virtual_time
{

// Handles a message. A kernel does not send anything before its last message was answered, so the
// state and the message determine the result.
Member::Outcome Member::take(const Message &message, std::uint64_t now, std::uint64_t time_of_day)
{
	const auto acknowledge = [&message](std::uint64_t time) {
		return Outcome{Message{Operation::ack, message.sequence, time}};
	};
	switch (state_) {
	case State::unidentified:
		if (message.operation != Operation::start)
			return {{}, "its first message is not Start"};
		state_ = State::ready;
		number_ = message.time;
		start_ = message.sequence;
		due_ = now;
		return {};
	case State::ready:
		return {{}, "it sends a message before Start was acknowledged"};
	case State::running:
	case State::waiting:
		break;
	}
	switch (message.operation) {
	case Operation::ack:
		if (!unacknowledged_ || message.sequence != sequence_)
			return {{}, "it acknowledges a message that was not sent"};
		unacknowledged_ = false;
		return {};
	case Operation::request:
		due_.reset();
		if (message.time < kNever)
			due_ = std::max(message.time, now);
		return acknowledge(0);
	case Operation::wait:
		if (state_ == State::waiting)
			return {{}, "it waits already"};
		state_ = State::waiting;
		return acknowledge(0);
	case Operation::get:
		return acknowledge(now);
	case Operation::update:
		if (message.time > now)
			return {{}, "it is ahead of the time that it was given"};
		return acknowledge(0);
	case Operation::time_of_day:
		return acknowledge(time_of_day);
	case Operation::start:
	case Operation::run:
	case Operation::free_until:
		break;
	}
	return {{}, "it sends an unknown message"};
}

Message Member::run(std::uint64_t now)
{
	assert(state_ == State::ready || state_ == State::waiting);
	const bool first = state_ == State::ready;
	state_ = State::running;
	due_.reset();
	if (first)
		return {Operation::ack, start_, now};
	unacknowledged_ = true;
	return {Operation::run, ++sequence_, now};
}

} // namespace weft::virtual_time
