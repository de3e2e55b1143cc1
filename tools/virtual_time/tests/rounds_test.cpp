// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the rounds in which the places of a lab in virtual time advance: the decisions, and the
// server and its places with peers that lie, send malformed frames or disconnect.
#include "virtual_time/rounds.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/loop.hpp"
#include "base/unix_listener.hpp"
#include "virtual_time/round_member.hpp"
#include "virtual_time/round_server.hpp"
#include "virtual_time/shared_time.hpp"

using namespace std::chrono_literals;

namespace
{

using namespace weft::virtual_time;
using weft::Clock;
using weft::FileDescriptor;

constexpr std::uint64_t kLab = 77;

RoundReport report(std::uint64_t round, std::uint64_t next, bool finished = false)
{
	return {round, next, finished, {}};
}

RoundPacket packet(std::uint32_t trunk, std::uint64_t arrival, std::uint64_t number,
		   std::size_t bytes = 1)
{
	return {trunk, arrival, number, std::vector<std::byte>(bytes)};
}

class RoundsTest : public ::testing::Test
{
public:
	RoundsTest()
	{
		for (std::size_t place = 0; place < 3; ++place)
			EXPECT_EQ(rounds.join(place), "");
	}
	// All places report; returns the grant.
	std::optional<Rounds::Grant> all(std::uint64_t a, std::uint64_t b, std::uint64_t c)
	{
		std::size_t place = 0;
		for (const std::uint64_t next : {a, b, c})
			EXPECT_EQ(rounds.take_report(place++, report(rounds.round(), next)), "");
		return rounds.advance();
	}

