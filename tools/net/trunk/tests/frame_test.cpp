// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the encoding of packets and control frames on a trunk, and the refusal of malformed frames.
#include "net/trunk/frame.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"
#include "net/trunk/frame_reader.hpp"

namespace weft::trunk
{

namespace
{

using fabric::Packet;
using fabric::Payload;
using fabric::testing::ud_packet;

void put(FrameReader &reader, std::span<const std::byte> bytes)
{
	const auto room = reader.room();
	ASSERT_LE(bytes.size(), room.size());
	std::ranges::copy(bytes, room.begin());
	reader.added(bytes.size());
}

std::span<const std::byte> body_of(const Buffer &frame)
{
	return std::span(frame).subspan(sizeof(FrameHeader));
}

std::vector<std::byte> payload_of(const Packet &packet)
{
	std::vector<std::byte> bytes(packet.payload().size());
	packet.payload().copy_to(bytes);
	return bytes;
}

Packet write_run(unsigned packets, unsigned mtu)
{
	packet::Headers headers;
	headers.lrh.slid = 1;
	headers.lrh.dlid = 2;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::write_first);
	headers.bth.set_psn(7);
	std::vector<std::byte> bytes(std::size_t{packets} * mtu);
	for (std::size_t i = 0; i < bytes.size(); i++)
		bytes[i] = static_cast<std::byte>(i * 31 >> 3);
	return std::move(*Packet::make_run(headers, Payload::copy_of(bytes), packets));
}

} // namespace

TEST(TrunkFrame, EthernetFrameOfInvalidLengthIsRefused)
{
	const std::vector<std::byte> bytes(ethernet::kMostFrame + 1);
	for (const std::size_t size : {ethernet::kLeastFrame, ethernet::kMostFrame})
		EXPECT_EQ(read_ethernet(std::span(bytes).first(size))->size(), size);
	EXPECT_FALSE(read_ethernet(std::span(bytes).first(ethernet::kLeastFrame - 1)));
	EXPECT_FALSE(read_ethernet(bytes));
	EXPECT_FALSE(read_ethernet({}));
}

TEST(TrunkFrame, PacketIsUnchangedByTheTrunkEncoding)
{
	for (const std::size_t size : {0u, 1u, 255u, 4096u}) {
		const Packet sent = ud_packet(1, 2, size, 5);
		const auto received = read_packet(body_of(*make_packet_frame(sent)));
		ASSERT_TRUE(received) << size;
		EXPECT_EQ(received->to_wire(), sent.to_wire()) << size;
		EXPECT_FALSE(received->icrc_error());
	}
}

TEST(TrunkFrame, IcrcErrorOfAPacketIsPreservedByTheTrunkEncoding)
{
	Packet sent = ud_packet(1, 2, 100);
	sent.set_icrc_error();
	const auto received = read_packet(body_of(*make_packet_frame(sent)));
	ASSERT_TRUE(received);
	EXPECT_TRUE(received->icrc_error());
}

TEST(TrunkFrame, RunOf16ConsecutivePacketsIsUnchangedByTheTrunkEncoding)
{
	const Packet sent = write_run(16, 4096);
	const auto received = read_packet(body_of(*make_packet_frame(sent)));
	ASSERT_TRUE(received);
	EXPECT_EQ(received->packets(), 16u);
	EXPECT_TRUE(std::ranges::equal(received->headers(), sent.headers()));
	EXPECT_EQ(payload_of(*received), payload_of(sent));
}

// An owner that has ended its lease may have overwritten the memory.
TEST(TrunkFrame, PacketWhosePayloadMemoryWasRevokedIsNotSent)
{
	const auto memory = std::make_shared<std::vector<std::byte>>(64);
	const auto lease = std::make_shared<fabric::Lease>(memory);
	Payload payload;
	payload.append(*memory, lease);
	packet::Headers headers;
	headers.bth.opcode = ib::opcode_ud_send_only;
	const auto packet = Packet::make(headers, std::move(payload));
	ASSERT_TRUE(packet);
	EXPECT_TRUE(make_packet_frame(*packet));
	lease->end();
	EXPECT_FALSE(make_packet_frame(*packet));
}

