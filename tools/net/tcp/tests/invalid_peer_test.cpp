// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests how a connection handles crafted segments that no valid peer sends, and that a peer can use
// only limited resources.
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/tcp/stack.hpp"
#include "net/tcp/testing/host.hpp"

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
public:
	TcpPeer()
	{
		stack.add_address(kOwn, 0xffffff00);
		announce();
		stack.listen({kOwn, kPort}, [this](const ConnectionPtr &connection) {
			server.connection = connection;
			connection->set_user(&server);
		});
	}
	// Sends a packet of the peer, so that it is in the neighbour table for a while.
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
	// Returns the segments sent since the last call, without their payloads.
	std::vector<Segment> from_stack()
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
	void pass(Clock::duration time)
	{
		bool over = false;
		Timer timer(loop, [&] { over = true; });
		timer.arm(time);
		ASSERT_TRUE(loop.run_until([&] { return over; }, time + 1s));
	}
	// Sends an echo request.
	void ping(Ip from)
	{
		Bytes echo{8, 0, 0, 0, 0, 1, 0, 2, 'h', 'i'};
		const auto sum = checksum(echo);
		echo[2] = static_cast<std::uint8_t>(sum >> 8);
		echo[3] = static_cast<std::uint8_t>(sum);
		stack.receive(encode({kOwnMac, kPeerMac, kTypeIp},
				     Packet{from, kOwn, kProtocolIcmp, echo}));
	}
	void establish()
	{
		Segment syn = segment(kSyn, 1000);
		syn.mss = 1460;
		say(syn);
		const auto answer = from_stack();
		ASSERT_EQ(answer.size(), 1u);
		EXPECT_EQ(answer[0].flags, kSyn | kAck);
		EXPECT_EQ(answer[0].acknowledgement, 1001u);
		EXPECT_EQ(answer[0].mss, 1460);
		own = answer[0].sequence + 1;
		say(segment(kAck, 1001, own));
		ASSERT_EQ(server.connections, 1u);
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	Client server;
	std::vector<Bytes> sent;
	Stack stack{
		loop, {.mac = kOwnMac}, [this](Bytes frame) { sent.push_back(std::move(frame)); }};
	std::uint32_t own = 0;
};

// Only the exact next sequence number resets the connection. A guessed one inside the window gets a
// challenge ACK. One outside the window gets an ACK as well, unless the segment is a RST.
TEST_F(TcpPeer, ResetWithAGuessedSequenceGetsAChallengeAck)
{
	establish();
	say(segment(kRst, 1002));
	auto answer = from_stack();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kAck);
	pass(Connection::kChallenge);
	say(segment(kRst, 500));
	EXPECT_TRUE(from_stack().empty());
	EXPECT_FALSE(server.end);
	say(segment(kSyn, 1001));
	answer = from_stack();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kAck);
	EXPECT_FALSE(server.end);
	say(segment(kRst, 1001));
	EXPECT_EQ(server.end, End::reset);
}

TEST_F(TcpPeer, AckOfUnsentDataIsIgnored)
{
	establish();
	const Bytes payload{1, 2, 3};
	say(segment(kAck, 1001, own + 1, payload));
	EXPECT_TRUE(server.input.empty());
	EXPECT_EQ(from_stack().size(), 1u);
	say(segment(kAck, 1001, own, payload));
	EXPECT_EQ(server.input.size(), 3u);
}

// Overlapping segments in any order are merged into one stream, and data beyond the window is cut
// off.
TEST_F(TcpPeer, OverlappingSegmentsAreMerged)
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

// The amount of data behind a gap is limited.
TEST_F(TcpPeer, AmountOfBufferedOutOfOrderDataIsLimited)
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

// The first missing segment is retransmitted without a timeout. Further ones of the same window
// follow as they are detected (RFC 6582).
TEST_F(TcpPeer, DuplicateAcksTriggerRetransmission)
{
	establish();
	EXPECT_TRUE(server.connection->write(Bytes(5 * 1460, 1)));
	EXPECT_EQ(from_stack().size(), 5u);
	say(segment(kAck, 1001, own));
	say(segment(kAck, 1001, own));
	EXPECT_TRUE(from_stack().empty());
	say(segment(kAck, 1001, own));
	auto again = from_stack();
	ASSERT_EQ(again.size(), 1u);
	EXPECT_EQ(again[0].sequence, own);
	say(segment(kAck, 1001, own + 2 * 1460));
	again = from_stack();
	ASSERT_EQ(again.size(), 1u);
	EXPECT_EQ(again[0].sequence, own + 2 * 1460);
	say(segment(kAck, 1001, own + 5 * 1460));
	EXPECT_TRUE(from_stack().empty());
}

