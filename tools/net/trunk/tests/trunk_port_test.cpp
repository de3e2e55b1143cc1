// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests two fabrics with a trunk between them. The test itself passes the frames from one end of
// the trunk to the other, without sockets.
#include "net/trunk/trunk_port.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"

namespace weft::trunk
{

namespace
{

using namespace fabric;
using fabric::testing::PacketNode;
using fabric::testing::ud_packet;

constexpr int kCredits = Port::kDefaultCredits;
constexpr std::size_t kRoom = 1 << 20;

// A node, linked to the port that represents the far end of the trunk.
struct Side {
	explicit Side(const LinkConfig &config = {}) : link(fabric.connect(port, far, config)) {}

	Fabric fabric;
	Port &port = fabric.add_port("node/1");
	Port &far = fabric.add_port("trunk/1");
	Link &link;
	PacketNode node{port};
	TrunkPort trunk{far, [] {}};
};

// A node and the port that represents the far end of the trunk, both linked to a switch.
struct SwitchedSide {
	// Makes the ports of the node and of the trunk active, and routes LID 2 to the trunk.
	void configure()
	{
		for (const std::uint32_t number : {1u, 2u})
			for (const auto state : {ib::PortState::armed, ib::PortState::active}) {
				const auto answer =
					sm.ask({1}, ib::MadMethod::get, ib::attr_port_info, number);
				ASSERT_TRUE(answer);
				auto info = ib::smp_attribute<ib::PortInfo>(*answer);
				info.set_state(state);
				info.set_phys_state(ib::PhysState::nop);
				ASSERT_TRUE(sm.ask({1}, ib::MadMethod::set, ib::attr_port_info,
						   number, [&](ib::Smp &smp) {
							   ib::smp_attribute<ib::PortInfo>(smp) =
								   info;
						   }));
			}
		ASSERT_TRUE(sm.ask({1}, ib::MadMethod::set, ib::attr_linear_forwarding, 0,
				   [](ib::Smp &smp) { smp.data[2] = 2; }));
	}

	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "switch", .ports = 3});
	Port &port = fabric.add_port("node/1");
	Port &far = fabric.add_port("trunk/1");
	Port &sm_port = fabric.add_port("sm/1");
	Link &node_link = fabric.connect(port, sw.port(1));
	Link &trunk_link = fabric.connect(sw.port(2), far);
	Link &sm_link = fabric.connect(sm_port, sw.port(3));
	PacketNode node{port};
	fabric::testing::MadNode sm{sm_port};
	TrunkPort trunk{far, [] {}};
};

Frame frame_of(const Buffer &bytes)
{
	FrameHeader header;
	std::memcpy(&header, bytes.data(), sizeof(header));
	return {header.type, std::span(bytes).subspan(sizeof(header))};
}

class TrunkPortTest : public ::testing::Test
{
public:
	void build(const LinkConfig &a_config = {}, const LinkConfig &b_config = {})
	{
		a = std::make_unique<Side>(a_config);
		b = std::make_unique<Side>(b_config);
	}
	void connect()
	{
		a->trunk.connected();
		b->trunk.connected();
		pump();
	}
	void disconnect()
	{
		a->trunk.disconnected();
		b->trunk.disconnected();
	}
	// Carries frames until there are none.
	void pump(std::size_t room = kRoom)
	{
		while (carry(*a, *b, room) + carry(*b, *a, room) != 0) {
		}
	}
	// Moves frames from one side to the other. @room limits the bytes of packets; other frames
	// are always moved.
	template<typename From, typename To>
	static std::size_t carry(From &from, To &to, std::size_t room = kRoom)
	{
		std::deque<Buffer> frames;
		from.trunk.serve(frames, room);
		for (const Buffer &frame : frames) {
			const char *wrong = to.trunk.take(frame_of(frame));
			EXPECT_EQ(wrong, nullptr) << wrong;
		}
		return frames.size();
	}
	bool both_up() const { return a->link.up() && b->link.up(); }
	bool both_down() const { return !a->link.up() && !b->link.up(); }
	// Sends until there is no credit; returns the number of packets.
	static int fill(Port &port)
	{
		for (int sent = 0;; sent++) {
			Packet packet = ud_packet(1, 2, 64, static_cast<std::uint32_t>(sent));
			if (port.send(packet) != Sent::done)
				return sent;
		}
	}

