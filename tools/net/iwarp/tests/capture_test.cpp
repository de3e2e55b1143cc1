// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that tshark decodes the bytes that two streams exchange.
#include <array>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "net/ethernet/capture.hpp"
#include "net/iwarp/testing/party.hpp"
#include "net/iwarp/testing/tshark.hpp"

namespace weft::iwarp
{
namespace
{

using testing::Party;
using testing::pattern;
using testing::pump;

// The frames of a TCP connection without loss.
class Conversation
{
public:
	explicit Conversation(ethernet::Capture &capture)
	    : capture_(capture), interface_(capture.add_interface("wire"))
	{
		segment(0, kSyn, {});
		segment(1, kSyn | kAck, {});
		segment(0, kAck, {});
	}
	void say(int side, View bytes)
	{
		while (!bytes.empty()) {
			const auto part = bytes.first(std::min(kMss, bytes.size()));
			bytes = bytes.subspan(part.size());
			segment(side, kAck | kPush, part);
		}
	}

private:
	static constexpr std::size_t kMss = 1460;
	static constexpr std::uint8_t kSyn = 2, kPush = 8, kAck = 16;

	void segment(int side, std::uint8_t flags, View payload)
	{
		Bytes frame;
		for (const int end : {1 - side, side})
			put_number(frame, 0x020000000001u + static_cast<unsigned>(end), 6);
		put_number(frame, 0x0800, 2);
		put_number(frame, 0x4500, 2);
		put_number(frame, 40 + payload.size(), 2);
		put_number(frame, 0x00004000, 4);
		put_number(frame, 0x4006, 2);
		put_number(frame, 0, 2); // checksums: none
		put_number(frame, 0x0a000001u + static_cast<unsigned>(side), 4);
		put_number(frame, 0x0a000001u + static_cast<unsigned>(1 - side), 4);
		put_number(frame, side ? 5001 : 40000, 2);
		put_number(frame, side ? 40000 : 5001, 2);
		put_number(frame, next_[side], 4);
		put_number(frame, flags & kAck ? next_[1 - side] : 0, 4);
		put_number(frame, 0x5000u | flags, 2);
		put_number(frame, 0xffff, 2);
		put_number(frame, 0, 4);
		frame.insert(frame.end(), payload.begin(), payload.end());
		next_[side] += static_cast<std::uint32_t>(payload.size()) + (flags & kSyn ? 1 : 0);
		capture_.record(interface_, frame);
	}

	ethernet::Capture &capture_;
	const unsigned interface_;
	std::array<std::uint32_t, 2> next_{1000, 2000};
};

class IwarpCapture : public ::testing::TestWithParam<bool>
{
public:
	~IwarpCapture() override
	{
		if (!HasFailure())
			std::filesystem::remove(file);
	}

	std::string tshark(const std::string &options)
	{
		return testing::tshark(file, options, false);
	}

	const std::filesystem::path file = std::filesystem::temp_directory_path() /
					   ("weft-iwarp-" + std::to_string(::getpid()) + ".pcapng");
};

// The messages are of all kinds, with and without markers. tshark decodes each one, verifies all
// checks, and finds nothing malformed.
TEST_P(IwarpCapture, TsharkDecodesTheCapture)
{
	if (!testing::has_tshark())
		GTEST_SKIP() << "tshark is missing";
	const bool markers = GetParam();
	// With this length an FPDU and its markers fit into a segment, as tshark expects.
	constexpr std::size_t most_ulpdu = 1436;
	Party a(StreamConfig{.initiator = true,
			     .start = {.markers = markers, .private_data = {'h', 'i'}},
			     .most_ulpdu = most_ulpdu});
	Party b(StreamConfig{.start = {.markers = markers}, .most_ulpdu = most_ulpdu});
	a.regions[0x100] = {Bytes(5000), 0};
	b.regions[0x200] = {pattern(5000), 0x1000};
	b.regions[1] = b.regions[2] = {};
	b.receives = {4, 4, 4, 3000};
	a.send(pattern(4));
	a.send(pattern(4), Opcode::send_solicited);
	a.send(pattern(4), Opcode::send_invalidate, 1);
	a.send(pattern(3000), Opcode::send_solicited_invalidate, 2);
	a.write(pattern(4000), 0x200, 0x1000);
	a.write({}, 1, 0);
	a.read({.sink = 0x100,
		.sink_offset = 0,
		.length = 5000,
		.source = 0x200,
		.source_offset = 0x1000});
	std::vector<std::pair<int, Bytes>> log;
	pump(a, b, SIZE_MAX, &log);
	ASSERT_EQ(a.done.size(), 7u);
	// One message is refused.
	a.write(pattern(4), 0x999, 0);
	pump(a, b, SIZE_MAX, &log);
	ASSERT_TRUE(b.end);
	{
		VirtualEnvironment environment;
		ethernet::Capture capture(file, environment);
		Conversation conversation(capture);
		for (const auto &[side, bytes] : log)
			conversation.say(side, bytes);
		capture.flush();
	}
	EXPECT_EQ(tshark(testing::kWrongFrames), "");
	const std::string all = tshark("-V");
	const auto count = [&](const std::string &what) { return testing::count(all, what); };
	EXPECT_EQ(count("ID Req frame: 4d5041204944"), 1u) << all.substr(0, 4000);
	EXPECT_EQ(count("ID Rep frame: 4d5041204944"), 1u);
	EXPECT_EQ(count("OpCode: Send (0x3)"), 1u);
	EXPECT_EQ(count("OpCode: Send with SE (0x5)"), 1u);
	EXPECT_EQ(count("OpCode: Send with Invalidate (0x4)"), 1u);
	EXPECT_EQ(count("OpCode: Send with SE and Invalidate (0x6)"), 3u);
	EXPECT_EQ(count("OpCode: Write (0x0)"), 5u);
	EXPECT_EQ(count("OpCode: Read Request (0x1)"), 1u);
	EXPECT_EQ(count("OpCode: Read Response (0x2)"), 4u);
	EXPECT_EQ(count("OpCode: Terminate (0x7)"), 1u);
	EXPECT_EQ(count("(Good CRC32)"), 17u);
	EXPECT_EQ(count("Bad CRC"), 0u);
	EXPECT_EQ(count("FPDU back pointer") > 0, markers);
}

INSTANTIATE_TEST_SUITE_P(Markers, IwarpCapture, ::testing::Bool());

} // namespace
} // namespace weft::iwarp