	// a - b with 50 ns, b - c with 20 ns
	Rounds rounds{{"a", "b", "c"}, {{{0, 1}, 50ns}, {{1, 2}, 20ns}}};
};

TEST_F(RoundsTest, LimitIsTheEarliestEventPlusTheSmallestDelay)
{
	const auto first = all(500, 300, kNoTime);
	ASSERT_TRUE(first);
	EXPECT_EQ(first->round, 1u);
	EXPECT_EQ(first->limit, 320u);
	const auto second = all(500, 320, kNoTime);
	ASSERT_TRUE(second);
	EXPECT_EQ(second->limit, 340u);
}

TEST_F(RoundsTest, RoundWaitsForAllPlaces)
{
	EXPECT_EQ(rounds.take_report(0, report(0, 10)), "");
	EXPECT_EQ(rounds.take_report(2, report(0, 10)), "");
	EXPECT_FALSE(rounds.advance());
	EXPECT_EQ(rounds.awaited(), "b");
	EXPECT_EQ(rounds.take_report(1, report(0, 10)), "");
	EXPECT_TRUE(rounds.advance());
}

TEST_F(RoundsTest, PacketsAreSortedByArrivalTrunkAndNumberAndLimitTheRound)
{
	ASSERT_TRUE(all(100, 100, 100));
	// b receives packets from both others.
	EXPECT_EQ(rounds.take_packet(2, packet(1, 125, 0)), "");
	EXPECT_EQ(rounds.take_packet(2, packet(1, 125, 1)), "");
	EXPECT_EQ(rounds.take_packet(0, packet(0, 150, 0)), "");
	EXPECT_EQ(rounds.take_packet(0, packet(0, 125, 1)), "");
	const auto grant = all(900, 900, 900);
	ASSERT_TRUE(grant);
	EXPECT_EQ(grant->limit, 125u + 20);
	std::vector<std::array<std::uint64_t, 3>> order;
	for (const RoundPacket &each : grant->packets[1])
		order.push_back({each.arrival, each.trunk, each.number});
	EXPECT_EQ(order, (std::vector<std::array<std::uint64_t, 3>>{
				 {125, 0, 1}, {125, 1, 0}, {125, 1, 1}, {150, 0, 0}}));
	EXPECT_TRUE(grant->packets[0].empty() && grant->packets[2].empty());
}

TEST_F(RoundsTest, PacketsInThePastOrTooFarInTheFutureAreRefused)
{
	ASSERT_TRUE(all(100, 100, 100)); // until 120
	EXPECT_NE(rounds.take_packet(0, packet(0, 119, 0)).find("arrives in the past"),
		  std::string::npos);
	EXPECT_NE(rounds.take_packet(0, packet(0, 170, 0)).find("after the delay"),
		  std::string::npos);
	EXPECT_EQ(rounds.take_packet(0, packet(0, 120, 0)), "");
	EXPECT_EQ(rounds.take_packet(0, packet(0, 169, 1)), "");
}

TEST_F(RoundsTest, PacketsOfOtherTrunksWrongNumbersAndTooManyBytesAreRefused)
{
	ASSERT_TRUE(all(100, 100, 100));
	EXPECT_NE(rounds.take_packet(0, packet(1, 130, 0)), "");
	EXPECT_NE(rounds.take_packet(0, packet(2, 130, 0)), "");
	EXPECT_NE(rounds.take_packet(0, packet(~0u, 130, 0)), "");
	EXPECT_NE(rounds.take_packet(0, packet(0, 130, 1)), "");
	constexpr std::size_t bytes = kMostTrunkFrame;
	const auto most = Rounds::kMostBytes / (bytes + Rounds::kPacketBytes);
	std::uint64_t number = 0;
	while (number < most)
		ASSERT_EQ(rounds.take_packet(0, packet(0, 130, number++, bytes)), "");
	EXPECT_NE(rounds.take_packet(0, packet(0, 130, number, bytes)), "");
}

TEST_F(RoundsTest, ReportsOfThePastOfAnotherRoundOrTwiceAreRefused)
{
	ASSERT_TRUE(all(100, 100, 100)); // until 120
	EXPECT_NE(rounds.take_report(0, report(1, 119)).find("should have executed"),
		  std::string::npos);
	EXPECT_NE(rounds.take_report(0, report(0, 200)), "");
	EXPECT_NE(rounds.take_report(0, report(2, 200)), "");
	EXPECT_EQ(rounds.take_report(0, report(1, 120)), "");
	EXPECT_NE(rounds.take_report(0, report(1, 120)), "");
	EXPECT_NE(rounds.take_packet(0, packet(0, 130, 0)), "");
}

TEST_F(RoundsTest, LabEndsWhenAllPlacesAreFinishedAtTheEndOfTheRound)
{
	EXPECT_EQ(rounds.take_report(0, report(0, 10, true)), "");
	EXPECT_EQ(rounds.take_report(1, report(0, 10, true)), "");
	EXPECT_FALSE(rounds.end());
	EXPECT_EQ(rounds.take_report(2, report(0, 10, true)), "");
	ASSERT_TRUE(rounds.end());
	EXPECT_FALSE(rounds.end()->failed);
	EXPECT_FALSE(rounds.advance());
}

TEST_F(RoundsTest, PlaceThatEndsEndsTheLabAfterTheOthersHaveDoneTheRound)
{
	EXPECT_EQ(rounds.take_end(1, {false, "time is up"}), "");
	EXPECT_NE(rounds.take_end(1, {}), "");
	EXPECT_EQ(rounds.take_report(0, report(0, 10)), "");
	EXPECT_FALSE(rounds.end());
	EXPECT_EQ(rounds.take_end(2, {true, "node3 has left"}), "");
	ASSERT_TRUE(rounds.end());
	EXPECT_EQ(rounds.end()->reason, "node3 has left"); // a failure has precedence
}

TEST_F(RoundsTest, WithoutEventsThereIsNoRound)
{
	EXPECT_FALSE(all(kNoTime, kNoTime, kNoTime));
	EXPECT_FALSE(rounds.end());
}

TEST(RoundFrame, MalformedBodiesAndHeadersAreRefused)
{
	RoundBuffer bytes;
	append_report(bytes, 1, 2, true);
	RoundFrameReader whole;
	for (const std::byte each : bytes)
		whole.add({&each, 1});
	const auto frame = whole.next();
	ASSERT_TRUE(frame);
	EXPECT_TRUE(read_report(frame->body));
	EXPECT_FALSE(read_report(frame->body.first(23)));
	EXPECT_FALSE(read_hello(frame->body));
	EXPECT_FALSE(whole.next());
	EXPECT_FALSE(whole.malformed());
	for (const auto &[offset, value] :
	     std::vector<std::pair<std::size_t, int>>{{3, 0x7f}, {4, 0}, {4, 6}, {5, 1}, {7, 1}}) {
		RoundBuffer wrong = bytes;
		wrong[offset] = static_cast<std::byte>(value);
		RoundFrameReader reader;
		reader.add(wrong);
		EXPECT_FALSE(reader.next());
		EXPECT_TRUE(reader.malformed()) << offset;
	}
	const auto body_with = [&](std::size_t offset, int value) {
		RoundBuffer body(bytes.begin() + 8, bytes.end());
		body[offset] = static_cast<std::byte>(value);
		return body;
	};
	EXPECT_FALSE(read_report(body_with(15, 0x80)));   // a time out of range
	EXPECT_FALSE(read_report(body_with(16, 2)));      // finished is 0 or 1
	EXPECT_FALSE(read_report(body_with(23, 1)));      // not zero
	EXPECT_FALSE(read_round_packet(body_with(8, 0))); // without a frame
}

TEST(RoundFrame, ReasonsAreCutAndPrintable)
{
	RoundBuffer bytes;
	append_end(bytes, {true, "a\x1b[31mb" + std::string(1000, 'x')});
	RoundFrameReader reader;
	reader.add(bytes);
	const auto end = read_end(reader.next()->body);
	ASSERT_TRUE(end);
	EXPECT_EQ(end->reason.size(), kMostRoundText);
	EXPECT_EQ(end->reason.substr(0, 7), "a?[31mb");
}

// The server, with places that the test plays itself.
class RoundServerTest : public ::testing::Test
{
public:
	RoundServerTest()
	{
		char name[] = "/tmp/weft-rounds-XXXXXX";
		directory = ::mkdtemp(name);
		server.emplace(std::vector<std::string>{"a", "b"},
			       std::vector<RoundTrunk>{{{0, 1}, 50ns}}, kLab,
			       directory / "rounds.sock");
	}
	~RoundServerTest() override
	{
		server.reset();
		std::filesystem::remove_all(directory);
	}

