// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the state of a guest in the time server, for valid and invalid messages.
#include "virtual_time/member.hpp"

#include <random>

#include <gtest/gtest.h>

namespace
{

using namespace weft::virtual_time;
using State = Member::State;

constexpr std::uint64_t kNow = 1000, kTimeOfDay = 77;

Member::Outcome say(Member &member, Operation operation, std::uint64_t time = 0,
		    std::uint32_t sequence = 5)
{
	return member.take({operation, sequence, time}, kNow, kTimeOfDay);
}

// Returns a member that has identified itself and has had its first time slice.
Member running()
{
	Member member;
	say(member, Operation::start, 3);
	member.run(kNow);
	return member;
}

void expect_answer(const Member::Outcome &outcome, std::uint64_t time)
{
	EXPECT_EQ(outcome.trouble, nullptr);
	ASSERT_TRUE(outcome.answer);
	EXPECT_EQ(outcome.answer->operation, Operation::ack);
	EXPECT_EQ(outcome.answer->sequence, 5u);
	EXPECT_EQ(outcome.answer->time, time);
}

// The first message of a member is answered when its time slice begins, and not before.
TEST(Member, StartMessageOfAGuestIsAnsweredWhenItsTimeSliceBegins)
{
	Member member;
	const auto outcome = say(member, Operation::start, 3, 9);
	EXPECT_EQ(outcome.trouble, nullptr);
	EXPECT_FALSE(outcome.answer);
	EXPECT_EQ(member.state(), State::ready);
	EXPECT_EQ(member.number(), 3u);
	EXPECT_EQ(member.due(), kNow);
	const auto message = member.run(kNow + 1);
	EXPECT_EQ(message.operation, Operation::ack);
	EXPECT_EQ(message.sequence, 9u);
	EXPECT_EQ(member.state(), State::running);
	EXPECT_FALSE(member.due());
}

// A member requests a time, waits, may request another time meanwhile, and gets its time slice at
// that time.
TEST(Member, WaitingGuestGetsATimeSliceAtItsDeadline)
{
	Member member = running();
	expect_answer(say(member, Operation::request, kNow + 50), 0);
	expect_answer(say(member, Operation::wait), 0);
	EXPECT_EQ(member.state(), State::waiting);
	EXPECT_EQ(member.due(), kNow + 50);
	expect_answer(say(member, Operation::request, kNow - 50), 0); // which is in the past
	EXPECT_EQ(member.due(), kNow);
	expect_answer(say(member, Operation::get), kNow);
	const auto message = member.run(kNow);
	EXPECT_EQ(message.operation, Operation::run);
	EXPECT_EQ(message.time, kNow);
	EXPECT_FALSE(member.due());
	EXPECT_EQ(say(member, Operation::ack, 0, message.sequence).trouble, nullptr);
	// A request from an earlier time slice stays in force until its time.
	expect_answer(say(member, Operation::request, kNow + 1), 0);
	expect_answer(say(member, Operation::time_of_day), kTimeOfDay);
	expect_answer(say(member, Operation::update, kNow), 0);
	EXPECT_EQ(member.due(), kNow + 1);
}

// A kernel without planned events requests the end of time.
TEST(Member, GuestThatRequestsTheMaximumTimeHasNoDeadline)
{
	Member member = running();
	say(member, Operation::request, kNow + 1);
	expect_answer(say(member, Operation::request, kNever), 0);
	EXPECT_FALSE(member.due());
	say(member, Operation::request, kNever - 1);
	EXPECT_EQ(member.due(), kNever - 1);
	say(member, Operation::request, UINT64_MAX);
	EXPECT_FALSE(member.due());
}

// An invalid message is refused in every state, and does not change the state.
TEST(Member, RejectsInvalidMessages)
{
	const auto refuses = [](Member member, Operation operation, std::uint64_t time = 0) {
		const auto state = member.state();
		const auto outcome = say(member, operation, time);
		EXPECT_NE(outcome.trouble, nullptr) << static_cast<unsigned>(operation);
		EXPECT_FALSE(outcome.answer);
		EXPECT_EQ(member.state(), state);
	};
	Member ready, waiting = running();
	say(ready, Operation::start, 3);
	say(waiting, Operation::wait);
	refuses({}, Operation::request);
	refuses({}, Operation::get);
	refuses(ready, Operation::start);
	refuses(ready, Operation::wait);
	refuses(waiting, Operation::wait);
	for (const Member &member : {running(), waiting}) {
		refuses(member, Operation::start);
		refuses(member, Operation::run);
		refuses(member, Operation::free_until);
		refuses(member, Operation::ack);
		refuses(member, Operation::update, kNow + 1);
		refuses(member, static_cast<Operation>(9));
		refuses(member, static_cast<Operation>(UINT32_MAX));
	}
}

// Whatever a member sends, it is never due in the past, never gets two answers to one message, and
// gets a time slice only from the time server.
TEST(Member, RandomMessagesOfAGuestCauseNoUnscheduledTimeSliceAndNoDeadlineInThePast)
{
	std::mt19937_64 random(1);
	for (unsigned round = 0; round < 20000; ++round) {
		Member member;
		for (unsigned i = 0; i < 20; ++i) {
			const auto before = member.state();
			const auto time = random() % 4 ? kNow - 2 + random() % 5 : random();
			const Message message{static_cast<Operation>(random() % 11),
					      static_cast<std::uint32_t>(random() % 3), time};
			const auto outcome = member.take(message, kNow, kTimeOfDay);
			EXPECT_FALSE(outcome.answer && outcome.trouble);
			EXPECT_TRUE(before == State::running || member.state() != State::running);
			EXPECT_GE(member.due().value_or(kNow), kNow);
			if (outcome.trouble)
				break;
			if ((member.state() == State::ready || member.state() == State::waiting) &&
			    random() % 2)
				member.run(kNow);
		}
	}
}

} // namespace