	std::unique_ptr<Side> a, b;
};

} // namespace

TEST_F(TrunkPortTest, LinkComesUpOnlyAfterBothEndsHaveExchangedTheirTrainingState)
{
	build();
	EXPECT_TRUE(both_down());
	a->trunk.connected();
	b->trunk.connected();
	carry(*a, *b);
	EXPECT_TRUE(both_down()) << "b has not answered";
	pump();
	EXPECT_TRUE(both_up());
}

TEST_F(TrunkPortTest, PacketsCrossTheTrunkUnchangedAndAreCountedByThePortsAtBothEnds)
{
	build();
	connect();
	for (std::uint32_t i = 0; i < 100; i++) {
		Packet packet = ud_packet(1, 2, 200, i);
		const auto wire = packet.to_wire();
		ASSERT_EQ(a->port.send(packet), Sent::done);
		pump();
		const auto received = b->node.packets.next();
		ASSERT_TRUE(received);
		EXPECT_EQ(received->to_wire(), wire);
	}
	for (const Port *port : {&a->port, &b->far})
		EXPECT_EQ(port->counters().xmit_packets, 100u) << port->name();
	for (const Port *port : {&a->far, &b->port})
		EXPECT_EQ(port->counters().rcv_packets, 100u) << port->name();
}

TEST_F(TrunkPortTest, BatchOf16ConsecutivePacketsArrivesAsOneBatch)
{
	build();
	connect();
	packet::Headers headers;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::write_first);
	const std::vector<std::byte> bytes(16 * 4096, std::byte{7});
	Packet run = std::move(*Packet::make_run(headers, Payload::copy_of(bytes), 16));
	ASSERT_EQ(a->port.send(run), Sent::done);
	pump();
	const auto received = b->node.packets.next();
	ASSERT_TRUE(received);
	EXPECT_EQ(received->packets(), 16u);
	EXPECT_EQ(b->port.counters().rcv_packets, 16u);
}

// The receiver keeps the credits of up to 63 packets.
TEST_F(TrunkPortTest,
       BurstOfAFullCreditWindowArrivesEvenIfCreditsOfEarlierPacketsAreStillUnreturned)
{
	build();
	connect();
	for (unsigned i = 0; i + 1 < kCreditBatch; i++) {
		Packet packet = ud_packet(1, 2, 64);
		ASSERT_EQ(a->port.send(packet), Sent::done);
		pump();
		ASSERT_TRUE(b->node.packets.next());
	}
	packet::Headers headers;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::write_first);
	const std::vector<std::byte> bytes(kWindow * 256, std::byte{7});
	Packet run = std::move(*Packet::make_run(headers, Payload::copy_of(bytes), kWindow));
	ASSERT_EQ(a->port.send(run), Sent::done);
	unsigned received = 0;
	for (bool more = true; more;) {
		pump();
		more = false;
		while (const auto packet = b->node.packets.next()) {
			received += packet->packets();
			more = true;
		}
	}
	EXPECT_EQ(received, kWindow);
}

// First the receiver's buffer becomes full, and then the window of the trunk. Then the sender
// waits.
TEST_F(TrunkPortTest, SenderWaitsUntilTheReceiverReturnsCredits)
{
	build();
	connect();
	int sent = 0;
	for (int more = 1; more != 0; sent += more) {
		more = fill(a->port);
		pump();
	}
	EXPECT_EQ(sent, 2 * kCredits);
	a->node.credits.clear();
	// Senders on other lanes do not wait.
	Packet other = ud_packet(1, 2, 64);
	other.lrh().set_vl(1);
	EXPECT_EQ(a->port.send(other), Sent::done);
	pump();
	EXPECT_EQ(b->node.packets.size(), static_cast<std::size_t>(kCredits + 1));
	EXPECT_EQ(a->node.credits.size(), 0u);

	b->node.packets.next();
	pump();
	EXPECT_EQ(a->node.credits.size(), 1u);
	EXPECT_EQ(fill(a->port), 1);
}

