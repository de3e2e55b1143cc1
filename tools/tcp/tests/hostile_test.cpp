// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Segments that no honest peer sends, made by hand: what becomes of the connection, and what
// anybody can take.
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tcp/stack.hpp"
#include "tcp/testing/station.hpp"

namespace weft::tcp
{
namespace
{

using namespace std::chrono_literals;
using testing::Client;

constexpr Mac kOwnMac = 0x020000000001, kPeerMac = 0x020000000002;
constexpr Ip kOwn = 0x0a000001, kPeer = 0x0a000002;
constexpr std::uint16_t kPort = 80, kPeerPort = 2000;

class TcpPeer : public ::testing::Test
{
protected:
	TcpPeer()
	{
		stack.add_address(kOwn, 0xffffff00);
		announce();
		stack.listen({kOwn, kPort}, [this](const ConnectionPtr &connection) {
			server.connection = connection;
			connection->set_user(&server);
		});
	}
	// The peer is heard of, by which it is known for a while.
	void announce()
	{
		stack.receive(encode({kBroadcast, kPeerMac, kTypeArp},
				     Arp{false, kPeerMac, 0, kPeer, kOwn}));
		sent.clear();
	}
	static Segment segment(std::uint8_t flags, std::uint32_t sequence,
			       std::uint32_t acknowledgement = 0, View payload = {})
	{
		Segment made;
		made.source = kPeerPort;
		made.destination = kPort;
		made.flags = flags;
		made.sequence = sequence;
		made.acknowledgement = acknowledgement;
		made.window = 0xffff;
		made.payload = payload;
		return made;
	}
	void say(const Segment &said, Ip from = kPeer)
	{
		const Bytes bytes = encode(from, kOwn, said);
		stack.receive(encode({kOwnMac, kPeerMac, kTypeIp},
				     Packet{from, kOwn, kProtocolTcp, bytes}));
	}
	// The segments that were sent since this was asked last; their payloads are gone.
	std::vector<Segment> heard()
	{
		std::vector<Segment> all;
		for (const Bytes &frame : std::exchange(sent, {})) {
			const auto packet = parse_packet(View(frame).subspan(kEthernetHeader));
			if (const auto parsed = packet ? parse_segment(*packet) : std::nullopt) {
				all.push_back(*parsed);
				all.back().payload = {};
			}
		}
		return all;
	}
	void establish()
	{
		Segment syn = segment(kSyn, 1000);
		syn.mss = 1460;
		say(syn);
		const auto answer = heard();
		ASSERT_EQ(answer.size(), 1u);
		EXPECT_EQ(answer[0].flags, kSyn | kAck);
		EXPECT_EQ(answer[0].acknowledgement, 1001u);
		EXPECT_EQ(answer[0].mss, 1460);
		own = answer[0].sequence + 1;
		say(segment(kAck, 1001, own));
		ASSERT_EQ(server.connections, 1u);
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::Manual, environment};
	Client server;
	std::vector<Bytes> sent;
	Stack stack{
		loop, {.mac = kOwnMac}, [this](Bytes frame) { sent.push_back(std::move(frame)); }};
	std::uint32_t own = 0;
};

// Only the very next number resets; a guess within the window is asked about, one outside of it
// too, but for a RST.
TEST_F(TcpPeer, AGuessedResetIsAskedAbout)
{
	establish();
	say(segment(kRst, 1002));
	auto answer = heard();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kAck);
	say(segment(kRst, 500));
	EXPECT_TRUE(heard().empty());
	EXPECT_FALSE(server.end);
	say(segment(kSyn, 1001));
	answer = heard();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kAck);
	EXPECT_FALSE(server.end);
	say(segment(kRst, 1001));
	EXPECT_EQ(server.end, End::Reset);
}

TEST_F(TcpPeer, AnAcknowledgementOfWhatWasNotSentIsNotBelieved)
{
	establish();
	const Bytes payload{1, 2, 3};
	say(segment(kAck, 1001, own + 1, payload));
	EXPECT_TRUE(server.input.empty());
	EXPECT_EQ(heard().size(), 1u);
	say(segment(kAck, 1001, own, payload));
	EXPECT_EQ(server.input.size(), 3u);
}