TEST_F(TcpPeer, FinIsProcessedOnlyAfterTheMissingDataBeforeItHasArrived)
{
	establish();
	const Bytes bytes{1, 2, 3, 4};
	say(segment(kAck | kFin, 1003, own, View(bytes).subspan(2)));
	EXPECT_FALSE(server.closed_by_peer);
	say(segment(kAck, 1001, own, View(bytes).first(2)));
	EXPECT_TRUE(server.closed_by_peer);
	EXPECT_EQ(server.input.size(), 4u);
}

// A zero window is probed with one byte at a time, and does not end the connection.
TEST_F(TcpPeer, ZeroWindowIsProbed)
{
	establish();
	Segment shut = segment(kAck, 1001, own);
	shut.window = 0;
	say(shut);
	EXPECT_TRUE(server.connection->write(Bytes(5000, 1)));
	EXPECT_TRUE(from_stack().empty());
	std::size_t probes = 0;
	for (int i = 0; i < 20; ++i) {
		ASSERT_TRUE(loop.run_until([&] { return !sent.empty(); }, 5min));
		probes += from_stack().size();
		say(shut);
		announce();
	}
	EXPECT_EQ(probes, 20u);
	EXPECT_FALSE(server.end);
	say(segment(kAck, 1001, own + 1));
	ASSERT_TRUE(loop.run_until([&] { return from_stack().size() >= 3; }, 5min));
}

// Meanwhile received data is acknowledged with a sequence number that the peer accepts, because the
// peer has dropped the probe's byte.
TEST_F(TcpPeer, ReceivedDataIsAcknowledgedDuringZeroWindowProbes)
{
	establish();
	Segment shut = segment(kAck, 1001, own);
	shut.window = 0;
	say(shut);
	EXPECT_TRUE(server.connection->write(Bytes(10, 1)));
	ASSERT_TRUE(loop.run_until([&] { return !sent.empty(); }, 5min));
	from_stack();
	const Bytes bytes(1460, 3);
	for (std::uint32_t i = 0; i < 2; ++i) {
		Segment data = segment(kAck, 1001 + 1460 * i, own, bytes);
		data.window = 0;
		say(data);
	}
	const auto answer = from_stack();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].acknowledgement, 1001u + 2 * 1460);
	EXPECT_EQ(answer[0].sequence, own);
	EXPECT_EQ(server.input.size(), 2 * 1460u);
	server.connection->abort();
	EXPECT_EQ(from_stack().at(0).sequence, own);
}

// The peer may have received everything, and only its ACK was lost.
TEST_F(TcpPeer, AckAndRstSentDuringRetransmissionUseTheHighestSequenceNumberSentSoFar)
{
	establish();
	EXPECT_TRUE(server.connection->write(Bytes(3 * 1460, 1)));
	EXPECT_EQ(from_stack().size(), 3u);
	ASSERT_TRUE(loop.run_until([&] { return !sent.empty(); }, 5s));
	EXPECT_EQ(from_stack().at(0).sequence, own);
	const Bytes bytes(1460, 3);
	say(segment(kAck, 1001, own, bytes));
	say(segment(kAck, 1001 + 1460, own, bytes));
	const auto answer = from_stack();
	ASSERT_FALSE(answer.empty());
	EXPECT_EQ(answer.back().acknowledgement, 1001u + 2 * 1460);
	EXPECT_EQ(answer.back().sequence, own + 3 * 1460);
	server.connection->abort();
	const auto reset = from_stack();
	ASSERT_EQ(reset.size(), 1u);
	EXPECT_EQ(reset[0].flags, kRst | kAck);
	EXPECT_EQ(reset[0].sequence, own + 3 * 1460);
}