TEST_F(TrunkPortTest, ReceiverReturnsCreditsWithItsOwnPacketsOrAfterABatchOfReceivedPackets)
{
	build();
	connect();
	const auto send = [](Side &from) {
		Packet packet = ud_packet(1, 2, 64);
		ASSERT_EQ(from.port.send(packet), Sent::done);
	};
	send(*a);
	EXPECT_EQ(carry(*a, *b), 1u);
	EXPECT_EQ(carry(*b, *a), 0u);
	send(*b);
	EXPECT_EQ(carry(*b, *a), 2u) << "the packet and the credit";
	for (unsigned i = 0; i + 1 < kCreditBatch; i++)
		send(*a);
	EXPECT_EQ(carry(*a, *b), kCreditBatch) << "with the credit for the packet from b";
	EXPECT_EQ(carry(*b, *a), 0u);
	send(*a);
	EXPECT_EQ(carry(*a, *b), 1u);
	EXPECT_EQ(carry(*b, *a), 1u) << "credits only";
	// Without flow control, packets that find no credit are dropped.
	Packet management = ud_packet(1, 2, 256);
	management.lrh().set_vl(ib::vl_management);
	ASSERT_EQ(a->port.send(management), Sent::done);
	EXPECT_EQ(carry(*a, *b), 1u);
	EXPECT_EQ(carry(*b, *a), 1u);
}

TEST_F(TrunkPortTest, SenderHasAllCreditsAgainAfterTheTrunkReconnects)
{
	build();
	connect();
	for (int round = 0; round < 3; round++) {
		int sent = 0;
		for (int more = 1; more != 0; sent += more) {
			more = fill(a->port);
			pump();
		}
		EXPECT_EQ(sent, 2 * kCredits) << round;
		disconnect();
		EXPECT_TRUE(both_down());
		b->node.packets.clear();
		connect();
		EXPECT_TRUE(both_up());
		EXPECT_EQ(b->node.packets.size(), 0u) << "what waited is lost";
	}
	EXPECT_EQ(a->port.counters().link_downed, 3u);
	EXPECT_EQ(b->port.counters().link_downed, 3u);
}

// The network between the daemons delivers nothing for longer than packets may wait in a switch.
TEST_F(TrunkPortTest, SlowNetworkDelaysPacketsOfOneWindowAndTheSwitchDiscardsOnlyFurtherOnes)
{
	constexpr unsigned further = 28, run_packets = 16;
	SwitchedSide from;
	Side to;
	from.trunk.connected();
	to.trunk.connected();
	const auto pump_both = [&] {
		while (carry(from, to) + carry(to, from) != 0) {
		}
	};
	pump_both();
	ASSERT_TRUE(from.trunk_link.up() && to.link.up());
	ASSERT_NO_FATAL_FAILURE(from.configure());

	for (std::uint32_t psn = 0; psn < kCredits + further; psn++) {
		Packet packet = ud_packet(1, 2, 64, psn);
		ASSERT_EQ(from.port.send(packet), Sent::done);
	}
	packet::Headers headers;
	headers.lrh.dlid = 2;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::write_first);
	const std::vector<std::byte> bytes(std::size_t{run_packets} * 256);
	Packet run = std::move(*Packet::make_run(headers, Payload::copy_of(bytes), run_packets));
	ASSERT_EQ(from.port.send(run), Sent::done);
	const Counters &counters = from.sw.port(2).counters();
	const auto deadline = std::chrono::steady_clock::now() + fabric::testing::kDeadline;
	while (counters.xmit_discards < further + run_packets &&
	       std::chrono::steady_clock::now() < deadline)
		std::this_thread::yield();
	EXPECT_EQ(counters.xmit_discards, further + run_packets);
	EXPECT_EQ(to.node.packets.size(), 0u);
	pump_both();
	for (std::uint32_t psn = 0; psn < kCredits; psn++) {
		const auto packet = to.node.packets.next();
		ASSERT_TRUE(packet) << psn;
		EXPECT_EQ(packet->bth().psn(), psn);
	}
	EXPECT_TRUE(from.trunk_link.up());
	EXPECT_EQ(counters.link_downed, 0u);
	EXPECT_EQ(counters.xmit_packets, static_cast<std::uint64_t>(kCredits));
	EXPECT_EQ(to.port.counters().rcv_packets, static_cast<std::uint64_t>(kCredits));
}