TEST(TrunkFrame, MalformedPacketsAreRefused)
{
	const Buffer good = *make_packet_frame(write_run(4, 256));
	ASSERT_TRUE(read_packet(body_of(good)));
	const auto with = [&](std::size_t at, std::uint8_t value) {
		Buffer frame = good;
		frame[sizeof(FrameHeader) + at] = static_cast<std::byte>(value);
		return read_packet(body_of(frame)).has_value();
	};
	EXPECT_FALSE(with(1, 0)) << "no packets";
	EXPECT_FALSE(with(1, 3)) << "the payload is no multiple of the packets";
	EXPECT_FALSE(with(1, 8)) << "packets of another length than the headers say";
	EXPECT_FALSE(with(0, 2)) << "more packets than the window has";
	EXPECT_FALSE(with(2, fabric::Switch::kHopsMax + 1)) << "more switches than there may be";
	EXPECT_FALSE(with(3, 2)) << "a flag that is neither 0 nor 1";
	EXPECT_FALSE(with(4, 4)) << "headers that are cut off";
	EXPECT_FALSE(with(4, 255)) << "headers longer than any";
	EXPECT_FALSE(with(5, 1)) << "a reserved byte";
	const std::size_t opcode = sizeof(PacketBody) + sizeof(ib::Lrh);
	EXPECT_FALSE(with(opcode, ib::opcode(ib::Transport::rc, ib::Operation::write_last)))
		<< "a run of LAST packets";
	EXPECT_FALSE(with(opcode, 0xff)) << "an unknown opcode";
	for (std::size_t size = 0; size < body_of(good).size(); size++)
		EXPECT_FALSE(read_packet(body_of(good).first(size))) << size;
}

TEST(TrunkFrame, MalformedControlFramesAreRefused)
{
	const auto bytes = [](const auto &body) { return std::as_bytes(std::span(&body, 1)); };
	const CreditsBody credits{15, 0, 1};
	EXPECT_TRUE(read_credits(bytes(credits)));
	EXPECT_FALSE(read_credits(bytes(CreditsBody{16, 0, 1})));
	EXPECT_FALSE(read_credits(bytes(CreditsBody{0, 1, 1})));
	EXPECT_FALSE(read_credits(bytes(CreditsBody{0, 0, 0})));
	EXPECT_FALSE(read_credits(bytes(credits).first(3)));
	const LinkBody link{1, 0, 1, 3, 7, 0, 5, {}};
	EXPECT_TRUE(read_link(bytes(link)));
	EXPECT_FALSE(read_link(bytes(LinkBody{1, 0, 2, 3, 7, 0, 5, {}})));
	EXPECT_FALSE(read_link(bytes(LinkBody{1, 0, 1, 3, 7, 0, 0, {}})));
	EXPECT_FALSE(read_link(bytes(LinkBody{1, 0, 1, 3, 7, 0, 6, {}})));
	EXPECT_FALSE(read_link(bytes(LinkBody{1, 0, 1, 3, 7, 0, 5, {1, 0, 0}})));
	EXPECT_FALSE(read_link(bytes(link).first(15)));
	EXPECT_EQ(read_bye(bytes(ByeBody{Reason::key, {}})), Reason::key);
	EXPECT_FALSE(read_bye(bytes(ByeBody{static_cast<Reason>(13), {}})));
	EXPECT_FALSE(read_bye(bytes(ByeBody{Reason::key, {0, 0, 1}})));
}

TEST(TrunkFrameReader, FramesReceivedByteByByteAreReassembled)
{
	const Buffer bye = make_frame(FrameType::bye, ByeBody{Reason::removed, {}});
	const Buffer alive = make_frame(FrameType::alive);
	Buffer stream = bye;
	stream.insert(stream.end(), alive.begin(), alive.end());
	FrameReader reader;
	std::vector<FrameType> types;
	for (int round = 0; round < 100; round++)
		for (const std::byte byte : stream) {
			put(reader, std::span(&byte, 1));
			while (const auto frame = reader.next())
				types.push_back(frame->type);
		}
	ASSERT_EQ(types.size(), 200u);
	EXPECT_EQ(types[0], FrameType::bye);
	EXPECT_EQ(types[199], FrameType::alive);
}

TEST(TrunkFrameReader, FramesWithInvalidSizeTypeOrReservedBytesAreRefused)
{
	const auto malformed = [](std::uint32_t size, unsigned type, std::uint8_t zero = 0) {
		const FrameHeader header{size, static_cast<FrameType>(type), {0, 0, zero}};
		FrameReader reader;
		put(reader, std::as_bytes(std::span(&header, 1)));
		EXPECT_FALSE(reader.next());
		return reader.wrong() == Reason::protocol;
	};
	EXPECT_FALSE(malformed(kMostHandshakeBody, 3));
	EXPECT_TRUE(malformed(kMostHandshakeBody + 1, 3));
	EXPECT_TRUE(malformed(0xffffffff, 3));
	EXPECT_TRUE(malformed(1, 0));
	EXPECT_FALSE(malformed(1, 8));
	EXPECT_TRUE(malformed(1, 9));
	EXPECT_TRUE(malformed(1, 3, 1));
}

} // namespace weft::trunk