TEST_F(TcpPeer, FinWait2TimesOutIfThePeerSendsNeitherDataNorFin)
{
	establish();
	server.connection->close();
	EXPECT_EQ(from_stack().at(0).flags, kAck | kFin);
	say(segment(kAck, 1001, own + 1));
	EXPECT_EQ(server.connection->state(), State::fin_wait2);
	// The connection may stay open as long as data arrives.
	const Bytes one{1};
	pass(Connection::kFinWait - 1s);
	say(segment(kAck, 1001, own + 1, one));
	pass(Connection::kFinWait - 1s);
	EXPECT_FALSE(server.end);
	announce();
	pass(2s);
	EXPECT_EQ(server.end, End::timed_out);
	EXPECT_EQ(from_stack().at(0).flags, kRst | kAck);
	EXPECT_EQ(stack.connections(), 0u);
}

TEST_F(TcpPeer, ConnectionTimesOutIfZeroWindowProbesAreNotAnswered)
{
	establish();
	Segment shut = segment(kAck, 1001, own);
	shut.window = 0;
	say(shut);
	EXPECT_TRUE(server.connection->write(Bytes(5000, 1)));
	ASSERT_TRUE(loop.run_until([&] { return server.end.has_value(); }, 20min));
	EXPECT_EQ(server.end, End::timed_out);
}

// Data that is sent after a closed window has opened has all its retries and a new timeout, however
// often the window was probed.
TEST_F(TcpPeer, DataSentAfterAZeroWindowOpensGetsItsFullNumberOfRetransmissions)
{
	establish();
	Segment shut = segment(kAck, 1001, own);
	shut.window = 0;
	say(shut);
	EXPECT_TRUE(server.connection->write(Bytes(1460, 1)));
	for (unsigned i = 0; i < Connection::kMostTries + 5; ++i) {
		ASSERT_TRUE(loop.run_until([&] { return !sent.empty(); }, 5min));
		from_stack();
		say(shut);
		announce();
	}
	say(segment(kAck, 1001, own));
	const auto first = from_stack();
	ASSERT_EQ(first.size(), 1u);
	EXPECT_EQ(first[0].sequence, own);
	// The segment is lost.
	pass(10s);
	EXPECT_FALSE(server.end);
	EXPECT_GE(from_stack().size(), 2u);
}

// After a timeout, data that has already arrived is sent again. The ACKs for it trigger no further
// retransmission.
TEST_F(TcpPeer, DuplicateAcksCausedByRetransmittedSegmentsTriggerNoFastRetransmit)
{
	establish();
	EXPECT_TRUE(server.connection->write(Bytes(5 * 1460, 1)));
	from_stack();
	ASSERT_TRUE(loop.run_until([&] { return !sent.empty(); }, 5s));
	from_stack();
	say(segment(kAck, 1001, own + 1460));
	EXPECT_EQ(from_stack().size(), 2u);
	for (unsigned i = 0; i < 4; ++i)
		say(segment(kAck, 1001, own + 1460));
	EXPECT_TRUE(from_stack().empty());
}

// A peer that still has an older connection gets a RST.
TEST_F(TcpPeer, UnacceptableAckInSynSentStateIsAnsweredWithRst)
{
	Client client;
	client.connection = stack.connect({kPeer, 90}, client);
	const auto syn = from_stack();
	ASSERT_EQ(syn.size(), 1u);
	Segment foreign = segment(kAck, 777, syn[0].sequence + 5000);
	foreign.source = 90;
	foreign.destination = syn[0].source;
	say(foreign);
	auto answer = from_stack();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kRst);
	EXPECT_EQ(answer[0].sequence, foreign.acknowledgement);
	foreign.flags |= kRst;
	say(foreign);
	EXPECT_TRUE(from_stack().empty());
	Segment right = foreign;
	right.flags = kSyn | kAck;
	right.acknowledgement = syn[0].sequence + 1;
	say(right);
	EXPECT_EQ(client.connections, 1u);
	client.connection->set_user(nullptr);
}

// No byte is stored twice. A short segment replaces only its own range.
TEST_F(TcpPeer, BytesOfOverlappingOutOfOrderSegmentsAreStoredOnlyOnce)
{
	establish();
	const Bytes bytes(1460, 9);
	say(segment(kAck, 1001 + 100, own, View(bytes).first(1)));
	for (std::uint32_t i = 0; i < 40; ++i)
		say(segment(kAck, 1001 + 100 - i, own, bytes));
	EXPECT_LE(server.connection->early(), 1460u + 40);
	EXPECT_GE(server.connection->early(), 1460u);
	say(segment(kAck, 1001, own, View(bytes).first(100)));
	EXPECT_EQ(server.input.size(), 1560u);
	EXPECT_EQ(server.connection->early(), 0u);
}

