// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the time server runs one guest at a time, and reports guests that disconnect, do not
// answer or violate the protocol.
#include "virtual_time/scheduler.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/loop.hpp"
#include "base/unix_listener.hpp"
#include "virtual_time/protocol.hpp"
#include "virtual_time/shared_time.hpp"

using namespace std::chrono_literals;

namespace
{

using namespace weft::virtual_time;
using weft::Clock;
using weft::FileDescriptor;

constexpr std::uint64_t kSecond = 1'000'000'000;

// Without other members, time jumps to the next deadline, and random numbers depend on the seed.
TEST(SharedTime, TimeJumpsToTheNextDeadline)
{
	SharedTime time(1), other(2);
	weft::Reactor reactor("test", weft::Reactor::Drive::manual, time);
	weft::Loop loop("test", reactor);
	std::vector<std::chrono::nanoseconds> fired;
	weft::Timer late(loop, [&] { fired.push_back(time.passed()); });
	weft::Timer early(loop, [&] {
		fired.push_back(time.passed());
		late.arm(20h);
	});
	late.arm(12h);
	early.arm(6h);
	while (fired.size() < 2)
		reactor.turn(Clock::time_point::max());
	EXPECT_EQ(fired, (std::vector<std::chrono::nanoseconds>{6h, 26h}));
	EXPECT_EQ(time.date().time_since_epoch(), SharedTime::kDate + 26h);
	EXPECT_NE(time.random(), other.random());
}

class SchedulerTest : public testing::Test
{
public:
	SchedulerTest()
	{
		char name[] = "/tmp/weft-scheduler-XXXXXX";
		directory = ::mkdtemp(name);
		start({"node1", "node2"});
	}
	~SchedulerTest() override
	{
		scheduler.reset();
		std::filesystem::remove_all(directory);
	}

	void start(std::vector<std::string> names, AnswerLimits limits = {})
	{
		scheduler.reset();
		scheduler.emplace(
			loop, time, std::move(names), directory / "time.sock",
			[this](const std::string &reason) { ends.push_back(reason); }, limits);
	}

	FileDescriptor join() { return weft::connect_unix(directory / "time.sock"); }
	FileDescriptor join(std::uint64_t number)
	{
		auto fd = join();
		send(fd, Operation::start, number);
		return fd;
	}
	void send(const FileDescriptor &fd, Operation operation, std::uint64_t when = 0)
	{
		const Message message{operation, ++sequence, when};
		ASSERT_EQ(::send(fd.get(), &message, sizeof(message), MSG_NOSIGNAL), 16);
	}
	void run_until(const std::function<bool()> &done)
	{
		while (!done())
			reactor.turn(Clock::time_point::max());
	}
	// Receives a kernel's next message; runs the time server until then.
	Message receive(const FileDescriptor &fd)
	{
		Message message{};
		run_until([&] {
			// A time slice begins when time advances, without any handler.
			return ::recv(fd.get(), &message, sizeof(message), MSG_DONTWAIT) ==
			       sizeof(message);
		});
		return message;
	}
	void ask(const FileDescriptor &fd, Operation operation, std::uint64_t when = 0)
	{
		send(fd, operation, when);
		const auto answer = receive(fd);
		EXPECT_EQ(answer.operation, Operation::ack);
		EXPECT_EQ(answer.sequence, sequence);
	}
	void expect_time_slice(const FileDescriptor &fd, std::uint64_t when)
	{
		const auto turn = receive(fd);
		EXPECT_EQ(turn.operation, Operation::run);
		EXPECT_EQ(turn.time, when);
		const Message answer{Operation::ack, turn.sequence, 0};
		ASSERT_EQ(::send(fd.get(), &answer, sizeof(answer), MSG_NOSIGNAL), 16);
	}
	bool closed(const FileDescriptor &fd)
	{
		char byte;
		return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
	}
	void run_until_closed(const FileDescriptor &fd)
	{
		run_until([&] { return closed(fd); });
	}
	void run_until_ended()
	{
		run_until([&] { return !ends.empty(); });
	}