	struct Peer {
		FileDescriptor socket;
		RoundFrameReader reader{};

		void send(const RoundBuffer &bytes) const
		{
			ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
				  static_cast<ssize_t>(bytes.size()));
		}
		void report(std::uint64_t round, std::uint64_t next) const
		{
			RoundBuffer bytes;
			append_report(bytes, round, next, false);
			send(bytes);
		}
		// Returns the next frame; nothing if the server has disconnected.
		std::optional<RoundFrame> receive()
		{
			for (;;) {
				if (const auto frame = reader.next())
					return frame;
				std::array<std::byte, 4096> input;
				pollfd ready{socket.get(), POLLIN, 0};
				if (::poll(&ready, 1, 20'000) != 1) {
					ADD_FAILURE() << "the server sends nothing";
					return std::nullopt;
				}
				const auto got =
					::recv(socket.get(), input.data(), input.size(), 0);
				if (got <= 0)
					return std::nullopt;
				reader.add(std::span(input).first(static_cast<std::size_t>(got)));
			}
		}
		// Receives the end of the lab.
		std::string reason()
		{
			const auto frame = receive();
			if (!frame || frame->type != RoundFrameType::end)
				return "no end";
			return read_end(frame->body)->reason;
		}
	};
	Peer join(std::uint16_t place, std::uint64_t lab = kLab)
	{
		Peer peer{weft::connect_unix(directory / "rounds.sock")};
		RoundBuffer bytes;
		append_hello(bytes, place, lab);
		peer.send(bytes);
		return peer;
	}
	// Both places report; they then have the grant of the first round.
	static void begin(Peer &a, Peer &b)
	{
		a.report(0, 100);
		b.report(0, 100);
		for (Peer *each : {&a, &b}) {
			const auto frame = each->receive();
			ASSERT_TRUE(frame && frame->type == RoundFrameType::grant);
			EXPECT_EQ(read_grant(frame->body)->limit, 150u);
		}
	}