// Two hosts that disagree on sequence numbers do not send each other ACKs forever.
TEST_F(TcpPeer, ChallengeAcksAreRateLimited)
{
	establish();
	for (unsigned i = 0; i < 100; ++i) {
		say(segment(kAck, 500, own));
		say(segment(kAck, 1001, own + 100));
		say(segment(kAck, 1001, own - 100000));
		say(segment(kSyn, 1001));
		say(segment(kRst, 1005));
	}
	// Each kind of packet has its own limit, so packets without effect do not prevent a
	// challenge ACK for the peer's RST.
	EXPECT_EQ(from_stack().size(), 2u);
	pass(Connection::kChallenge);
	say(segment(kAck, 500, own));
	EXPECT_EQ(from_stack().size(), 1u);
	// Repeated data after a lost ACK is answered.
	const Bytes one{1};
	for (unsigned i = 0; i < 3; ++i)
		say(segment(kAck, 990, own, one));
	EXPECT_EQ(from_stack().size(), 3u);
	EXPECT_FALSE(server.end);
}

// A very old ACK number must have been guessed, so the segment's data is not accepted either.
TEST_F(TcpPeer, DataWithAVeryOldAckNumberIsRejected)
{
	establish();
	const Bytes one{1};
	say(segment(kAck, 1001, own - 0x10000, one));
	EXPECT_TRUE(server.input.empty());
	say(segment(kAck, 1001, own - 0x100, one));
	EXPECT_EQ(server.input.size(), 1u);
}

// The number of half-open connections is limited, and they never displace established ones.
TEST_F(TcpPeer, NumberOfHalfOpenConnectionsIsLimited)
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

// An honest client with a single half-open connection can still establish it.
TEST_F(TcpPeer, SynFloodFromOneAddressDoesNotEvictAHalfOpenConnectionFromAnotherAddress)
{
	Segment honest = segment(kSyn, 5000);
	honest.source = 999;
	say(honest);
	const std::uint32_t answered = from_stack().at(0).sequence;
	for (std::uint32_t i = 0; i < 3 * Stack::kMostUnfinished; ++i) {
		Segment syn = segment(kSyn, i);
		syn.source = static_cast<std::uint16_t>(3000 + i);
		say(syn, kPeer + 1);
	}
	EXPECT_EQ(stack.connections(), Stack::kMostUnfinished);
	honest.flags = kAck;
	honest.sequence = 5001;
	honest.acknowledgement = answered + 1;
	say(honest);
	EXPECT_EQ(server.connections, 1u);
}

// The same applies to spoofed addresses: a flood of SYNs from more invented addresses than the
// limit of half-open connections does not prevent a client with a real address from completing its
// handshake.
TEST_F(TcpPeer, SynFloodFromSpoofedAddressesDoesNotEvictTheHalfOpenConnectionOfARealClient)
{
	constexpr Ip network = kOwn & 0xffff0000;
	stack.add_address(network + 0x0101, 0xffff0000);
	Segment honest = segment(kSyn, 5000);
	honest.source = 999;
	say(honest);
	const std::uint32_t answered = from_stack().at(0).sequence;
	for (std::uint32_t i = 0; i < 3 * Stack::kMostUnfinished; ++i)
		say(segment(kSyn, i), network + 0x0200 + i);
	EXPECT_EQ(stack.connections(), Stack::kMostUnfinished);
	honest.flags = kAck;
	honest.sequence = 5001;
	honest.acknowledgement = answered + 1;
	say(honest);
	EXPECT_EQ(server.connections, 1u);
	// A client that cannot be answered does not use up a connection either.
	ASSERT_TRUE(loop.run_until([&] { return stack.connections() == 1; }, 20min));
	say(segment(kSyn, 1), 0x0b000001);
	EXPECT_EQ(stack.connections(), 1u);
}

