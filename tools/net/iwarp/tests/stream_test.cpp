// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests two connected streams: messages are delivered in order for any fragmentation of the byte
// stream, and parameters are negotiated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/iwarp/stream.hpp"
#include "net/iwarp/testing/party.hpp"

namespace weft::iwarp
{
namespace
{

using testing::Party;
using testing::pattern;
using testing::pump;
using ::testing::ElementsAre;

constexpr Stag kRemote = 0x200, kLocal = 0x100;
constexpr std::uint32_t kMuch = 256 << 10;

StreamConfig initiator(StartFrame start = {})
{
	return {.initiator = true, .start = std::move(start)};
}

struct Pair {
	explicit Pair(const StreamConfig &first = initiator(), const StreamConfig &second = {},
		      std::size_t memory = 4096)
	    : a(first), b(second)
	{
		b.regions[kRemote] = {pattern(memory, 7), 0x10000};
		a.regions[kLocal] = {Bytes(memory), 0x20000};
	}
	Party a, b;
};

// Sizes around words and around the capacity of one segment, tagged and untagged.
constexpr std::uint32_t kSizes[] = {0,    1,    2,    3,    4,    5,     1435,  1436, 1437,
				    1439, 1440, 1441, 2872, 2873, 65535, 65536, kMuch};

struct Route {
	bool markers_a, markers_b, crc;
	std::size_t most;
};

class MpaModes : public ::testing::TestWithParam<Route>
{
};

TEST_P(MpaModes, MessagesArriveIntactWithMpaMarkersAtNeitherOneOrBothEnds)
{
	const Route way = GetParam();
	Pair pair(initiator({.markers = way.markers_a, .crc = way.crc}),
		  {.start = {.markers = way.markers_b, .crc = way.crc}}, kMuch);
	auto &[a, b] = pair;
	std::size_t count = 0;
	for (const std::uint32_t size : kSizes) {
		if (size > 5000 && way.most < 100)
			continue;
		b.receives.push_back(size);
		a.send(pattern(size, size));
		a.write(pattern(size, size + 1), kRemote, 0x10000);
		a.read({.sink = kLocal,
			.sink_offset = 0x20000,
			.length = size,
			.source = kRemote,
			.source_offset = 0x10000});
		pump(a, b, way.most);
		ASSERT_EQ(a.done.size(), count += 3) << size;
		EXPECT_EQ(b.messages.back().bytes, pattern(size, size));
		const Bytes written = pattern(size, size + 1);
		EXPECT_TRUE(std::ranges::equal(View(b.regions[kRemote].bytes).first(size), written))
			<< size;
		EXPECT_TRUE(std::ranges::equal(View(a.regions[kLocal].bytes).first(size), written))
			<< size;
	}
	EXPECT_FALSE(a.end || b.end);
}

INSTANTIATE_TEST_SUITE_P(Ways, MpaModes,
			 ::testing::Values(Route{false, false, true, SIZE_MAX},
					   Route{false, false, false, 1000},
					   Route{true, true, true, 999},
					   Route{true, false, true, 7},
					   Route{false, true, false, 1}));

TEST(Stream, ReceiverLearnsWhetherASendWasSolicitedAndWhichStagItInvalidated)
{
	Pair pair;
	auto &[a, b] = pair;
	b.receives = {10, 10, 10, 10};
	b.regions[1] = b.regions[2] = {};
	a.send({'p'});
	a.send({'q'}, Opcode::send_solicited);
	a.send({'r'}, Opcode::send_invalidate, 1);
	a.send({'s'}, Opcode::send_solicited_invalidate, 2);
	pump(a, b);
	ASSERT_EQ(b.messages.size(), 4u);
	EXPECT_EQ(b.messages[0].solicited, false);
	EXPECT_EQ(b.messages[1].solicited, true);
	EXPECT_EQ(b.messages[2].invalidated, Stag{1});
	EXPECT_EQ(b.messages[3].invalidated, Stag{2});
	EXPECT_EQ(b.messages[3].solicited, true);
	EXPECT_FALSE(b.regions.contains(1) || b.regions.contains(2));
	EXPECT_THAT(a.done, ElementsAre(1, 2, 3, 4));
}

TEST(Stream, AllMessagesArriveIfBothSidesSendConcurrently)
{
	Pair pair;
	auto &[a, b] = pair;
	pump(a, b);
	for (int i = 0; i < 40; ++i) {
		a.receives.push_back(5000);
		b.receives.push_back(5000);
		a.send(pattern(5000, 2 * static_cast<unsigned>(i)));
		b.send(pattern(4999, 2 * static_cast<unsigned>(i) + 1));
		a.read({.sink = kLocal,
			.sink_offset = 0x20000,
			.length = 3000,
			.source = kRemote,
			.source_offset = 0x10000});
	}
	pump(a, b, 333);
	EXPECT_FALSE(a.end) << unsigned{a.end->error.layer} << "/" << unsigned{a.end->error.type}
			    << "/" << unsigned{a.end->error.code};
	EXPECT_FALSE(b.end) << unsigned{b.end->error.layer} << "/" << unsigned{b.end->error.type}
			    << "/" << unsigned{b.end->error.code};
	EXPECT_EQ(a.messages.size(), 40u);
	EXPECT_EQ(b.messages.size(), 40u);
	EXPECT_EQ(a.done.size(), 80u);
	EXPECT_EQ(a.messages[39].bytes, pattern(4999, 79));
}

// RFC 5044 section 7.1.2: the responder cannot know when the initiator is ready.
TEST(Stream, ResponderSendsNothingBeforeItHasReceivedAMessageFromTheInitiator)
{
	Pair pair;
	auto &[a, b] = pair;
	b.send({'x'});
	a.receives = {1};
	b.receives = {1};
	pump(a, b);
	EXPECT_TRUE(a.reply);
	EXPECT_TRUE(a.messages.empty());
	a.send({'y'});
	pump(a, b);
	EXPECT_EQ(a.messages.size(), 1u);
}

TEST(Stream, MpaRejectIncludesPrivateData)
{
	Pair pair(initiator({.private_data = {'h', 'i'}}));
	auto &[a, b] = pair;
	b.answer = {'y', 'o'};
	pump(a, b);
	EXPECT_EQ(b.request->private_data, (Bytes{'h', 'i'}));
	EXPECT_EQ(a.reply->private_data, (Bytes{'y', 'o'}));

	Pair other;
	other.b.accepts = false;
	pump(other.a, other.b);
	ASSERT_TRUE(other.b.request);
	other.b.stream.reject({'n', 'o'});
	pump(other.a, other.b);
	EXPECT_EQ(other.a.end, (End{End::Kind::refused}));
	ASSERT_TRUE(other.a.refusal);
	EXPECT_EQ(other.a.refusal->private_data, (Bytes{'n', 'o'}));
	EXPECT_FALSE(other.a.reply);
	EXPECT_EQ(other.b.end, (End{End::Kind::refused}));
	EXPECT_TRUE(other.b.stream.finished());
}

// If one side requests the CRC, both use it.
TEST(Stream, CrcIsUsedIfEitherSideRequestsIt)
{
	for (const bool first : {false, true}) {
		Pair pair(initiator({.crc = first}), {.start = {.crc = !first}});
		auto &[a, b] = pair;
		std::vector<std::pair<int, Bytes>> log;
		b.receives = {4};
		a.send({'p', 'i', 'n', 'g'});
		pump(a, b, SIZE_MAX, &log);
		EXPECT_TRUE(a.reply->crc);
		EXPECT_NE(number_at(log.back().second, log.back().second.size() - 4, 4), 0u);
	}
}

// RFC 6581 section 6: each side's outstanding Reads are limited to what the other side can answer.
TEST(Stream, NumberOfOutstandingRdmaReadsIsLimitedToTheNegotiatedOrd)
{
	StreamConfig first = initiator({.revision = 2, .enhanced = Enhanced{.ird = 3, .ord = 9}});
	first.ird = 3;
	first.ord = 9;
	StreamConfig second;
	second.ird = 2;
	second.ord = 5;
	Pair pair(first, second);
	auto &[a, b] = pair;
	for (int i = 0; i < 6; ++i)
		a.read({.sink = kLocal,
			.sink_offset = 0x20000,
			.length = 8,
			.source = kRemote,
			.source_offset = 0x10000});
	b.stream.feed(a.output());
	a.stream.feed(b.output());
	EXPECT_EQ(a.reply->enhanced, (Enhanced{.ird = 2, .ord = 3}));
	// Exactly two requests are outstanding.
	constexpr std::size_t fpdu = 2 + 18 + 28 + 4;
	EXPECT_EQ(a.output().size(), 2 * fpdu);
	EXPECT_TRUE(a.output().empty());
	pump(a, b);
	EXPECT_FALSE(a.end);
}

TEST(Stream, FencedRequestWaitsForOutstandingRdmaReads)
{
	Pair pair;
	auto &[a, b] = pair;
	pump(a, b);
	b.receives = {1};
	a.read({.sink = kLocal,
		.sink_offset = 0x20000,
		.length = 8,
		.source = kRemote,
		.source_offset = 0x10000});
	a.stream.post({.opcode = Opcode::send,
		       .id = 99,
		       .fence = true,
		       .source = Party::source_of({'x'})});
	const Bytes request = a.output();
	EXPECT_TRUE(a.output().empty());
	b.stream.feed(request);
	EXPECT_TRUE(b.messages.empty());
	pump(a, b);
	EXPECT_EQ(b.messages.size(), 1u);
	EXPECT_THAT(a.done, ElementsAre(1, 99));
}

// RFC 6581 section 5: the responder may send first, once it has received an empty message.
TEST(Stream, PeerToPeerModeIsNegotiated)
{
	const std::pair<Enhanced, Opcode> offers[] = {
		{{.by_send = true}, Opcode::send},
		{{.by_send = true, .by_write = true, .by_read = true}, Opcode::write},
		{{.by_send = true, .by_read = true}, Opcode::read_request}};
	for (auto [offer, kind] : offers) {
		offer.peer_to_peer = true;
		offer.ird = offer.ord = 4;
		Pair pair(initiator({.revision = 2, .enhanced = offer}));
		auto &[a, b] = pair;
		a.receives = {1};
		b.send({'x'});
		pump(a, b);
		const auto &received = *a.reply->enhanced;
		EXPECT_TRUE(received.peer_to_peer);
		EXPECT_EQ(received.by_write, kind == Opcode::write);
		EXPECT_EQ(received.by_read, kind == Opcode::read_request);
		EXPECT_EQ(received.by_send, kind == Opcode::send);
		if (kind == Opcode::write)
			a.write({}, 0, 0);
		else if (kind == Opcode::read_request)
			a.read({});
		else
			a.send({});
		pump(a, b);
		EXPECT_EQ(a.messages.size(), 1u);
		// That message used no receive, so the next message is the first one.
		EXPECT_TRUE(b.messages.empty());
		EXPECT_FALSE(b.end);
		b.receives = {1};
		a.send({'y'});
		pump(a, b);
		EXPECT_EQ(b.messages.size(), 1u);
	}
}

TEST(Stream, StreamReportsWhetherTheConnectionWasClosedOrLost)
{
	Pair pair;
	auto &[a, b] = pair;
	b.receives = {4};
	a.send({1, 2, 3, 4});
	pump(a, b);
	b.stream.closed(true);
	EXPECT_EQ(b.end, (End{End::Kind::closed}));
	a.stream.closed(false);
	EXPECT_EQ(a.end, (End{End::Kind::lost, errors::kConnectionLost}));
	// The stream has ended, and later data is not received.
	b.stream.feed(pattern(100));
	b.send({'x'});
	EXPECT_TRUE(b.output().empty());
}

TEST(Stream, CloseWithAnOutstandingRdmaReadIsReportedAsAConnectionLoss)
{
	Pair pair;
	auto &[a, b] = pair;
	pump(a, b);
	a.read({.sink = kLocal,
		.sink_offset = 0x20000,
		.length = 8,
		.source = kRemote,
		.source_offset = 0x10000});
	a.output();
	a.stream.closed(true);
	EXPECT_EQ(a.end->kind, End::Kind::lost);
	EXPECT_TRUE(a.done.empty());
}

// If the peer answers no Reads, a Read would wait forever, and so would all later requests.
TEST(Stream, PostingAnRdmaReadClosesTheStreamIfThePeerNegotiatedZeroIrd)
{
	Pair pair(initiator({.revision = 2, .enhanced = Enhanced{.ird = 4, .ord = 4}}),
		  {.start = {.revision = 2}, .ird = 0, .ord = 4});
	pump(pair.a, pair.b);
	ASSERT_EQ(pair.a.reply->enhanced->ird, 0u);
	pair.a.read({.sink = kLocal,
		     .sink_offset = 0x20000,
		     .length = 10,
		     .source = kRemote,
		     .source_offset = 0x10000});
	pair.a.send(pattern(3));
	pump(pair.a, pair.b);
	EXPECT_TRUE(pair.a.end && pair.b.end);
	EXPECT_TRUE(pair.a.done.empty());
}

// A request does not complete until TCP has taken its data.
TEST(Stream, CloseWithUnsentDataIsReportedAsAConnectionLoss)
{
	Pair pair;
	pump(pair.a, pair.b);
	pair.a.send(pattern(100));
	Bytes one(1);
	ASSERT_EQ(pair.a.stream.take(one), 1u);
	pair.a.stream.closed(true);
	ASSERT_TRUE(pair.a.end);
	EXPECT_EQ(pair.a.end->kind, End::Kind::lost);
}

// An FPDU fits into a segment together with its markers.
TEST(Stream, FpduWithMarkersFitsIntoASegment)
{
	for (const bool markers : {false, true}) {
		Pair pair(initiator(), {.start = {.markers = markers}}, 50'000);
		pump(pair.a, pair.b);
		pair.a.write(pattern(50'000), kRemote, 0x10000);
		std::size_t longest = 0;
		for (Bytes part(10'000); const std::size_t size = pair.a.stream.take(part);)
			longest = std::max(longest, size);
		EXPECT_LE(longest, 1460u);
		EXPECT_GT(longest, 1440u);
	}
}

// The stream is ended after each of its bytes in turn. The end is orderly between messages, and an
// error elsewhere. Messages before the end are correct.
TEST(Stream, CloseInsideAMessageIsReportedAsAConnectionLoss)
{
	const auto talk = [](Party &a, Party &b) {
		b.receives = {2000, 10};
		a.send(pattern(2000));
		a.write(pattern(1500), kRemote, 0x10000);
		a.read({.sink = kLocal,
			.sink_offset = 0x20000,
			.length = 10,
			.source = kRemote,
			.source_offset = 0x10000});
		a.send(pattern(10), Opcode::send_solicited);
	};
	for (const bool markers : {false, true}) {
		const StreamConfig second{.start = {.markers = markers}};
		std::vector<std::pair<int, Bytes>> log;
		Pair whole(initiator(), second);
		talk(whole.a, whole.b);
		pump(whole.a, whole.b, SIZE_MAX, &log);
		Bytes stream;
		for (const auto &[side, bytes] : log)
			if (side == 0)
				stream.insert(stream.end(), bytes.begin(), bytes.end());
		std::size_t in_order = 0;
		for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
			Pair pair(initiator(), second);
			Party &b = pair.b;
			b.receives = {2000, 10};
			// Data that follows the request is sent after the reply.
			const std::size_t request = std::min(cut, log.front().second.size());
			b.stream.feed(View(stream).first(request));
			b.stream.feed(View(stream).first(cut).subspan(request));
			b.output();
			b.stream.closed(true);
			ASSERT_TRUE(b.end);
			EXPECT_TRUE(b.end->kind == End::Kind::closed ||
				    b.end->kind == End::Kind::lost)
				<< cut;
			in_order += b.end->kind == End::Kind::closed;
			if (!b.messages.empty()) {
				EXPECT_EQ(b.messages[0].bytes, pattern(2000));
			}
			if (b.messages.size() > 1) {
				EXPECT_EQ(b.messages[1].bytes, pattern(10));
			}
		}
		// Orderly ends are after the reply and after each of the four messages.
		EXPECT_EQ(in_order, 5u);
	}
}

} // namespace
} // namespace weft::iwarp