	std::filesystem::path directory;
	std::optional<RoundServer> server;
};

TEST_F(RoundServerTest, PacketsArePassedToTheOtherPlaceBeforeTheGrant)
{
	Peer a = join(0), b = join(1);
	begin(a, b);
	RoundBuffer bytes;
	append_packet(bytes, packet(0, 150, 0, 3));
	a.send(bytes);
	a.report(1, 400);
	b.report(1, 300);
	const auto first = b.receive();
	ASSERT_TRUE(first && first->type == RoundFrameType::packet);
	EXPECT_EQ(read_round_packet(first->body)->frame.size(), 3u);
	const auto second = b.receive();
	ASSERT_TRUE(second && second->type == RoundFrameType::grant);
	EXPECT_EQ(read_grant(second->body)->limit, 200u);
}

TEST_F(RoundServerTest, PlaceThatLiesAboutItsTimeEndsTheLab)
{
	Peer a = join(0), b = join(1);
	begin(a, b);
	a.report(1, 149);
	EXPECT_EQ(
		b.reason(),
		"place a breaks the protocol of the rounds (it reports an event at 0.000000149 s, "
		"which it should have executed, because the round ends at 0.000000150 s), in the "
		"round until 0.000000150 s");
	EXPECT_FALSE(a.receive());
}

TEST_F(RoundServerTest, PacketInThePastEndsTheLab)
{
	Peer a = join(0), b = join(1);
	begin(a, b);
	RoundBuffer bytes;
	append_packet(bytes, packet(0, 149, 0));
	b.send(bytes);
	EXPECT_NE(a.reason().find("place b breaks the protocol of the rounds (it sends a packet "
				  "that arrives in the past"),
		  std::string::npos);
}

TEST_F(RoundServerTest, MalformedFramesEndTheLab)
{
	Peer a = join(0), b = join(1);
	begin(a, b);
	b.send(RoundBuffer(64, std::byte{0xff}));
	EXPECT_NE(a.reason().find("place b breaks the protocol of the rounds (a malformed frame)"),
		  std::string::npos);
}

TEST_F(RoundServerTest, LostPlaceEndsTheLabAndIsNamed)
{
	Peer a = join(0);
	{
		Peer b = join(1);
		begin(a, b);
	}
	EXPECT_EQ(a.reason(), "place b has left the lab, in the round until 0.000000150 s");
	a.socket.reset();
	EXPECT_TRUE(server->await_end(20s));
}

TEST_F(RoundServerTest, PlaceThatNeverReportsIsNamed)
{
	Peer a = join(0), b = join(1);
	begin(a, b);
	EXPECT_EQ(server->awaited(), "a, b");
	a.report(1, 200);
	for (int i = 0; i < 2000 && server->awaited() != "b"; ++i)
		::poll(nullptr, 0, 10);
	EXPECT_EQ(server->awaited(), "b");
	EXPECT_FALSE(server->await_end(1ms));
}

TEST_F(RoundServerTest, ClientsOfAnotherLabOrWithoutAPlaceAreDisconnectedAndDoNotEndTheLab)
{
	Peer a = join(0), b = join(1);
	EXPECT_FALSE(join(1, kLab + 1).receive()); // another lab
	EXPECT_FALSE(join(2).receive());           // no such place
	begin(a, b);
	EXPECT_FALSE(join(1).receive()); // b has joined
	Peer wrong{weft::connect_unix(directory / "rounds.sock")};
	wrong.report(1, 150);
	EXPECT_FALSE(wrong.receive());
	a.report(1, 200);
	b.report(1, 200);
	const auto frame = a.receive();
	ASSERT_TRUE(frame && frame->type == RoundFrameType::grant);
	EXPECT_EQ(read_grant(frame->body)->limit, 250u);
}

// A place whose server is played by the test.
class RoundMemberTest : public ::testing::Test
{
public:
	RoundMemberTest()
	{
		char name[] = "/tmp/weft-rounds-XXXXXX";
		directory = ::mkdtemp(name);
		listener.emplace(directory / "rounds.sock");
		member.emplace(
			loop, time, std::uint16_t{1}, kLab, directory / "rounds.sock",
			RoundMember::Handlers{
				.arrive =
					[this](std::uint32_t trunk, std::span<const std::byte>) {
						done.push_back("trunk " + std::to_string(trunk));
						times.push_back(time.passed());
						return refused;
					},
				.finished = [] { return false; },
				.ended = [this](const RoundEnd &end) { ends.push_back(end); }});
		server.socket = listener->accept();
	}
	~RoundMemberTest() override
	{
		member.reset();
		std::filesystem::remove_all(directory);
	}

