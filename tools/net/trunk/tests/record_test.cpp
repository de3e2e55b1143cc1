// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that records encrypt their frames, and that any change of the stream of records is
// detected.
#include "net/trunk/record.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sodium.h>

#include "net/trunk/frame_reader.hpp"

namespace weft::trunk
{

namespace
{

SessionKey key_of(std::uint8_t fill = 1)
{
	SessionKey key;
	key.bytes.fill(std::byte{fill});
	return key;
}

Buffer credits(unsigned packets)
{
	return make_frame(FrameType::credits,
			  CreditsBody{0, 0, static_cast<std::uint16_t>(packets)});
}

// Seals each list of frames into as many records as it needs.
class RecordTest : public ::testing::Test
{
protected:
	RecordTest() { reader_.decrypt(key_of()); }

	Buffer seal(std::vector<Buffer> frames)
	{
		std::deque<Buffer> waiting(frames.begin(), frames.end());
		Buffer wire;
		while (!waiting.empty())
			sealer_.seal(waiting, wire);
		return wire;
	}
	// Gives the reader a stream and returns the packets of the credits that it has read.
	std::vector<unsigned> read(const Buffer &stream)
	{
		std::vector<unsigned> packets;
		for (std::span<const std::byte> left(stream);
		     !left.empty() && reader_.wrong() == Reason::none;) {
			const auto room = reader_.room();
			const std::size_t part = std::min(room.size(), left.size());
			std::ranges::copy(left.first(part), room.begin());
			reader_.added(part);
			left = left.subspan(part);
			while (const auto frame = reader_.next())
				if (const auto body = read_credits(frame->body))
					packets.push_back(body->packets);
		}
		return packets;
	}