TEST_F(TrunkPortTest, Vl15PacketsAreDroppedAndCountedIfTheTrunkPortBufferIsFull)
{
	build();
	connect();
	for (int i = 0; i < kCredits + 44; i++) {
		Packet packet = ud_packet(1, 2, 256);
		packet.lrh().set_vl(ib::vl_management);
		ASSERT_EQ(a->port.send(packet), Sent::done);
	}
	EXPECT_EQ(a->far.counters().vl15_dropped, 44u);
	pump();
	EXPECT_EQ(b->node.packets.size(), static_cast<std::size_t>(kCredits));
}

TEST_F(TrunkPortTest, LinkIsDownAtBothEndsWhileOneEndIsDisabledUnpluggedOrRetraining)
{
	build();
	connect();
	ASSERT_TRUE(both_up());
	a->port.disable();
	pump();
	EXPECT_TRUE(both_down()) << "a disabled";
	a->port.enable();
	pump();
	EXPECT_TRUE(both_up()) << "a enabled";
	b->link.set_plugged(false);
	pump();
	EXPECT_TRUE(both_down()) << "b pulled";
	b->link.set_plugged(true);
	pump();
	EXPECT_TRUE(both_up()) << "b plugged in";

	b->node.links.clear();
	a->port.retrain();
	EXPECT_FALSE(a->link.up()) << "not before b knows";
	pump();
	EXPECT_TRUE(both_up());
	EXPECT_EQ(b->node.links.next(), false);
	EXPECT_EQ(b->node.links.next(), true);
}

TEST_F(TrunkPortTest, LinkComesUpIfBothEndsRetrainSimultaneously)
{
	build();
	connect();
	for (int round = 0; round < 10; round++) {
		a->port.retrain();
		b->port.retrain();
		if (round % 2 == 1)
			carry(*a, *b);
		b->port.retrain();
		pump();
		EXPECT_TRUE(both_up()) << round;
	}
}

// Packets sent before an end went down must not arrive after it came up.
TEST_F(TrunkPortTest, PacketsInTransitWhenTheLinkRetrainsAreDropped)
{
	build();
	connect();
	Packet packet = ud_packet(1, 2, 64);
	ASSERT_EQ(a->port.send(packet), Sent::done);
	a->port.retrain();
	// The connection is slow, so the packet is sent only when the link is up again.
	pump(0);
	ASSERT_TRUE(both_up());
	pump();
	EXPECT_EQ(b->node.packets.size(), 0u);
	int sent = 0;
	for (int more = 1; more != 0; sent += more) {
		more = fill(a->port);
		pump();
	}
	EXPECT_EQ(sent, 2 * kCredits);
}

// Packets that have crossed, and wait for a credit, belong to the link before its training as well.
TEST_F(TrunkPortTest, RetrainingDropsPacketsThatCrossedTheTrunkButWaitForReceiveBufferSpace)
{
	build();
	connect();
	while (fill(a->port) != 0)
		pump();
	b->port.retrain();
	pump();
	ASSERT_TRUE(both_up());
	std::size_t arrived = 0;
	for (; b->node.packets.next(); pump())
		arrived++;
	EXPECT_EQ(arrived, static_cast<std::size_t>(kCredits))
		<< "those that had entered its buffer";
	EXPECT_GT(fill(a->port), 0);
	pump();
	EXPECT_TRUE(b->node.packets.next());
}

