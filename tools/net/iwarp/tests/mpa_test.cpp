// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the encoding and parsing of MPA start frames and FPDUs.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/iwarp/crc32c.hpp"
#include "net/iwarp/mpa.hpp"
#include "net/iwarp/segment.hpp"
#include "net/iwarp/testing/party.hpp"

namespace weft::iwarp
{
namespace
{

using testing::pattern;

Bytes from_hex(std::string_view text)
{
	Bytes bytes;
	unsigned half = 0, digits = 0;
	for (const char character : text) {
		if (character == ' ')
			continue;
		half = half << 4 | static_cast<unsigned>(character <= '9' ? character - '0'
									  : character - 'a' + 10);
		if (++digits % 2 == 0)
			bytes.push_back(static_cast<std::uint8_t>(half));
	}
	return bytes;
}

Bytes text(std::string_view characters)
{
	return {characters.begin(), characters.end()};
}

// Parses @stream in parts of @step bytes. Returns the ULPDUs in it, and the error if there was one.
std::pair<std::vector<Bytes>, std::optional<Error>> read_all(FpduReader &reader, View stream,
							     std::size_t step)
{
	std::vector<Bytes> ulpdus;
	std::optional<Error> failed;
	while (!stream.empty() && !failed) {
		const auto part = stream.first(std::min(step, stream.size()));
		stream = stream.subspan(part.size());
		failed = reader.feed(part, [&](View ulpdu) {
			ulpdus.emplace_back(ulpdu.begin(), ulpdu.end());
			return true;
		});
	}
	return {ulpdus, failed};
}

TEST(Crc32c, ResultsMatchTheRfc3720TestVectors)
{
	EXPECT_EQ(crc32c(text("123456789")), 0xe3069283u);
	EXPECT_EQ(crc32c(Bytes(32)), 0x8a9136aau); // RFC 3720 appendix B.4
	EXPECT_EQ(crc32c(text("6789"), crc32c(text("12345"))), 0xe3069283u);
}

// The processor's instruction gives the same CRC, for any length and start, and in pieces.
TEST(Crc32c, CrcInstructionMatchesTheTableImplementation)
{
	Bytes bytes(97);
	for (std::size_t i = 0; i < bytes.size(); ++i)
		bytes[i] = static_cast<std::uint8_t>(i * 37 + (i >> 3));
	for (std::size_t start = 0; start < 9; ++start)
		for (std::size_t size = 0; size <= bytes.size() - start; ++size) {
			const View part = View(bytes).subspan(start, size);
			ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << start << " + " << size;
			const View first = part.first(size / 3), rest = part.subspan(size / 3);
			ASSERT_EQ(crc32c(rest, crc32c(first)), crc32c_by_table(part));
		}
}

TEST(Mpa, StartFramesAreEncodedAsSpecified)
{
	EXPECT_EQ(encode(StartFrame{}), from_hex("4d504120494420526571204672616d65 40 01 0000"));
	EXPECT_EQ(encode(StartFrame{.reply = true, .revision = 0}),
		  from_hex("4d504120494420526570204672616d65 40 00 0000"));
	// The frames are siw's request and a reply to it.
	EXPECT_EQ(encode(StartFrame{
			  .crc = false, .revision = 2, .enhanced = Enhanced{.ird = 16, .ord = 16}}),
		  from_hex("4d504120494420526571204672616d65 10 02 0004 0010 0010"));
	EXPECT_EQ(encode(StartFrame{.reply = true,
				    .revision = 2,
				    .enhanced = Enhanced{.ird = 16, .ord = 16}}),
		  from_hex("4d504120494420526570204672616d65 50 02 0004 0010 0010"));
}

TEST(Mpa, FragmentedStartFramesAreParsed)
{
	const StartFrame frames[] = {
		{},
		{.markers = true, .crc = false, .private_data = pattern(kMostPrivateData)},
		{.reply = true, .reject = true, .revision = 1, .private_data = text("why")},
		{.revision = 2,
		 .enhanced = Enhanced{.ird = 1,
				      .ord = Enhanced::kUnlimited,
				      .peer_to_peer = true,
				      .by_send = true,
				      .by_write = true,
				      .by_read = true},
		 .private_data = text("private")},
	};
	for (const StartFrame &frame : frames) {
		const Bytes bytes = encode(frame);
		for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
			StartReader reader(frame.reply);
			Bytes all = bytes;
			all.push_back(0xee); // the next frame's
			View first = View(all).first(cut), rest = View(all).subspan(cut);
			ASSERT_TRUE(reader.feed(first));
			ASSERT_TRUE(reader.feed(rest));
			ASSERT_TRUE(reader.frame());
			EXPECT_EQ(*reader.frame(), frame);
			EXPECT_EQ(rest.size(), 1u);
		}
	}
}

TEST(Mpa, InvalidStartFramesAreRejected)
{
	const auto refused = [](Bytes bytes, bool reply = false) {
		StartReader reader(reply);
		View view(bytes);
		return !reader.feed(view);
	};
	const Bytes good = encode(StartFrame{.private_data = text("data")});
	EXPECT_FALSE(refused(good));
	EXPECT_TRUE(refused(good, true));
	// The frame is rejected at its first wrong byte.
	for (std::size_t at = 0; at < 16; ++at) {
		Bytes wrong(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at + 1));
		wrong[at] ^= 1;
		EXPECT_TRUE(refused(wrong)) << at;
	}
	const auto with = [&](std::size_t at, std::uint8_t value) {
		Bytes bytes = good;
		bytes[at] = value;
		return bytes;
	};
	EXPECT_TRUE(refused(with(16, 0x60))) << "a request that rejects";
	EXPECT_TRUE(refused(with(17, 3))) << "a revision that there is not";
	EXPECT_TRUE(refused(with(18, 2))) << "516 bytes of private data";
	Bytes enhanced = with(17, 2);
	enhanced[16] = 0x50;
	enhanced[19] = 3;
	EXPECT_TRUE(refused(enhanced)) << "enhanced, without room for it";
}

