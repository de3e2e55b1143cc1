// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that invalid input from the peer is answered with the specified Terminate, and that no data
// is placed.
#include <cctype>
#include <string>
#include <string_view>

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

constexpr Stag kRegion = 0x200, kReadOnly = 0x300, kWriteOnly = 0x400;
constexpr std::uint64_t kBase = 0x10000;

// A responder that gets single segments from the test.
class Refusal : public ::testing::Test
{
public:
	Refusal()
	{
		b.stream.feed(encode(StartFrame{}));
		b.output();
		b.regions[kRegion] = {Bytes(1000), kBase};
		b.regions[kReadOnly] = {Bytes(1000), kBase, false, true};
		b.regions[kWriteOnly] = {Bytes(1000), kBase, true, false};
		b.receives = {100};
		before = b.regions[kRegion].bytes;
	}
	void deliver(const Segment &segment) { deliver(encode(segment)); }
	void deliver(const Bytes &ulpdu) { b.stream.feed(writer.frame(ulpdu)); }
	// Checks the error of the stream, and the Terminate message that the peer receives.
	void expect(const Error &error)
	{
		ASSERT_TRUE(b.end) << "nothing was said of it";
		EXPECT_EQ(*b.end, (End{End::Kind::failed, error}))
			<< unsigned{b.end->error.layer} << "/" << unsigned{b.end->error.type} << "/"
			<< unsigned{b.end->error.code};
		const Bytes out = b.output();
		ASSERT_GE(out.size(), 2 + kUntaggedHeader + 4 + 4);
		const Bytes payload = encode(error);
		const Bytes terminate = FpduWriter(false, true)
						.frame(encode(Segment{.opcode = Opcode::terminate,
								      .last = true,
								      .queue = kTerminateQueue,
								      .sequence = 1,
								      .payload = payload}));
		EXPECT_TRUE(std::ranges::equal(View(out).last(terminate.size()), terminate));
		EXPECT_TRUE(b.stream.finished());
		EXPECT_EQ(b.regions[kRegion].bytes, before);
		EXPECT_TRUE(b.messages.empty());
	}
	Segment send(View payload, std::uint32_t sequence = 1, std::uint32_t offset = 0,
		     bool last = true)
	{
		return {.opcode = Opcode::send,
			.last = last,
			.sequence = sequence,
			.message_offset = offset,
			.payload = payload};
	}
	Segment write(View payload, Stag stag, std::uint64_t offset)
	{
		return {.opcode = Opcode::write,
			.last = true,
			.stag = stag,
			.offset = offset,
			.payload = payload};
	}
	// @payload is kept while the segment exists.
	Segment ask(const ReadRequest &request, std::uint32_t sequence = 1)
	{
		kept = encode(request);
		return {.opcode = Opcode::read_request,
			.last = true,
			.queue = kReadQueue,
			.sequence = sequence,
			.payload = kept};
	}

	Party b{StreamConfig{.ird = 2}};
	FpduWriter writer{false, true};
	Bytes before, kept;
	const Bytes data = pattern(50);
};

TEST_F(Refusal, TruncatedTaggedHeaderIsRefused)
{
	deliver(Bytes{0xc1, 0x40, 0});
	expect(errors::kDdpCatastrophic);
}

TEST_F(Refusal, TruncatedUntaggedHeaderIsRefused)
{
	Bytes ulpdu = encode(send({}));
	ulpdu.resize(kUntaggedHeader - 1);
	deliver(ulpdu);
	expect(errors::kDdpCatastrophic);
}

struct Edit {
	const char *what;
	bool tagged;
	std::size_t at;
	std::uint8_t value;
	Error error;
};

class HeaderRefusal : public Refusal, public ::testing::WithParamInterface<Edit>
{
};

TEST_P(HeaderRefusal, InvalidHeaderFieldTerminatesTheStream)
{
	const Edit &edit = GetParam();
	Bytes ulpdu = encode(edit.tagged ? write(data, kRegion, kBase) : send(data));
	ulpdu[edit.at] = edit.value;
	deliver(ulpdu);
	expect(edit.error);
}

INSTANTIATE_TEST_SUITE_P(
	Headers, HeaderRefusal,
	::testing::Values(
		Edit{"tagged DDP version", true, 0, 0xc2, errors::kTaggedVersion},
		Edit{"untagged DDP version", false, 0, 0x40, errors::kUntaggedVersion},
		Edit{"RDMAP version", true, 1, 0x80, errors::kRdmapVersion},
		Edit{"no opcode", true, 1, 0x48, errors::kUnexpectedOpcode},
		Edit{"a Send that is tagged", true, 1, 0x43, errors::kUnexpectedOpcode},
		Edit{"a Write that is not", false, 1, 0x40, errors::kUnexpectedOpcode},
		Edit{"a Send on the queue of Reads", false, 9, 1, errors::kUnexpectedOpcode},
		Edit{"a queue that there is not", false, 9, 3, errors::kQueueNumber},
		Edit{"message 2 before 1", false, 13, 2, errors::kSequenceNumber},
		Edit{"a message that begins in its middle", false, 17, 1, errors::kMessageOffset},
		Edit{"an STag that there is not", true, 5, 1, errors::kTaggedInvalidStag},
		Edit{"a place before the region", true, 11, 0, errors::kTaggedBounds},
		Edit{"a response that nobody asked for", true, 1, 0x42, errors::kUnexpectedOpcode}),
	[](const auto &edit) {
		std::string name;
		for (const char character : std::string_view(edit.param.what))
			name += std::isalnum(static_cast<unsigned char>(character)) ? character
										    : '_';
		return name;
	});