// Overlapping pieces in any order are one stream; what is beyond the window is cut off.
TEST_F(TcpPeer, PiecesOverlap)
{
	establish();
	Bytes all(100);
	for (std::uint8_t i = 0; i < all.size(); ++i)
		all[i] = i;
	const auto piece = [&](std::uint32_t from, std::uint32_t upto) {
		say(segment(kAck, 1001 + from, own, View(all).subspan(from, upto - from)));
	};
	piece(50, 80);
	piece(40, 60);
	piece(0, 10);
	piece(5, 45);
	piece(79, 100);
	EXPECT_TRUE(server.input == all);
	piece(0, 100);
	EXPECT_EQ(server.input.size(), 100u);
}

// Bytes behind a gap are kept, but not without end.
TEST_F(TcpPeer, WhatComesEarlyIsBounded)
{
	establish();
	const Bytes one{9};
	for (std::uint32_t i = 0; i < 2 * Connection::kMostEarly; ++i)
		say(segment(kAck, 1001 + 2 + 2 * i, own, one));
	const Bytes rest(2 * 2 * Connection::kMostEarly, 9);
	say(segment(kAck, 1001, own, View(rest).first(2)));
	EXPECT_EQ(server.input.size(), 3u);
	say(segment(kAck, 1001, own, rest));
	EXPECT_EQ(server.input.size(), rest.size());
}

// Without waiting: the first that is missing, and of the same window the next, when it shows (RFC
// 6582).
TEST_F(TcpPeer, EqualAcknowledgementsAskForWhatIsLost)
{
	establish();
	EXPECT_TRUE(server.connection->write(Bytes(5 * 1460, 1)));
	EXPECT_EQ(heard().size(), 5u);
	say(segment(kAck, 1001, own));
	say(segment(kAck, 1001, own));
	EXPECT_TRUE(heard().empty());
	say(segment(kAck, 1001, own));
	auto again = heard();
	ASSERT_EQ(again.size(), 1u);
	EXPECT_EQ(again[0].sequence, own);
	say(segment(kAck, 1001, own + 2 * 1460));
	again = heard();
	ASSERT_EQ(again.size(), 1u);
	EXPECT_EQ(again[0].sequence, own + 2 * 1460);
	say(segment(kAck, 1001, own + 5 * 1460));
	EXPECT_TRUE(heard().empty());
}

TEST_F(TcpPeer, AFinBehindAGapWaits)
{
	establish();
	const Bytes bytes{1, 2, 3, 4};
	say(segment(kAck | kFin, 1003, own, View(bytes).subspan(2)));
	EXPECT_FALSE(server.closed_by_peer);
	say(segment(kAck, 1001, own, View(bytes).first(2)));
	EXPECT_TRUE(server.closed_by_peer);
	EXPECT_EQ(server.input.size(), 4u);
}

// A shut window is asked about, with one byte at a time, and does not end the connection.
TEST_F(TcpPeer, AShutWindowIsProbed)
{
	establish();
	Segment shut = segment(kAck, 1001, own);
	shut.window = 0;
	say(shut);
	EXPECT_TRUE(server.connection->write(Bytes(5000, 1)));
	EXPECT_TRUE(heard().empty());
	std::size_t probes = 0;
	for (int i = 0; i < 20; ++i) {
		ASSERT_TRUE(loop.run_until([&] { return !sent.empty(); }, 5min));
		probes += heard().size();
		say(shut);
		announce();
	}
	EXPECT_EQ(probes, 20u);
	EXPECT_FALSE(server.end);
	say(segment(kAck, 1001, own + 1));
	ASSERT_TRUE(loop.run_until([&] { return heard().size() >= 3; }, 5min));
}

// Who begins and does not go on takes a bounded number of places, and no established connection's.
TEST_F(TcpPeer, HalfOpenConnectionsAreBounded)
{
	establish();
	for (std::uint32_t i = 0; i < 3 * Stack::kMostUnfinished; ++i) {
		Segment syn = segment(kSyn, i);
		syn.source = static_cast<std::uint16_t>(3000 + i);
		say(syn);
	}
	EXPECT_EQ(stack.connections(), Stack::kMostUnfinished + 1);
	EXPECT_FALSE(server.end);
	ASSERT_TRUE(loop.run_until([&] { return stack.connections() == 1; }, 20min));
}