TEST(Mpa, FpdusAreEncodedAsSpecified)
{
	FpduWriter writer(false, true);
	const auto send = [](std::string_view data, std::uint32_t sequence,
			     Opcode opcode = Opcode::send, Stag stag = 0) {
		const Bytes payload = text(data);
		return encode(Segment{.opcode = opcode,
				      .last = true,
				      .stag = stag,
				      .sequence = sequence,
				      .payload = payload});
	};
	EXPECT_EQ(writer.frame(send("ping", 1)),
		  from_hex("0016 4143 00000000 00000000 00000001 00000000 70696e67 a5487fa7"));
	EXPECT_EQ(
		writer.frame(send("hello", 1)),
		from_hex(
			"0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c"));
	EXPECT_EQ(writer.frame(send("ping", 2, Opcode::send_solicited_invalidate, 0x200)),
		  from_hex("0016 4146 00000200 00000000 00000002 00000000 70696e67 83ca2199"));
	const Bytes beef = from_hex("deadbeef");
	EXPECT_EQ(writer.frame(encode(Segment{.opcode = Opcode::write,
					      .last = true,
					      .stag = 0x200,
					      .offset = 0x2000,
					      .payload = beef})),
		  from_hex("0012 c140 00000200 0000000000002000 deadbeef 0aa59125"));
	const Bytes request = encode(ReadRequest{0x100, 0x1000, 4096, 0x200, 0x2000});
	EXPECT_EQ(
		writer.frame(encode(Segment{.opcode = Opcode::read_request,
					    .last = true,
					    .queue = kReadQueue,
					    .sequence = 1,
					    .payload = request})),
		from_hex(
			"002e 4141 00000000 00000001 00000001 00000000 00000100 0000000000001000 00001000 00000200 0000000000002000 a1fb0058"));
	const Bytes terminate = encode(errors::kCrc);
	EXPECT_EQ(writer.frame(encode(Segment{.opcode = Opcode::terminate,
					      .last = true,
					      .queue = kTerminateQueue,
					      .sequence = 1,
					      .payload = terminate})),
		  from_hex("0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585"));
}