	// The only member waits, and answers a call through the channel, whose two ends are `here`
	// and `there`.
	struct Called {
		FileDescriptor member, here, there;
	};
	Called call(AnswerLimits limits = {})
	{
		start({"node1"}, limits);
		FileDescriptor member = join(1);
		receive(member);
		ask(member, Operation::wait);
		std::array<int, 2> channel{-1, -1};
		EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, channel.data()), 0);
		return {std::move(member), FileDescriptor(channel[0]), FileDescriptor(channel[1])};
	}
	void flood(AnswerLimits limits);

	SharedTime time{1};
	weft::Reactor reactor{"time server", weft::Reactor::Drive::manual, time};
	weft::Loop loop{"time server", reactor};
	std::filesystem::path directory;
	std::vector<std::string> ends;
	std::optional<Scheduler> scheduler;
	std::uint32_t sequence = 0;
};

// No member runs before all have connected. Then only one runs at a time, ordered by time and then
// by number, together with the process's own timers.
TEST_F(SchedulerTest, RunsOnlyOneGuestAtATime)
{
	const auto second = join(2);
	std::vector<std::chrono::nanoseconds> fired;
	weft::Timer timer(loop, [&] { fired.push_back(time.passed()); });
	timer.arm(3s);
	const auto first = join(1);
	EXPECT_EQ(receive(first).operation, Operation::ack);
	ask(first, Operation::request, 5 * kSecond);
	char byte;
	EXPECT_LT(::recv(second.get(), &byte, 1, MSG_DONTWAIT), 0); // the first one still runs
	ask(first, Operation::wait);
	EXPECT_EQ(receive(second).operation, Operation::ack);
	ask(second, Operation::request, 2 * kSecond);
	ask(second, Operation::wait);
	expect_time_slice(second, 2 * kSecond);
	EXPECT_TRUE(fired.empty());
	ask(second, Operation::request, 5 * kSecond);
	ask(second, Operation::wait);
	expect_time_slice(first, 5 * kSecond);
	EXPECT_EQ(fired, std::vector<std::chrono::nanoseconds>{3s});
	ask(first, Operation::request, kNever);
	ask(first, Operation::wait);
	expect_time_slice(second, 5 * kSecond);
	EXPECT_EQ(scheduler->time_slices(), 5u);
	EXPECT_TRUE(ends.empty());
}

// Local work that is posted or due waits during a member's time slice. Otherwise its result would
// depend on the relative speed of the processes.
TEST_F(SchedulerTest, RunsNoTasksOfWeftdDuringTheTimeSliceOfAGuest)
{
	start({"node1"});
	const auto only = join(1);
	EXPECT_EQ(receive(only).operation, Operation::ack);
	unsigned done = 0;
	loop.post([&] { ++done; });
	weft::Timer timer(loop, [&] { ++done; });
	timer.arm(0s);
	ask(only, Operation::get);
	ask(only, Operation::request, 5 * kSecond);
	EXPECT_TRUE(time.stands());
	EXPECT_EQ(done, 0u);
	ask(only, Operation::wait);
	EXPECT_FALSE(time.stands());
	expect_time_slice(only, 5 * kSecond);
	EXPECT_EQ(done, 2u);
}

// A waiting member is called, and requests the time and a time slice before it replies. Nothing
// else runs meanwhile.
TEST_F(SchedulerTest, RunsNoTasksOfWeftdUntilTheAwaitedGuestHasReplied)
{
	start({"node1"});
	const auto only = join(1);
	receive(only);
	ask(only, Operation::request, 5 * kSecond);
	ask(only, Operation::wait);
	std::array<int, 2> ends_of_channel;
	ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of_channel.data()), 0);
	const FileDescriptor here(ends_of_channel[0]), there(ends_of_channel[1]);
	unsigned done = 0;
	loop.post([&] { ++done; });
	std::thread kernel([&] {
		Message answer{};
		char byte;
		::recv(there.get(), &byte, 1, 0);
		for (const auto operation : {Operation::get, Operation::request}) {
			send(only, operation, time.passed().count());
			::recv(only.get(), &answer, sizeof(answer), 0);
		}
		::send(there.get(), &byte, 1, 0);
	});
	ASSERT_EQ(::send(here.get(), "?", 1, 0), 1);
	EXPECT_TRUE(time.await_readable(here.get()));
	kernel.join();
	EXPECT_EQ(done, 0u);
	expect_time_slice(only, 0);
	EXPECT_EQ(done, 1u);
}

