// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests packet runs. A packet run consists of consecutive packets of one message that are passed on
// as one object; a link or a queue splits it into its packets if necessary.
#include <gtest/gtest.h>

#include <numeric>

#include "net/fabric/fabric.hpp"
#include "net/fabric/packet.hpp"

namespace weft::fabric
{

namespace
{

constexpr unsigned kMtu = 256;

packet::Headers write_first()
{
	packet::Headers headers;
	headers.lrh.dlid = 2;
	headers.lrh.slid = 1;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::write_first);
	headers.bth.set_psn(0xfffffe);
	headers.bth.set_ack_request(true);
	headers.reth = {0x1000, 0x55, 10 * kMtu};
	return headers;
}

/* Returns a payload whose pieces have other boundaries than its packets. */
Payload pieces(const std::vector<std::byte> &bytes)
{
	Payload payload;
	for (std::size_t at = 0; at < bytes.size(); at += 300)
		payload.append(
			{bytes.data() + at,
			 static_cast<std::uint32_t>(std::min<std::size_t>(300, bytes.size() - at)),
			 nullptr});
	return payload;
}

class Recorder final : public PortSink
{
public:
	void receive(Packet &&packet) override { packets.push_back(std::move(packet)); }
	void link_changed(bool) override {}
	std::vector<Packet> packets;
};

} // namespace

/* Splitting a run gives the same packets as sending them one by one. */
TEST(PacketRun, PacketsSplitFromAMultiPacketRunEqualIndividuallyBuiltPackets)
{
	constexpr unsigned count = 4;
	std::vector<std::byte> bytes(count * kMtu);
	for (std::size_t i = 0; i < bytes.size(); i++)
		bytes[i] = static_cast<std::byte>(i * 31 >> 3);
	auto run = Packet::make_run(write_first(), pieces(bytes), count);
	ASSERT_TRUE(run);
	std::uint64_t words = run->wire_words(), sum = 0;
	for (unsigned i = 0; i < count; i++) {
		ASSERT_EQ(run->packets(), count - i);
		Packet single = i + 1 < count ? run->take_first() : std::move(*run);
		packet::Headers expected = write_first();
		if (i > 0)
			expected.bth.opcode =
				ib::opcode(ib::Transport::rc, ib::Operation::write_middle);
		expected.bth.set_psn(0xfffffe + i);
		expected.bth.set_ack_request(i + 1 == count);
		auto part = std::span(bytes).subspan(i * kMtu, kMtu);
		EXPECT_EQ(single.to_wire(),
			  Packet::make(expected, Payload::copy_of(part))->to_wire())
			<< i;
		sum += single.wire_words();
	}
	EXPECT_EQ(words, sum);
}

/*
 * A link with faults splits a run, and a link without faults does not. The counters are the same.
 */
TEST(PacketRun, LinkWithConfiguredFaultsSplitsAMultiPacketRunIntoSinglePackets)
{
	std::vector<std::byte> bytes(5 * kMtu);
	std::uint64_t data[2];
	for (bool watched : {false, true}) {
		Fabric fabric;
		Port &a = fabric.add_port("a"), &b = fabric.add_port("b");
		Link &link = fabric.connect(a, b);
		Recorder sink_a, sink_b;
		a.attach(sink_a);
		b.attach(sink_b);
		a.enable();
		b.enable();
		/* The probability is so low that the fault never occurs. */
		if (watched)
			link.set_faults({.loss = 1e-300});
		auto run = Packet::make_run(write_first(), pieces(bytes), 5);
		ASSERT_EQ(a.send(*run), Sent::done);
		EXPECT_EQ(sink_b.packets.size(), watched ? 5u : 1u);
		EXPECT_EQ(a.counters().xmit_packets, 5u);
		EXPECT_EQ(b.counters().rcv_packets, 5u);
		data[watched] = b.counters().rcv_data;
		sink_b.packets.clear();
		a.detach();
		b.detach();
	}
	EXPECT_EQ(data[0], data[1]);
}

/* Packets in the middle of a run for which there is no credit stay with the sender. */
TEST(PacketRun, SenderKeepsTheUnsentPacketsOfAMultiPacketRunIfLinkCreditsRunOut)
{
	std::vector<std::byte> bytes(5 * kMtu);
	Fabric fabric;
	Port &a = fabric.add_port("a"), &b = fabric.add_port("b", 2);
	Link &link = fabric.connect(a, b);
	Recorder sink_a, sink_b;
	a.attach(sink_a);
	b.attach(sink_b);
	a.enable();
	b.enable();
	link.set_faults({.loss = 1e-300});
	auto run = Packet::make_run(write_first(), pieces(bytes), 5);
	EXPECT_EQ(a.send(*run), Sent::no_credit);
	EXPECT_EQ(run->packets(), 3u);
	EXPECT_EQ(run->bth().psn(), 0u);
	sink_b.packets.clear();
	EXPECT_EQ(a.send(*run), Sent::no_credit);
	sink_b.packets.clear();
	EXPECT_EQ(a.send(*run), Sent::done);
	EXPECT_EQ(sink_b.packets.size(), 1u);
	EXPECT_TRUE(sink_b.packets[0].bth().ack_request());
	sink_b.packets.clear();
	a.detach();
	b.detach();
}

} // namespace weft::fabric