// Connections in TIME_WAIT are removed early if space is needed.
TEST_F(TcpPeer, TimeWaitConnectionsAreEvictedFirst)
{
	for (std::uint32_t i = 0; i < Stack::kMostConnections + 10; ++i) {
		Client one;
		server = Client{};
		Segment syn = segment(kSyn, 1000);
		syn.source = static_cast<std::uint16_t>(3000 + i);
		say(syn);
		const auto answer = from_stack();
		ASSERT_EQ(answer.size(), 1u) << i;
		syn.flags = kAck;
		syn.sequence = 1001;
		syn.acknowledgement = answer[0].sequence + 1;
		say(syn);
		server.connection->close();
		syn.flags = kAck | kFin;
		++syn.acknowledgement;
		say(syn);
		from_stack();
		// The user has finished with the connection.
		ASSERT_EQ(server.end, End::closed) << i;
		loop.poll();
	}
	EXPECT_EQ(stack.connections(), Stack::kMostConnections);
	pass(Connection::kTimeWait + 1s);
	EXPECT_EQ(stack.connections(), 0u);
}

// The connection is removed even if its user cannot be notified.
TEST_F(TcpPeer, AbortedConnectionIsRemovedEvenIfTheCallbackOfItsUserThrows)
{
	struct Failing final : User {
		void connected() override {}
		void received(View) override {}
		void writable() override {}
		void peer_closed() override {}
		void ended(End) override { throw std::bad_alloc(); }
	} failing;
	const ConnectionPtr connection = stack.connect({kPeer, 90}, failing);
	EXPECT_THROW(connection->abort(), std::bad_alloc);
	EXPECT_EQ(stack.connections(), 0u);
}

// A listener's captures are destroyed only after its callback has returned.
TEST_F(TcpPeer, AcceptCallbackThatStopsItsListenerIsDestroyedOnlyAfterItReturns)
{
	auto kept = std::make_shared<int>(1);
	const std::weak_ptr<int> watched = kept;
	bool there = false;
	stack.stop_listening({kOwn, kPort});
	stack.listen({kOwn, kPort}, [&, kept = std::move(kept)](const ConnectionPtr &connection) {
		connection->set_user(&server);
		server.connection = connection;
		stack.stop_listening({kOwn, kPort});
		there = !watched.expired();
	});
	establish();
	EXPECT_TRUE(there);
	EXPECT_TRUE(watched.expired());
}

TEST_F(TcpPeer, AllSegmentsExceptRstForUnknownConnectionsAreAnsweredWithRst)
{
	Segment stray = segment(kAck, 5, 77);
	say(stray);
	auto answer = from_stack();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kRst);
	EXPECT_EQ(answer[0].sequence, 77u);
	stray = segment(kSyn, 5);
	stray.destination = 81;
	say(stray);
	answer = from_stack();
	ASSERT_EQ(answer.size(), 1u);
	EXPECT_EQ(answer[0].flags, kRst | kAck);
	EXPECT_EQ(answer[0].acknowledgement, 6u);
	say(segment(kRst, 5));
	EXPECT_TRUE(from_stack().empty());
}

// The packets have wrong checksums, inconsistent lengths, fragments, or options without an end.
TEST_F(TcpPeer, InvalidPacketsAreIgnored)
{
	const Bytes good =
		encode({kOwnMac, kPeerMac, kTypeIp},
		       Packet{kPeer, kOwn, kProtocolTcp, encode(kPeer, kOwn, segment(kSyn, 1))});
	for (std::size_t i = kEthernetHeader; i < good.size(); ++i)
		for (const std::uint8_t bit : {0x01, 0x80}) {
			Bytes spoilt = good;
			spoilt[i] ^= bit;
			stack.receive(spoilt);
			EXPECT_TRUE(from_stack().empty()) << i;
		}
	for (std::size_t size = 0; size < good.size(); ++size)
		stack.receive(View(good).first(size));
	EXPECT_TRUE(from_stack().empty());
	EXPECT_EQ(stack.connections(), 0u);
	stack.receive(good);
	EXPECT_EQ(from_stack().size(), 1u);
}

TEST_F(TcpPeer, ArpAndPingAreAnswered)
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
	ping(kPeer);
	ASSERT_EQ(sent.size(), 1u);
	const auto packet = parse_packet(View(sent[0]).subspan(kEthernetHeader));
	ASSERT_TRUE(packet);
	EXPECT_EQ(packet->destination, kPeer);
	EXPECT_EQ(packet->payload[0], 0);
	EXPECT_EQ(packet->payload[9], 'i');
	EXPECT_EQ(checksum(packet->payload), 0);
}