TEST_F(TcpPeer, WhatIsNobodysIsRefused)
{
	Segment stray = segment(kAck, 5, 77);
	say(stray);
	auto answer = heard();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kRst);
	EXPECT_EQ(answer[0].sequence, 77u);
	stray = segment(kSyn, 5);
	stray.destination = 81;
	say(stray);
	answer = heard();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kRst | kAck);
	EXPECT_EQ(answer[0].acknowledgement, 6u);
	say(segment(kRst, 5));
	EXPECT_TRUE(heard().empty());
}

// Checks that are wrong, lengths that lie, fragments, options without an end.
TEST_F(TcpPeer, WhatIsNoPacketIsIgnored)
{
	const Bytes good =
		encode({kOwnMac, kPeerMac, kTypeIp},
		       Packet{kPeer, kOwn, kProtocolTcp, encode(kPeer, kOwn, segment(kSyn, 1))});
	for (std::size_t i = kEthernetHeader; i < good.size(); ++i)
		for (const std::uint8_t bit : {0x01, 0x80}) {
			Bytes spoilt = good;
			spoilt[i] ^= bit;
			stack.receive(spoilt);
			EXPECT_TRUE(heard().empty()) << i;
		}
	for (std::size_t size = 0; size < good.size(); ++size)
		stack.receive(View(good).first(size));
	EXPECT_TRUE(heard().empty());
	EXPECT_EQ(stack.connections(), 0u);
	stack.receive(good);
	EXPECT_EQ(heard().size(), 1u);
}

TEST_F(TcpPeer, AnswersArpAndPing)
{
	stack.receive(
		encode({kBroadcast, kPeerMac, kTypeArp}, Arp{false, kPeerMac, 0, kPeer, kOwn}));
	ASSERT_EQ(sent.size(), 1u);
	const auto arp = parse_arp(View(sent[0]).subspan(kEthernetHeader));
	ASSERT_TRUE(arp);
	EXPECT_TRUE(arp->reply);
	EXPECT_EQ(arp->sender_mac, kOwnMac);
	sent.clear();
	stack.receive(
		encode({kBroadcast, kPeerMac, kTypeArp}, Arp{false, kPeerMac, 0, kPeer, kOwn + 5}));
	EXPECT_TRUE(sent.empty());
	Bytes echo{8, 0, 0, 0, 0, 1, 0, 2, 'h', 'i'};
	const auto sum = checksum(echo);
	echo[2] = static_cast<std::uint8_t>(sum >> 8);
	echo[3] = static_cast<std::uint8_t>(sum);
	stack.receive(
		encode({kOwnMac, kPeerMac, kTypeIp}, Packet{kPeer, kOwn, kProtocolIcmp, echo}));
	ASSERT_EQ(sent.size(), 1u);
	const auto packet = parse_packet(View(sent[0]).subspan(kEthernetHeader));
	ASSERT_TRUE(packet);
	EXPECT_EQ(packet->destination, kPeer);
	EXPECT_EQ(packet->payload[0], 0);
	EXPECT_EQ(packet->payload[9], 'i');
	EXPECT_EQ(checksum(packet->payload), 0);
}

// A station that claims every address has a bounded number of places; the newest are known.
TEST_F(TcpPeer, NeighboursAreBounded)
{
	unsigned asked = 0, lost = 0, reached = 0;
	Neighbours neighbours(loop, [&](Ip) { ++asked; }, [&](Ip) { ++lost; });
	for (Ip address = 1; address <= 1000; ++address) {
		neighbours.learn_anew(address, kPeerMac);
		neighbours.reach(address, [&](Mac) { ++reached; });
	}
	EXPECT_EQ(neighbours.size(), Neighbours::kMostNeighbours);
	EXPECT_EQ(reached, 1000u);
	EXPECT_EQ(asked, 0u);
	neighbours.learn(5000, kPeerMac);
	neighbours.learn_anew(5001, kBroadcast);
	neighbours.reach(5001, [&](Mac) { ++reached; });
	EXPECT_EQ(asked, 1u);
	ASSERT_TRUE(loop.run_until([&] { return lost == 1; }, 1min));
	EXPECT_EQ(asked, Neighbours::kMostTries);
	EXPECT_EQ(reached, 1000u);
}

} // namespace
} // namespace weft::tcp