	void run_until(const std::function<bool()> &condition)
	{
		while (!condition())
			reactor.turn(Clock::time_point::max());
	}
	// Runs the place until it sends a frame. The place then waits for the server, so another
	// thread wakes it.
	RoundFrame next()
	{
		std::optional<RoundFrame> frame;
		while (!(frame = server.reader.next())) {
			std::array<std::byte, 4096> input;
			std::atomic<ssize_t> got = -1;
			std::thread receiver([&] {
				pollfd ready{server.socket.get(), POLLIN, 0};
				EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
				got = std::max<ssize_t>(
					::recv(ready.fd, input.data(), input.size(), MSG_DONTWAIT),
					0);
				loop.post([] {});
			});
			while (got < 0)
				reactor.turn(Clock::time_point::max());
			receiver.join();
			if (got == 0)
				throw std::runtime_error("the place has sent nothing");
			server.reader.add(
				std::span(input).first(static_cast<std::size_t>(got.load())));
		}
		return *frame;
	}
	void grant(std::uint64_t round, std::uint64_t limit,
		   const std::vector<RoundPacket> &packets = {})
	{
		RoundBuffer bytes;
		for (const RoundPacket &each : packets)
			append_packet(bytes, each);
		append_grant(bytes, round, limit);
		server.send(bytes);
	}

	std::filesystem::path directory;
	SharedTime time{1};
	weft::Reactor reactor{"test", weft::Reactor::Drive::manual, time};
	weft::Loop loop{"test", reactor};
	std::optional<weft::UnixListener> listener;
	std::optional<RoundMember> member;
	RoundServerTest::Peer server;
	std::vector<std::string> done;
	std::vector<std::chrono::nanoseconds> times;
	std::vector<RoundEnd> ends;
	const char *refused = nullptr;
};

TEST_F(RoundMemberTest, ClockStopsAtTheLimitAndPacketsArriveBeforeLocalEventsOfTheSameTime)
{
	weft::Timer timer(loop, [&] {
		done.push_back("timer");
		times.push_back(time.passed());
		member->send(7, 50ns, std::array{std::byte{1}});
	});
	timer.arm(200ns);
	EXPECT_EQ(next().type, RoundFrameType::hello);
	auto frame = next();
	ASSERT_EQ(frame.type, RoundFrameType::report);
	EXPECT_EQ(read_report(frame.body)->next, 200u);
	EXPECT_EQ(time.passed(), 0ns);
	grant(1, 150, {packet(4, 200, 0), packet(3, 200, 0), packet(3, 120, 1)});
	frame = next();
	ASSERT_EQ(frame.type, RoundFrameType::report);
	EXPECT_EQ(read_report(frame.body)->next, 200u);
	EXPECT_EQ(time.passed(), 120ns);
	grant(2, 250);
	frame = next();
	ASSERT_EQ(frame.type, RoundFrameType::packet);
	const auto sent = read_round_packet(frame.body);
	EXPECT_EQ(sent->trunk, 7u);
	EXPECT_EQ(sent->arrival, 250u);
	EXPECT_EQ(sent->number, 0u);
	ASSERT_EQ(next().type, RoundFrameType::report);
	EXPECT_EQ(done, (std::vector<std::string>{"trunk 3", "trunk 3", "trunk 4", "timer"}));
	EXPECT_EQ(times, (std::vector<std::chrono::nanoseconds>{120ns, 200ns, 200ns, 200ns}));
	EXPECT_TRUE(ends.empty());
}

TEST_F(RoundMemberTest, PacketOfThePastFromTheServerEndsThePlace)
{
	next();
	next();
	grant(1, 150);
	next();
	grant(2, 250, {packet(3, 149, 0)});
	run_until([&] { return !ends.empty(); });
	EXPECT_TRUE(ends.front().failed);
	EXPECT_EQ(ends.front().reason,
		  "the server of the rounds sends a packet that arrives in the past");
	EXPECT_EQ(next().type, RoundFrameType::end);
}

TEST_F(RoundMemberTest, RoundsThatDoNotFollowEndThePlace)
{
	next();
	next();
	grant(2, 150);
	run_until([&] { return !ends.empty(); });
	EXPECT_EQ(ends.front().reason,
		  "the server of the rounds sends a round that does not follow the last one");
}

TEST_F(RoundMemberTest, InvalidFrameOfATrunkEndsThePlace)
{
	refused = "a packet without credit";
	next();
	next();
	grant(1, 150, {packet(3, 120, 0)});
	run_until([&] { return !ends.empty(); });
	EXPECT_EQ(ends.front().reason, "trunk 3 delivers a packet without credit");
}

TEST_F(RoundMemberTest, LostServerEndsThePlaceOnce)
{
	next();
	next();
	server.socket.reset();
	run_until([&] { return !ends.empty(); });
	EXPECT_EQ(ends.front().reason,
		  "the server of the rounds has disconnected at 0.000000000 s");
	member.reset();
	EXPECT_EQ(ends.size(), 1u);
}

} // namespace