TEST_F(TrunkPortTest, RateChangedWhileTheOtherEndIsDownAppliesToBothEnds)
{
	build();
	connect();
	b->link.set_plugged(false);
	pump();
	ASSERT_TRUE(both_down());
	a->link.set_rate({ib::width_1x, ib::speed_sdr}, ib::Mtu::mtu_2048);
	b->link.set_plugged(true);
	// The link comes up with the former rate, which the first end has announced.
	carry(*b, *a);
	pump();
	ASSERT_TRUE(both_up());
	for (const Side *side : {a.get(), b.get()}) {
		EXPECT_EQ(side->port.rate(), (LinkRate{ib::width_1x, ib::speed_sdr}));
		EXPECT_EQ(side->port.mtu_cap(), ib::Mtu::mtu_2048);
	}
}

TEST_F(TrunkPortTest, BothEndsTrainToTheBestCommonRateAndMtu)
{
	LinkConfig slow;
	slow.rate = {ib::width_1x, ib::speed_ddr};
	slow.mtu = ib::Mtu::mtu_2048;
	build({}, slow);
	connect();
	for (const Side *side : {a.get(), b.get()}) {
		EXPECT_EQ(side->port.rate(), slow.rate);
		EXPECT_EQ(side->port.mtu_cap(), ib::Mtu::mtu_2048);
	}
	// Rates that a manager enables at one end limit the other, too.
	a->port.enable_rates({ib::width_1x, ib::speed_sdr, 0});
	a->port.retrain();
	pump();
	ASSERT_TRUE(both_up());
	EXPECT_EQ(b->port.rate().speed, ib::speed_sdr);
	a->port.enable_rates({ib::width_4x, ib::speed_qdr, 0});
	a->port.retrain();
	pump();
	EXPECT_TRUE(both_down()) << "they have no width in common";
	a->port.enable_rates({});
	pump();
	EXPECT_TRUE(both_up());
	EXPECT_EQ(b->port.rate(), slow.rate);
}

TEST_F(TrunkPortTest, PacketsBeyondTheCreditWindowAreAProtocolViolation)
{
	build();
	connect();
	const auto frame = make_packet_frame(ud_packet(1, 2, 64));
	// Packets that have entered the fabric count until the peer has received their credits.
	for (int i = 0; i < kCredits; i++)
		ASSERT_EQ(b->trunk.take(frame_of(*frame)), nullptr) << i;
	EXPECT_STREQ(b->trunk.take(frame_of(*frame)), "a packet without credit");
	std::deque<Buffer> credits;
	b->trunk.serve(credits, kRoom);
	for (int i = 0; i < kCredits; i++)
		ASSERT_EQ(b->trunk.take(frame_of(*frame)), nullptr) << i;
	EXPECT_STREQ(b->trunk.take(frame_of(*frame)), "a packet without credit");
}

TEST_F(TrunkPortTest, UnexpectedOrMalformedFramesAreProtocolViolations)
{
	build();
	connect();
	const auto wrong = [&](const Buffer &frame) { return b->trunk.take(frame_of(frame)); };
	EXPECT_STREQ(wrong(make_frame(FrameType::credits, CreditsBody{0, 0, 1})),
		     "credits for packets that were not sent");
	EXPECT_STREQ(wrong(make_frame(FrameType::credits)), "malformed credits");
	EXPECT_STREQ(wrong(make_frame(FrameType::link)), "a malformed state of the link");
	EXPECT_STREQ(wrong(make_frame(FrameType::packet)), "a malformed packet");
	EXPECT_STREQ(wrong(make_frame(FrameType::hello, HelloBody{})), "an unexpected frame");
	EXPECT_STREQ(wrong(make_frame(FrameType::alive, ByeBody{})), "a malformed keepalive");
	EXPECT_EQ(wrong(make_frame(FrameType::alive)), nullptr);
}

} // namespace weft::trunk