	RecordSealer sealer_{key_of()};
	FrameReader reader_;
};

using Packets = std::vector<unsigned>;

} // namespace

TEST_F(RecordTest, QueuedFramesShareARecord)
{
	const Buffer wire = seal({credits(1), credits(2), credits(3)});
	EXPECT_EQ(wire.size(), sizeof(RecordHeader) + 3 * credits(1).size() + kTagBytes);
	EXPECT_EQ(read(wire), (Packets{1, 2, 3}));
	EXPECT_EQ(reader_.wrong(), Reason::none);
	EXPECT_FALSE(reader_.partial());
}

TEST_F(RecordTest, FrameOfMaximumSizeFillsARecord)
{
	const Buffer body(kMostBody);
	const Buffer largest = make_frame(FrameType::packet, std::span(body));
	const Buffer wire = seal({largest, credits(1), largest, credits(2)});
	EXPECT_EQ(wire.size(), 2 * largest.size() + 2 * credits(1).size() +
				       4 * (sizeof(RecordHeader) + kTagBytes));
	EXPECT_EQ(read(wire), (Packets{1, 2}));
	EXPECT_EQ(reader_.wrong(), Reason::none);
}

TEST_F(RecordTest, FramesAreEncryptedOnTheWire)
{
	const Buffer frame = credits(0x1234);
	const Buffer wire = seal({frame});
	EXPECT_TRUE(std::ranges::search(wire, std::span(frame).first(4)).empty());
}

// The reference is libsodium's implementation.
TEST_F(RecordTest, RecordsAreEncryptedAccordingToRfc8439)
{
	const Buffer largest(kMostBody, std::byte{0x5a});
	const SessionKey key = key_of();
	const auto raw = [](const auto &bytes) {
		return reinterpret_cast<const unsigned char *>(bytes.data());
	};
	for (std::uint8_t number = 0; number < 3; number++) {
		const Buffer frame = number == 2 ? make_frame(FrameType::packet, std::span(largest))
						 : credits(number + 1);
		const Buffer wire = seal({frame});
		const std::array<unsigned char, 12> nonce{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
		Buffer expected(frame.size() + kTagBytes);
		ASSERT_EQ(crypto_aead_chacha20poly1305_ietf_encrypt(
				  reinterpret_cast<unsigned char *>(expected.data()), nullptr,
				  raw(frame), frame.size(), raw(wire), sizeof(RecordHeader),
				  nullptr, nonce.data(), raw(key.bytes)),
			  0);
		EXPECT_TRUE(
			std::ranges::equal(std::span(wire).subspan(sizeof(RecordHeader)), expected))
			<< unsigned{number};
	}
}

TEST_F(RecordTest, EveryFlippedBitIsDetected)
{
	const Buffer good = seal({credits(1)});
	for (std::size_t bit = 0; bit < 8 * good.size(); bit++) {
		Buffer wire = good;
		wire[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
		// A larger length lets the reader wait for the rest, which is not authentic either.
		wire.resize(2 * kMostRecordOnWire, std::byte{0});
		reader_ = FrameReader();
		reader_.decrypt(key_of());
		EXPECT_TRUE(read(wire).empty()) << bit;
		EXPECT_EQ(reader_.wrong(), Reason::record) << bit;
	}
}

TEST_F(RecordTest, ReplayedRecordIsDetected)
{
	const Buffer first = seal({credits(1)});
	EXPECT_EQ(read(first), Packets{1});
	EXPECT_EQ(read(first), Packets{});
	EXPECT_EQ(reader_.wrong(), Reason::record);
}

TEST_F(RecordTest, ReorderedRecordIsDetected)
{
	const Buffer first = seal({credits(1)});
	EXPECT_EQ(read(seal({credits(2)})), Packets{});
	EXPECT_EQ(reader_.wrong(), Reason::record);
	EXPECT_EQ(read(first), Packets{}) << "nothing can be read after that";
}

TEST_F(RecordTest, MissingRecordIsDetected)
{
	EXPECT_EQ(read(seal({credits(1)})), Packets{1});
	seal({credits(2)});
	EXPECT_EQ(read(seal({credits(3)})), Packets{});
	EXPECT_EQ(reader_.wrong(), Reason::record);
}

TEST_F(RecordTest, RecordEncryptedWithTheKeyOfAnotherConnectionIsDetected)
{
	sealer_ = RecordSealer(key_of(2));
	EXPECT_EQ(read(seal({credits(1)})), Packets{});
	EXPECT_EQ(reader_.wrong(), Reason::record);
}

TEST_F(RecordTest, TruncatedRecordIsReportedAsIncomplete)
{
	Buffer wire = seal({credits(1)});
	wire.pop_back();
	EXPECT_EQ(read(wire), Packets{});
	EXPECT_EQ(reader_.wrong(), Reason::none);
	EXPECT_TRUE(reader_.partial());
}

TEST_F(RecordTest, InvalidRecordLengthIsDetectedBeforeTheRestOfTheRecordArrives)
{
	const auto wrong = [](std::uint32_t bytes) {
		FrameReader reader;
		reader.decrypt(key_of());
		const RecordHeader header{bytes};
		std::memcpy(reader.room().data(), &header, sizeof(header));
		reader.added(sizeof(header));
		EXPECT_FALSE(reader.next());
		return reader.wrong();
	};
	EXPECT_EQ(wrong(0), Reason::record);
	EXPECT_EQ(wrong(kTagBytes), Reason::record) << "no frames";
	EXPECT_EQ(wrong(kTagBytes + 1), Reason::none);
	EXPECT_EQ(wrong(kMostRecord + kTagBytes), Reason::none);
	EXPECT_EQ(wrong(kMostRecord + kTagBytes + 1), Reason::record);
	EXPECT_EQ(wrong(0xffffffff), Reason::record);
}

// The peer is authenticated, and breaks the protocol.
TEST_F(RecordTest, TruncatedFrameInARecordIsReportedAsAProtocolError)
{
	Buffer cut = credits(2);
	cut.pop_back();
	EXPECT_EQ(read(seal({credits(1), cut})), Packets{1});
	EXPECT_EQ(reader_.wrong(), Reason::protocol);
	reader_ = FrameReader();
	reader_.decrypt(key_of());
	sealer_ = RecordSealer(key_of());
	EXPECT_EQ(read(seal({Buffer(sizeof(FrameHeader) - 1)})), Packets{});
	EXPECT_EQ(reader_.wrong(), Reason::protocol);
}

} // namespace weft::trunk