// The number of neighbour entries is limited even if a host claims every address. The newest ones
// are kept.
TEST_F(TcpPeer, NumberOfNeighbourEntriesIsLimited)
{
	unsigned asked = 0, lost = 0, reached = 0;
	Neighbours neighbours(loop, [&](Ip) { ++asked; }, [&](Ip) { ++lost; });
	for (Ip address = 1; address <= 1000; ++address) {
		neighbours.learn_anew(address, kPeerMac);
		neighbours.reach(address, Neighbours::For::answer, [&](Mac) { ++reached; });
	}
	EXPECT_EQ(neighbours.size(), Neighbours::kMostNeighbours);
	EXPECT_EQ(reached, 1000u);
	EXPECT_EQ(asked, 0u);
	neighbours.learn(5000, kPeerMac);
	neighbours.learn_anew(5001, kBroadcast);
	neighbours.reach(5001, Neighbours::For::answer, [&](Mac) { ++reached; });
	EXPECT_EQ(asked, 1u);
	ASSERT_TRUE(loop.run_until([&] { return lost == 1; }, 1min));
	EXPECT_EQ(asked, Neighbours::kMostTries);
	EXPECT_EQ(reached, 1000u);
}

// Invented addresses replace only entries that are not in use, and not those of hosts to which this
// host talks. An address that this host needs always gets an entry.
TEST_F(TcpPeer, NeighboursInUseAreNotEvicted)
{
	using For = Neighbours::For;
	unsigned reached = 0;
	std::vector<Ip> asked;
	Neighbours neighbours(loop, [&](Ip address) { asked.push_back(address); }, [](Ip) {});
	const auto count = [&](Mac) { ++reached; };
	neighbours.learn_anew(7, kPeerMac);
	neighbours.reach(7, For::self, count);
	EXPECT_EQ(reached, 1u);
	pass(1ms);
	for (Ip address = 1000; address < 2000; ++address) {
		neighbours.reach(address, For::answer, count);
		neighbours.learn_anew(address + 5000, kPeerMac);
		neighbours.reach(address + 5000, For::answer, [](Mac) {});
	}
	EXPECT_EQ(neighbours.size(), Neighbours::kMostNeighbours);
	neighbours.reach(7, For::self, count);
	EXPECT_EQ(reached, 2u);
	asked.clear();
	neighbours.reach(8, For::self, count);
	EXPECT_EQ(asked, std::vector<Ip>{8});
	for (Ip address = 2000; address < 3000; ++address)
		neighbours.reach(address, For::answer, count);
	neighbours.learn(8, kPeerMac);
	EXPECT_EQ(reached, 3u);
}

// Only addresses of the own network become neighbours, and packets to other addresses are not
// answered.
TEST_F(TcpPeer, ArpFromAnInvalidMacAndPingFromAnInvalidAddressAreNotAnswered)
{
	const auto ask = [&](Mac mac, Ip sender) {
		sent.clear();
		stack.receive(
			encode({kBroadcast, kPeerMac, kTypeArp}, Arp{false, mac, 0, sender, kOwn}));
		return sent.size();
	};
	EXPECT_EQ(ask(kPeerMac, kPeer + 1), 1u);
	EXPECT_EQ(ask(kBroadcast, kPeer + 2), 0u);
	EXPECT_EQ(ask(0, kPeer + 2), 0u);
	// The requests are answered, but 300 addresses outside the own network get no entry.
	for (Ip address = 0x0b000001; address < 0x0b000001 + 300; ++address)
		EXPECT_EQ(ask(kPeerMac, address), 1u);
	sent.clear();
	ping(kPeer + 1);
	ASSERT_EQ(sent.size(), 1u);
	EXPECT_EQ(parse_ethernet(sent[0])->type, kTypeIp);
	sent.clear();
	for (const Ip nobody : {Ip{0}, Ip{0xe0000001}, Ip{0xffffffff}, kOwn | 0xff})
		ping(nobody);
	EXPECT_TRUE(sent.empty());
}

} // namespace
} // namespace weft::tcp