// If a member disconnects instead of replying, the wait ends, and this is reported.
TEST_F(SchedulerTest, StopsWaitingForAGuestThatDisconnects)
{
	auto [only, here, there] = call();
	only.reset();
	EXPECT_FALSE(time.await_readable(here.get()));
	EXPECT_EQ(ends,
		  std::vector<std::string>{"node1 has left the time server at 0.000000000 s"});
	EXPECT_FALSE(time.await_readable(here.get()));
}

// The wait for a silent member is limited. The member has not disconnected, so its caller must
// report it.
TEST_F(SchedulerTest, StopsWaitingForASilentGuestAfterATimeout)
{
	const auto [only, here, there] = call({.time = 1ms, .messages = 1});
	EXPECT_FALSE(time.await_readable(here.get()));
	EXPECT_TRUE(ends.empty());
}

// Calls a member that sends other messages continuously. The wait for it must end at a limit.
void SchedulerTest::flood(AnswerLimits limits)
{
	const Called called = call(limits);
	const FileDescriptor &only = called.member;
	std::thread kernel([&] {
		const Message question{Operation::get, 1, 0};
		Message answer{};
		while (::send(only.get(), &question, sizeof(question), MSG_NOSIGNAL) > 0 &&
		       ::recv(only.get(), &answer, sizeof(answer), 0) > 0) {
		}
	});
	EXPECT_FALSE(time.await_readable(called.here.get()));
	::shutdown(only.get(), SHUT_RDWR);
	kernel.join();
}

TEST_F(SchedulerTest, WaitForAGuestThatFloodsMessagesTimesOut)
{
	flood({.time = 20ms, .messages = UINT_MAX});
	EXPECT_TRUE(ends.empty());
}

// The number of messages is limited as well as the time.
TEST_F(SchedulerTest, StopsWaitingForAGuestThatSendsTooManyUnexpectedMessages)
{
	flood({.time = 1h, .messages = 100});
	EXPECT_EQ(ends, std::vector<std::string>{
				"node1 sends many messages, but not the one that is awaited at "
				"0.000000000 s"});
}

// The report contains the name of the disconnected member and the time. The other members are
// disconnected, so that they exit.
TEST_F(SchedulerTest, ReportsADisconnectedGuestAndDisconnectsAllGuests)
{
	const auto first = join(1);
	auto second = join(2);
	receive(first);
	ask(first, Operation::request, 90 * kSecond);
	ask(first, Operation::wait);
	receive(second);
	ask(second, Operation::request, kSecond + 5);
	ask(second, Operation::wait);
	expect_time_slice(second, kSecond + 5);
	second.reset();
	run_until_ended();
	EXPECT_EQ(ends,
		  std::vector<std::string>{"node2 has left the time server at 1.000000005 s"});
	run_until_closed(first);
}

// A member that waits is reported as well.
TEST_F(SchedulerTest, ReportsAGuestThatDisconnectsWhileWaitingForItsTimeSlice)
{
	auto first = join(1);
	const auto second = join(2);
	receive(first);
	ask(first, Operation::wait);
	receive(second);
	first.reset();
	run_until_ended();
	EXPECT_EQ(ends,
		  std::vector<std::string>{"node1 has left the time server at 0.000000000 s"});
	run_until_closed(second);
}

TEST_F(SchedulerTest, ReportsProtocolViolations)
{
	const auto first = join(1);
	const auto second = join(2);
	receive(first);
	send(first, Operation::update, 1);
	run_until_ended();
	EXPECT_EQ(ends, std::vector<std::string>{
				"node1 does not keep to the time server (it is ahead of the "
				"time that it was given) at 0.000000000 s"});
	run_until_closed(second);
}

