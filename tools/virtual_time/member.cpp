// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/member.hpp"

#include <algorithm>
#include <cassert>

namespace weft::virtual_time
{

// A kernel sends nothing before the last was answered, so a state and a message decide what there
// is to do.
Member::Outcome Member::take(const Message &message, std::uint64_t now, std::uint64_t time_of_day)
{
	const auto acknowledge = [&message](std::uint64_t time) {
		return Outcome{Message{Operation::Ack, message.sequence, time}};
	};
	switch (state_) {
	case State::Stranger:
		if (message.operation != Operation::Start)
			return {{}, "it says something else before who it is"};
		state_ = State::Ready;
		number_ = message.time;
		start_ = message.sequence;
		due_ = now;
		return {};
	case State::Ready:
		return {{}, "it speaks before it is answered"};
	case State::Running:
	case State::Waiting:
		break;
	}
	switch (message.operation) {
	case Operation::Ack:
		if (!unacknowledged_ || message.sequence != sequence_)
			return {{}, "it acknowledges what it was not told"};
		unacknowledged_ = false;
		return {};
	case Operation::Request:
		due_.reset();
		if (message.time < kNever)
			due_ = std::max(message.time, now);
		return acknowledge(0);
	case Operation::Wait:
		if (state_ == State::Waiting)
			return {{}, "it waits already"};
		state_ = State::Waiting;
		return acknowledge(0);
	case Operation::Get:
		return acknowledge(now);
	case Operation::Update:
		if (message.time > now)
			return {{}, "it is ahead of the time that it was given"};
		return acknowledge(0);
	case Operation::TimeOfDay:
		return acknowledge(time_of_day);
	case Operation::Start:
	case Operation::Run:
	case Operation::FreeUntil:
		break;
	}
	return {{}, "it says what no kernel says"};
}

Message Member::run(std::uint64_t now)
{
	assert(state_ == State::Ready || state_ == State::Waiting);
	const bool first = state_ == State::Ready;
	state_ = State::Running;
	due_.reset();
	if (first)
		return {Operation::Ack, start_, now};
	unacknowledged_ = true;
	return {Operation::Run, ++sequence_, now};
}

} // namespace weft::virtual_time