TEST_F(Refusal, RdmaWriteBeyondTheMemoryRegionIsRefused)
{
	deliver(write(data, kRegion, kBase + 951));
	expect(errors::kTaggedBounds);
}

TEST_F(Refusal, RdmaWriteThatWrapsAroundTheAddressSpaceIsRefused)
{
	deliver(write(data, kRegion, ~0ull - 10));
	expect(errors::kTaggedWrapped);
}

TEST_F(Refusal, RdmaWriteWithoutAccessRightIsRefused)
{
	deliver(write(data, kReadOnly, kBase));
	expect(errors::kAccess);
}

TEST_F(Refusal, MessageLongerThanTheReceiveBufferIsRefused)
{
	deliver(send(pattern(60), 1, 0, false));
	EXPECT_FALSE(b.end);
	deliver(send(pattern(41), 1, 60));
	expect(errors::kMessageTooLong);
}

TEST_F(Refusal, MessageWithoutAPostedReceiveIsRefused)
{
	b.receives.clear();
	deliver(send(data));
	expect(errors::kNoBuffer);
}

TEST_F(Refusal, MessageWithAGapInItsOffsetsIsRefused)
{
	deliver(send(data, 1, 0, false));
	deliver(send(data, 1, 51));
	expect(errors::kMessageOffset);
}

TEST_F(Refusal, OpcodeChangeWithinAMessageIsRefused)
{
	deliver(send(data, 1, 0, false));
	Segment other = send(data, 1, 50);
	other.opcode = Opcode::send_solicited;
	deliver(other);
	expect(errors::kUnexpectedOpcode);
}

TEST_F(Refusal, InvalidationOfAnUnknownStagIsRefused)
{
	Segment segment = send(data);
	segment.opcode = Opcode::send_invalidate;
	segment.stag = 0x999;
	deliver(segment);
	expect(errors::kCannotInvalidate);
}

TEST_F(Refusal, RdmaReadOfAnUnknownStagIsRefused)
{
	deliver(ask({.sink = 1, .length = 10, .source = 0x999, .source_offset = kBase}));
	b.output();
	EXPECT_EQ(b.end, (End{End::Kind::failed, errors::kInvalidStag}));
}

TEST_F(Refusal, RdmaReadBeyondTheMemoryRegionIsRefused)
{
	deliver(ask({.sink = 1, .length = 1001, .source = kRegion, .source_offset = kBase}));
	b.output();
	EXPECT_EQ(b.end, (End{End::Kind::failed, errors::kBounds}));
}

TEST_F(Refusal, RdmaReadWithoutAccessRightIsRefused)
{
	deliver(ask({.sink = 1, .length = 10, .source = kWriteOnly, .source_offset = kBase}));
	b.output();
	EXPECT_EQ(b.end, (End{End::Kind::failed, errors::kAccess}));
}

TEST_F(Refusal, RdmaReadThatWrapsAroundTheAddressSpaceIsRefused)
{
	deliver(ask({.sink = 1, .length = 100, .source = kRegion, .source_offset = ~0ull - 10}));
	expect(errors::kWrapped);
}

TEST_F(Refusal, RdmaReadsAboveTheNegotiatedIrdAreRefused)
{
	for (const std::uint32_t sequence : {1u, 2u, 3u})
		deliver(ask({.sink = 1, .length = 10, .source = kRegion, .source_offset = kBase},
			    sequence));
	expect(errors::kNoBuffer);
}

TEST_F(Refusal, ReadRequestOfInvalidLengthIsRefused)
{
	Segment segment = ask({});
	segment.payload = View(kept).first(27);
	deliver(segment);
	expect(errors::kStreamCatastrophic);
}

TEST_F(Refusal, FragmentedReadRequestIsRefused)
{
	Segment segment = ask({});
	segment.last = false;
	deliver(segment);
	expect(errors::kMessageTooLong);
}

TEST_F(Refusal, CrcErrorTerminatesTheStream)
{
	Bytes fpdu = writer.frame(encode(write(data, kRegion, kBase)));
	fpdu.back() ^= 1;
	b.stream.feed(fpdu);
	expect(errors::kCrc);
}