// Connections that are not from members are rejected, and the run continues: unknown numbers,
// numbers in use, other messages, and incomplete messages.
TEST_F(SchedulerTest, RejectsConnectionsWithUnknownOrDuplicateGuestNumbers)
{
	const auto first = join(1);
	run_until_closed(join(0));
	run_until_closed(join(3));
	run_until_closed(join(UINT64_MAX));
	run_until_closed(join(1));
	const auto rude = join();
	send(rude, Operation::get);
	run_until_closed(rude);
	auto half = join();
	ASSERT_EQ(::send(half.get(), "half", 4, 0), 4);
	half.reset();
	const auto second = join(2);
	EXPECT_EQ(receive(first).operation, Operation::ack);
	EXPECT_TRUE(ends.empty());
}

// Connections with a wrong member number are logged a few times, because such a guest waits forever
// without an error message.
TEST_F(SchedulerTest, InvalidGuestNumbersAreLogged)
{
	std::ostringstream log;
	const auto former = spdlog::default_logger();
	spdlog::set_default_logger(std::make_shared<spdlog::logger>(
		"captured", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
	const auto first = join(1);
	run_until_closed(join(3));
	EXPECT_NE(log.str().find("number 3 of 2, which does not exist"), std::string::npos);
	run_until_closed(join(1));
	EXPECT_NE(log.str().find("number 1 of 2, which is already in use"), std::string::npos);
	for (unsigned i = 0; i < 2 * Scheduler::kMostLogged; ++i)
		run_until_closed(join(0));
	spdlog::set_default_logger(former);
	EXPECT_EQ(std::ranges::count(log.str(), '\n'), Scheduler::kMostLogged);
}

// The awaited member is reported by name, for the error message if a lab hangs.
TEST_F(SchedulerTest, ReportsWhichGuestIsAwaited)
{
	EXPECT_EQ(scheduler->awaited(), "node1, node2, not yet on the time server");
	const auto first = join(1);
	run_until([&] { return scheduler->awaited() == "node2, not yet on the time server"; });
	const auto second = join(2);
	receive(first);
	ask(first, Operation::request, kNever);
	ask(first, Operation::wait);
	receive(second);
	ask(second, Operation::request, 7 * kSecond);
	ask(second, Operation::wait);
	expect_time_slice(second, 7 * kSecond);
	EXPECT_EQ(scheduler->awaited(), "node2, whose time slice began at 7.000000000 s");
	ask(second, Operation::request, kNever);
	ask(second, Operation::wait);
	EXPECT_EQ(scheduler->awaited(), "");
}

// The number of connections without a member number is limited. Another one is refused until one
// has been closed.
TEST_F(SchedulerTest, NumberOfConnectionsWithoutAGuestNumberIsLimited)
{
	std::vector<FileDescriptor> silent;
	for (std::size_t i = 0; i < Scheduler::kMostUnidentified; ++i)
		silent.push_back(join());
	run_until_closed(join());
	for (const auto &each : silent)
		EXPECT_FALSE(closed(each));
	send(silent.back(), Operation::get);
	run_until_closed(silent.back());
	for (auto &each : silent) {
		each.reset();
		reactor.turn(Clock::time_point::min());
	}
	const auto first = join(1);
	const auto second = join(2);
	EXPECT_EQ(receive(first).operation, Operation::ack);
}

// A message may come in pieces.
TEST_F(SchedulerTest, AcceptsFragmentedMessages)
{
	start({"node1"});
	const auto only = join();
	const Message message{Operation::start, 7, 1};
	const auto *bytes = reinterpret_cast<const char *>(&message);
	for (unsigned i = 0; i < sizeof(message); ++i) {
		ASSERT_EQ(::send(only.get(), bytes + i, 1, 0), 1);
		reactor.turn(Clock::time_point::max());
	}
	EXPECT_EQ(receive(only).sequence, 7u);
}

// A member that does not read is disconnected when its socket is full. Messages are not queued for
// it.
TEST_F(SchedulerTest, GuestsThatDoNotReadAreDisconnected)
{
	start({"node1"});
	const auto deaf = join(1);
	receive(deaf);
	const Message question{Operation::get, 1, 0};
	run_until([&] {
		while (::send(deaf.get(), &question, sizeof(question),
			      MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
		}
		return !ends.empty();
	});
	ASSERT_EQ(ends.size(), 1u);
	EXPECT_EQ(ends[0], "node1 does not read the messages of the time server at 0.000000000 s");
}

} // namespace