// Lengths around the padding and the markers are tested, with markers and CRC on and off, and in
// fragments of any size.
TEST(Mpa, FragmentedFpdusAreParsed)
{
	for (const bool markers : {false, true})
		for (const bool crc : {false, true}) {
			FpduWriter writer(markers, crc);
			std::vector<Bytes> sent;
			Bytes stream;
			for (std::size_t size : std::initializer_list<std::size_t>{
				     0,   1,   2,    3,    4,   5,          490, 498,       499,
				     500, 501, 502,  503,  504, 505,        506, 507,       508,
				     509, 510, 1454, 4000, 1,   kMostUlpdu, 2,   kMostUlpdu}) {
				sent.push_back(pattern(size, static_cast<unsigned>(size)));
				const Bytes fpdu = writer.frame(sent.back());
				stream.insert(stream.end(), fpdu.begin(), fpdu.end());
			}
			EXPECT_EQ(stream.size() % 4, 0u);
			for (const std::size_t step : {1, 2, 3, 5, 7, 511, 512, 513, 100000}) {
				FpduReader reader(markers, crc);
				const auto [taken, failed] = read_all(reader, stream, step);
				EXPECT_FALSE(failed);
				EXPECT_EQ(taken, sent) << step;
				EXPECT_FALSE(reader.within());
			}
		}
}

// RFC 5044 section 4.3: there is a marker every 512 bytes, beginning with the first. Each contains
// the distance to the start of its FPDU.
TEST(Mpa, MarkersAreInsertedEvery512Bytes)
{
	FpduWriter writer(true, true);
	Bytes stream;
	std::vector<std::size_t> starts;
	for (int i = 0; i < 20; ++i) {
		starts.push_back(stream.size() + (stream.size() % kMarkerInterval == 0 ? 4 : 0));
		const Bytes fpdu = writer.frame(pattern(200 + static_cast<std::size_t>(i) * 30));
		stream.insert(stream.end(), fpdu.begin(), fpdu.end());
	}
	for (std::size_t at = 0; at + 4 <= stream.size(); at += kMarkerInterval) {
		std::size_t start = 0;
		for (const std::size_t each : starts)
			if (each < at)
				start = each;
		const bool between = std::ranges::find(starts, at + 4) != starts.end();
		EXPECT_EQ(number_at(stream, at, 2), 0u);
		EXPECT_EQ(number_at(stream, at + 2, 2), between ? 0 : at - start) << at;
	}
}

// A single bit is flipped at each position. No ULPDU that differs from the sent one is accepted.
// Those before the error are accepted.
TEST(Mpa, BitErrorInAnFpduIsDetected)
{
	for (const bool markers : {false, true}) {
		FpduWriter writer(markers, true);
		Bytes stream;
		std::vector<Bytes> sent;
		for (const std::size_t size : {30, 600, 41}) {
			sent.push_back(pattern(size));
			const Bytes fpdu = writer.frame(sent.back());
			stream.insert(stream.end(), fpdu.begin(), fpdu.end());
		}
		for (std::size_t bit = 0; bit < stream.size() * 8; ++bit) {
			Bytes wrong = stream;
			wrong[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
			FpduReader reader(markers, true);
			const auto [taken, failed] = read_all(reader, wrong, wrong.size());
			// If the length field has become larger, the reader waits for more data.
			EXPECT_TRUE(failed || reader.within()) << bit;
			ASSERT_LE(taken.size(), sent.size());
			EXPECT_TRUE(std::equal(taken.begin(), taken.end(), sent.begin())) << bit;
		}
	}
}

TEST(Mpa, FpduCrcIsIgnoredIfCrcsAreDisabled)
{
	Bytes fpdu = FpduWriter(false, false).frame(text("ping"));
	EXPECT_EQ(number_at(fpdu, fpdu.size() - 4, 4), 0u);
	fpdu.back() = 0xff;
	FpduReader reader(false, false);
	EXPECT_EQ(read_all(reader, fpdu, fpdu.size()).first.size(), 1u);
}

} // namespace
} // namespace weft::iwarp