TEST_F(Refusal, InvalidMarkerTerminatesTheStream)
{
	Party c(StreamConfig{.start = {.markers = true}});
	c.stream.feed(encode(StartFrame{}));
	c.output();
	Bytes fpdu = FpduWriter(true, true).frame(encode(write(data, kRegion, kBase)));
	fpdu[3] = 4;
	c.stream.feed(fpdu);
	EXPECT_EQ(c.end, (End{End::Kind::failed, errors::kMarker}));
}

TEST_F(Refusal, DataBeforeTheMpaReplyIsRefused)
{
	Party c(StreamConfig{});
	Bytes bytes = encode(StartFrame{});
	bytes.push_back(0);
	c.stream.feed(bytes);
	EXPECT_EQ(c.end, (End{End::Kind::failed, errors::kStartFrame}));
	EXPECT_FALSE(c.request);
	Party d(StreamConfig{});
	d.accepts = false;
	d.stream.feed(encode(StartFrame{}));
	EXPECT_FALSE(d.end);
	d.stream.feed(Bytes{0});
	EXPECT_EQ(d.end, (End{End::Kind::failed, errors::kStartFrame}));
	d.stream.accept({});
	EXPECT_TRUE(d.output().empty());
}

TEST_F(Refusal, MpaReplyWithANewerRevisionIsRefused)
{
	Party c(StreamConfig{.initiator = true});
	c.output();
	c.stream.feed(encode(StartFrame{.reply = true, .revision = 2}));
	EXPECT_EQ(c.end, (End{End::Kind::failed, errors::kStartFrame}));
}

// Responses to a requester must have the sink, the offset and the length that were requested.
class ResponseRefusal : public Refusal
{
protected:
	ResponseRefusal()
	{
		deliver(write({}, 0, 0)); // permits the responder to send
		b.read({.sink = kRegion,
			.sink_offset = kBase,
			.length = 60,
			.source = 1,
			.source_offset = 0});
		b.output();
	}
	Segment response(View payload, std::uint64_t offset, bool last, Stag stag = kRegion)
	{
		return {.opcode = Opcode::read_response,
			.last = last,
			.stag = stag,
			.offset = offset,
			.payload = payload};
	}
};

TEST_F(ResponseRefusal, MatchingReadResponseIsAccepted)
{
	deliver(response(pattern(50), kBase, false));
	deliver(response(pattern(10), kBase + 50, true));
	EXPECT_EQ(b.done.size(), 1u);
	EXPECT_FALSE(b.end);
}

TEST_F(ResponseRefusal, ReadResponseToAnStagOtherThanRequestedIsRefused)
{
	deliver(response(data, kBase, false, kWriteOnly));
	expect(errors::kTaggedInvalidStag);
}

TEST_F(ResponseRefusal, ReadResponseAtAnOffsetOtherThanRequestedIsRefused)
{
	deliver(response(data, kBase + 1, false));
	expect(errors::kTaggedBounds);
}

TEST_F(ResponseRefusal, OverlongReadResponseIsRefused)
{
	deliver(response(pattern(61), kBase, true));
	expect(errors::kTaggedBounds);
}

TEST_F(ResponseRefusal, ShortReadResponseIsRefused)
{
	deliver(response(pattern(59), kBase, true));
	expect(errors::kTaggedBounds);
}

TEST_F(ResponseRefusal, ReadResponseToAnInvalidatedStagIsRefused)
{
	b.regions.erase(kRegion);
	deliver(response(data, kBase, false));
	EXPECT_EQ(b.end, (End{End::Kind::failed, errors::kTaggedInvalidStag}));
	EXPECT_TRUE(b.done.empty());
}

TEST_F(Refusal, ReceivedTerminateClosesTheStream)
{
	const Bytes payload = encode(errors::kTaggedBounds);
	deliver(Segment{.opcode = Opcode::terminate,
			.last = true,
			.queue = kTerminateQueue,
			.sequence = 1,
			.payload = payload});
	EXPECT_EQ(b.end, (End{End::Kind::terminated, errors::kTaggedBounds}));
	EXPECT_TRUE(b.output().empty());
	EXPECT_TRUE(b.stream.finished());
}

// A message whose source cannot be read is not sent in part. The FPDUs before it are complete.
TEST_F(Refusal, SendFromUnreadableMemoryTerminatesTheStream)
{
	deliver(write({}, 0, 0));
	b.stream.post({.opcode = Opcode::send,
		       .id = 1,
		       .source = {.length = 3000,
				  .read = [](std::uint32_t offset, std::span<std::uint8_t>) {
					  return offset == 0;
				  }}});
	const Bytes out = b.output();
	EXPECT_EQ(b.end, (End{End::Kind::failed, errors::kLocalCatastrophic}));
	EXPECT_TRUE(b.done.empty());
	FpduReader reader(false, true);
	std::size_t fpdus = 0;
	EXPECT_FALSE(reader.feed(out, [&](View) { return ++fpdus; }));
	EXPECT_EQ(fpdus, 2u);
	EXPECT_FALSE(reader.within());
}

} // namespace
} // namespace weft::iwarp
