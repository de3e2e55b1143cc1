// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that links deliver packets in order, respect credits, and have the configured faults.
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"
#include "net/fabric/timeline.hpp"

namespace weft::fabric
{
namespace
{

using namespace testing;
using namespace std::chrono_literals;

struct TwoNodes : ::testing::Test {
	Fabric fabric{7};
	PacketNode a{fabric.add_port("a")};
	PacketNode b{fabric.add_port("b", 16)};
	Link &link = fabric.connect(a.port, b.port);

	Sent send(std::uint32_t psn, std::size_t bytes = 64)
	{
		Packet packet = ud_packet(1, 2, bytes, psn);
		return a.port.send(packet);
	}
	std::vector<std::uint32_t> received()
	{
		std::vector<std::uint32_t> psns;
		while (b.packets.size() != 0)
			psns.push_back(b.packets.next()->bth().psn());
		return psns;
	}
};

TEST_F(TwoNodes, PacketArrivesUnchangedWithoutACopy)
{
	auto memory = std::make_shared<std::vector<std::byte>>(100, std::byte{0x5a});
	std::weak_ptr<std::vector<std::byte>> alive = memory;
	const std::byte *where = memory->data();
	packet::Headers headers;
	headers.bth.opcode = ib::opcode_ud_send_only;
	auto packet = Packet::make(headers, Payload::owning(std::move(memory)));
	ASSERT_EQ(Sent::done, a.port.send(*packet));
	{
		auto got = b.packets.next();
		ASSERT_TRUE(got);
		EXPECT_TRUE(got->payload().for_each(
			[&](auto piece) { EXPECT_EQ(where, piece.data()); }));
		EXPECT_FALSE(alive.expired());
	}
	EXPECT_TRUE(alive.expired());
	EXPECT_EQ(1u, a.port.counters().xmit_packets);
	EXPECT_EQ(1u, b.port.counters().rcv_packets);
	EXPECT_EQ((8u + 12 + 8 + 100 + 4) / 4, b.port.counters().rcv_data);
}

TEST_F(TwoNodes, SenderWithoutCreditsIsNotifiedWhenACreditReturns)
{
	for (std::uint32_t i = 0; i < 16; i++)
		EXPECT_EQ(Sent::done, send(i));
	Packet kept = ud_packet(1, 2, 64, 99);
	EXPECT_EQ(Sent::no_credit, a.port.send(kept));
	EXPECT_EQ(64u, kept.payload().size());
	EXPECT_EQ(0u, a.credits.size());
	b.packets.next();
	auto vl = a.credits.next();
	ASSERT_TRUE(vl);
	EXPECT_EQ(0, *vl);
	EXPECT_EQ(Sent::done, a.port.send(kept));
	EXPECT_EQ(16u, received().size());
	// The sink is not called if the port has not waited for a credit.
	EXPECT_EQ(0u, a.credits.size());
	EXPECT_EQ(1u, a.port.counters().xmit_wait);
}

TEST_F(TwoNodes, Vl15PacketsAreDroppedIfTheReceiverIsFull)
{
	for (unsigned i = 0; i < 20; i++) {
		Packet packet = ud_packet(1, 2, 256, i);
		packet.lrh().set_vl(15);
		EXPECT_EQ(Sent::done, a.port.send(packet));
	}
	EXPECT_EQ(16u, b.packets.size());
	EXPECT_EQ(4u, b.port.counters().vl15_dropped);
}

TEST_F(TwoNodes, LinkDownIsReportedToBothPorts)
{
	EXPECT_EQ(true, a.links.next());
	EXPECT_EQ(true, b.links.next());
	link.set_plugged(false);
	EXPECT_EQ(Sent::link_down, send(1));
	EXPECT_EQ(false, a.links.next());
	EXPECT_EQ(false, b.links.next());
	EXPECT_EQ(1u, a.port.counters().xmit_discards);
	link.set_plugged(true);
	EXPECT_EQ(true, b.links.next());
	a.port.retrain();
	EXPECT_EQ(false, b.links.next());
	EXPECT_EQ(true, b.links.next());
	b.port.disable();
	EXPECT_FALSE(a.port.link_up());
	EXPECT_EQ(2u, b.port.counters().link_downed - 1);
}

TEST_F(TwoNodes, LinkComesUpAfterTraining)
{
	link.set_training(20ms);
	link.set_plugged(false);
	link.set_plugged(true);
	EXPECT_FALSE(link.up());
	/* The training is cancelled and started again. The first one must not affect the second. */
	a.port.disable();
	std::this_thread::sleep_for(10ms);
	const auto begin = std::chrono::steady_clock::now();
	a.port.enable();
	EXPECT_FALSE(link.up());
	while (!link.up())
		std::this_thread::yield();
	EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
	EXPECT_EQ(Sent::done, send(1));
	a.port.disable();
	EXPECT_FALSE(link.up());
	std::this_thread::sleep_for(30ms);
	EXPECT_FALSE(link.up());
}

/*
 * The far end is in another process and has not agreed. Later it goes down, and this end trains
 * again.
 */
TEST_F(TwoNodes, LinkStaysDownUntilARemotePortInAnotherProcessAgreesToComeUp)
{
	b.port.withhold(true);
	EXPECT_TRUE(link.up()) << "not before the state is looked at";
	b.port.settle();
	EXPECT_FALSE(link.up());
	EXPECT_EQ(1u, a.port.counters().link_downed);
	link.set_plugged(false);
	link.set_plugged(true);
	EXPECT_FALSE(link.up());
	link.set_training(1h);
	b.port.withhold(false);
	b.port.settle();
	EXPECT_TRUE(link.up()) << "it has trained already";
	b.port.withhold(true);
	b.port.settle();
	b.port.withhold(false);
	b.port.settle();
	EXPECT_FALSE(link.up()) << "it trains";
}

/* A driver may disable and enable its port at any rate without adding scheduled tasks. */
TEST_F(TwoNodes, RepeatedPortDisableAndEnableDoesNotAccumulateTrainingTasks)
{
	link.set_training(1h);
	link.set_plugged(false);
	link.set_plugged(true);
	for (int i = 0; i < 1000; i++) {
		a.port.disable();
		a.port.enable();
	}
	EXPECT_LE(fabric.timeline().planned(), 2u);
	/* A shorter training is not delayed by earlier tasks. */
	a.port.disable();
	link.set_training(1ms);
	a.port.enable();
	while (!link.up())
		std::this_thread::yield();
}

TEST_F(TwoNodes, DelayPreservesTheOrderOfPackets)
{
	link.set_faults({.delay = 2ms, .jitter = 3ms});
	auto begin = std::chrono::steady_clock::now();
	for (std::uint32_t i = 0; i < 10; i++)
		ASSERT_EQ(Sent::done, send(i));
	EXPECT_EQ(0u, b.packets.size());
	// A fault that is switched off does not let later packets overtake earlier ones.
	link.set_faults({});
	for (std::uint32_t i = 10; i < 16; i++)
		ASSERT_EQ(Sent::done, send(i));
	ASSERT_TRUE(b.packets.wait_for_count(16));
	EXPECT_GE(std::chrono::steady_clock::now() - begin, 2ms);
	auto psns = received();
	for (std::uint32_t i = 0; i < 16; i++)
		EXPECT_EQ(i, psns[i]);
}

// A packet that waits for another one to overtake it in vain still has the delay of the link.
TEST_F(TwoNodes, ReorderingFaultDoesNotCancelTheDelayOfAPacket)
{
	link.set_faults({.delay = 60ms, .reordering = 1});
	const auto begin = std::chrono::steady_clock::now();
	ASSERT_EQ(Sent::done, send(1));
	ASSERT_TRUE(b.packets.wait_for_count(1));
	EXPECT_GE(std::chrono::steady_clock::now() - begin, 60ms);
}

// A packet that waits to be overtaken is still duplicated.
TEST_F(TwoNodes, ReorderingFaultDoesNotCancelTheDuplicationOfAPacket)
{
	link.set_faults({.duplication = 1, .reordering = 1});
	ASSERT_EQ(Sent::done, send(1));
	EXPECT_EQ(1u, b.packets.size());
	ASSERT_TRUE(b.packets.wait_for_count(2));
}

// MADs to QP1, of which those of the CM have the faults.
struct CmMessageFaults : TwoNodes {
	void send_mad(ib::MgmtClass cls, std::uint64_t tid, std::uint32_t qp = 1)
	{
		ib::Mad mad{};
		mad.header.base_version = 1;
		mad.header.mgmt_class = static_cast<std::uint8_t>(cls);
		mad.header.tid = tid;
		Packet packet = make_mad_packet({.slid = 1,
						 .dlid = 2,
						 .vl = 0,
						 .src_qp = 1,
						 .dest_qp = qp,
						 .qkey = ib::qkey_gsi,
						 .grh = {}},
						mad);
		ASSERT_EQ(Sent::done, a.port.send(packet));
	}
	// Returns the next MAD, whose packet has correct CRCs.
	ib::Mad next()
	{
		const auto packet = b.packets.next();
		EXPECT_TRUE(packet && !packet->icrc_error());
		if (!packet)
			return {};
		const auto wire = packet->to_wire();
		const auto again =
			Packet::from_wire(std::span(wire).first(wire.size() - ib::vcrc_bytes));
		EXPECT_TRUE(again && !again->icrc_error());
		return mad_of_packet(*packet)->mad;
	}
};

TEST_F(CmMessageFaults, LossAffectsOnlyCmMessages)
{
	link.set_faults({.cm_loss = 1});
	send_mad(ib::MgmtClass::com_mgt, 1);
	send_mad(ib::MgmtClass::subn_adm, 2);
	send_mad(ib::MgmtClass::com_mgt, 3, 2);
	EXPECT_EQ(2u, next().header.tid);
	// To another QP, the same bytes are no MAD.
	EXPECT_EQ(1u, b.packets.size());
	EXPECT_EQ(0u, b.port.counters().symbol_errors);
}

TEST_F(CmMessageFaults, DuplicationAffectsOnlyCmMessages)
{
	link.set_faults({.cm_duplication = 1});
	send_mad(ib::MgmtClass::com_mgt, 1);
	send_mad(ib::MgmtClass::subn_adm, 2);
	for (const std::uint64_t tid : {1, 1, 2})
		EXPECT_EQ(tid, next().header.tid);
	EXPECT_EQ(0u, b.packets.size());
}

TEST_F(CmMessageFaults, CorruptionChangesOneByteOfAMessage)
{
	link.set_faults({.cm_corruption = 1});
	send_mad(ib::MgmtClass::com_mgt, 1);
	ib::Mad sent{};
	sent.header.base_version = 1;
	sent.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::com_mgt);
	sent.header.tid = 1;
	const ib::Mad got = next();
	const auto *before = reinterpret_cast<const std::uint8_t *>(&sent);
	const auto *after = reinterpret_cast<const std::uint8_t *>(&got);
	unsigned changed = 0;
	for (unsigned i = 0; i < sizeof(sent); i++)
		changed += before[i] != after[i];
	EXPECT_EQ(1u, changed);
}

// The late messages stay on the link until it is destroyed.
TEST_F(CmMessageFaults, DelayedMessageHoldsNoCreditAndIsOvertakenByLaterMessages)
{
	link.set_faults({.cm_lateness = 1, .cm_delay = 24h});
	// The receiver has 16 buffers.
	for (std::uint64_t i = 0; i < 20; i++)
		send_mad(ib::MgmtClass::com_mgt, 1);
	for (std::uint64_t i = 0; i < 16; i++)
		send_mad(ib::MgmtClass::subn_adm, 2);
	ASSERT_TRUE(b.packets.wait_for_count(16));
	for (std::uint64_t i = 0; i < 16; i++)
		EXPECT_EQ(2u, next().header.tid);
}

TEST_F(CmMessageFaults, AllDelayedMessagesAreDelivered)
{
	link.set_faults({.cm_lateness = 1, .cm_delay = 1ms});
	for (std::uint64_t i = 0; i < 10; i++)
		send_mad(ib::MgmtClass::com_mgt, 1);
	ASSERT_TRUE(b.packets.wait_for_count(10));
}

// The link is replaced while messages are late. They are lost, and as many may be late afterwards.
TEST_F(CmMessageFaults, DelayedMessagesAreDroppedIfTheirLinkIsRemoved)
{
	link.set_faults({.cm_lateness = 1, .cm_delay = 24h});
	send_mad(ib::MgmtClass::com_mgt, 1);
	link.remove();
	LinkConfig config;
	config.faults = {.cm_lateness = 1, .cm_delay = 1ms};
	link.restore(config);
	send_mad(ib::MgmtClass::com_mgt, 2);
	ASSERT_TRUE(b.packets.wait_for_count(1));
	EXPECT_EQ(2u, next().header.tid);
}

TEST_F(CmMessageFaults, DuplicateOfADelayedMessageIsNotDelayed)
{
	link.set_faults({.cm_duplication = 1, .cm_lateness = 1, .cm_delay = 24h});
	send_mad(ib::MgmtClass::com_mgt, 1);
	ASSERT_TRUE(b.packets.wait_for_count(1));
	EXPECT_EQ(1u, next().header.tid);
	link.set_faults({.cm_duplication = 1, .cm_lateness = 1, .cm_delay = 1ms});
	send_mad(ib::MgmtClass::com_mgt, 2);
	ASSERT_TRUE(b.packets.wait_for_count(2));
	EXPECT_EQ(2u, next().header.tid);
	EXPECT_EQ(2u, next().header.tid);
}

// Result of sending a number of packets one by one: those that arrived, and the counters.
struct Outcome {
	std::vector<std::uint32_t> psns;
	std::uint64_t errors;
	std::uint64_t symbol_errors;
	bool operator==(const Outcome &) const = default;
};

Outcome run_with(const Faults &faults, std::uint64_t seed, std::uint32_t count,
		 std::optional<std::size_t> number = std::nullopt)
{
	Fabric fabric(seed);
	PacketNode a(fabric.add_port("a"));
	PacketNode b(fabric.add_port("b", 100000));
	Link &link = fabric.connect(a.port, b.port, {}, number);
	link.set_faults(faults);
	for (std::uint32_t i = 0; i < count; i++) {
		Packet packet = ud_packet(1, 2, 64, i);
		EXPECT_EQ(Sent::done, a.port.send(packet));
	}
	Outcome outcome;
	while (b.packets.size() != 0) {
		auto packet = b.packets.next();
		outcome.psns.push_back(packet->bth().psn());
		// Packets that arrive are intact.
		std::vector<std::byte> data(64);
		EXPECT_EQ(64u, packet->payload().copy_to(data));
		EXPECT_EQ(static_cast<std::byte>(outcome.psns.back()), data[0]);
	}
	outcome.errors = b.port.counters().rcv_errors;
	outcome.symbol_errors = b.port.counters().symbol_errors;
	return outcome;
}

TEST(LinkFaults, PacketLossMatchesTheConfiguredRateAndDependsOnTheSeed)
{
	Outcome outcome = run_with({.loss = 0.1}, 1, 5000);
	EXPECT_NEAR(4500, static_cast<double>(outcome.psns.size()), 120);
	EXPECT_EQ(5000u, outcome.psns.size() + outcome.symbol_errors);
	EXPECT_EQ(outcome, run_with({.loss = 0.1}, 1, 5000));
	EXPECT_NE(outcome, run_with({.loss = 0.1}, 2, 5000));
}

// A part of a fabric has the same faults as the whole, although it has fewer links.
TEST(LinkFaults, FaultSeedDependsOnTheLinkNumber)
{
	const auto with_number = [](std::optional<std::size_t> number) {
		return run_with({.loss = 0.1}, 1, 1000, number);
	};
	EXPECT_EQ(with_number(std::nullopt), with_number(1)) << "it is the first link";
	EXPECT_NE(with_number(1), with_number(2));
	EXPECT_EQ(with_number(2), with_number(2));
}

TEST(LinkFaults, EachDuplicateArrivesDirectlyAfterItsOriginal)
{
	Outcome outcome = run_with({.duplication = 0.2}, 3, 2000);
	EXPECT_NEAR(2400, static_cast<double>(outcome.psns.size()), 100);
	EXPECT_TRUE(std::is_sorted(outcome.psns.begin(), outcome.psns.end()));
}

TEST(LinkFaults, CorruptPacketsAreDetectedByTheirCrcs)
{
	Outcome on_wire = run_with({.corruption = 0.2}, 4, 2000);
	EXPECT_NEAR(1600, static_cast<double>(on_wire.psns.size()), 100);
	EXPECT_EQ(2000u, on_wire.psns.size() + on_wire.errors);
	Outcome silent = run_with({.silent_corruption = 0.2}, 5, 2000);
	EXPECT_NEAR(1600, static_cast<double>(silent.psns.size()), 100);
	// Flips in bits that the ICRC does not cover (FECN, BECN, reserved) are not detected.
	EXPECT_NEAR(2000, static_cast<double>(silent.psns.size() + silent.errors), 5);
}

TEST(LinkFaults, ReorderingLosesNoPackets)
{
	Outcome outcome = run_with({.reordering = 0.1}, 6, 2000);
	EXPECT_FALSE(std::is_sorted(outcome.psns.begin(), outcome.psns.end()));
	std::set<std::uint32_t> all(outcome.psns.begin(), outcome.psns.end());
	// The last packet may still be held back.
	EXPECT_GE(all.size(), 1999u);
	EXPECT_EQ(all.size(), outcome.psns.size());
}

// Sends until there is no credit, each time there may be one again.
class EagerNode final : public PacketNode
{
public:
	using PacketNode::PacketNode;
	void credit_available(std::uint8_t) override { bursts.push_back(send_all()); }
	int send_all()
	{
		for (int sent = 0;; sent++) {
			Packet packet = ud_packet(1, 2, 64);
			if (port.send(packet) != Sent::done)
				return sent;
		}
	}

	std::vector<int> bursts;
};

TEST(Credits, CreditsReturnedTogetherWakeTheSenderOnce)
{
	Fabric fabric;
	EagerNode sender(fabric.add_port("sender"));
	PacketNode receiver(fabric.add_port("receiver", 16));
	fabric.connect(sender.port, receiver.port);
	ASSERT_EQ(sender.send_all(), 16);
	std::vector<Packet> packets;
	for (int i = 0; i < 8; i++)
		packets.push_back(std::move(*receiver.packets.next()));
	// A packet that holds no credit separates two groups.
	packets[5].release_credit();
	Packet::release_credits(packets);
	EXPECT_EQ(sender.bursts, (std::vector<int>{1, 5, 2}));
	packets.clear();
	EXPECT_EQ(sender.bursts.size(), 3u) << "no credit is returned twice";
}

TEST(Credits, PacketsOfManySendersArriveInOrderWithoutLoss)
{
	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 8});
	MadNode sm(fabric.add_port("sm"));
	fabric.connect(*fabric.find_port("sm"), sw.port(8));
	constexpr unsigned senders = 4;
	constexpr std::uint32_t each = 3000;
	// A slow receiver with few credits.
	Port &end = fabric.add_port("end", 4);
	fabric.connect(end, sw.port(7));
	PacketNode receiver(end);
	std::vector<std::unique_ptr<PacketNode>> nodes;
	for (unsigned i = 0; i < senders; i++) {
		Port &port = fabric.add_port("s" + std::to_string(i));
		fabric.connect(port, sw.port(i + 1));
		nodes.push_back(std::make_unique<PacketNode>(port));
	}
	for (std::uint32_t port : {1u, 2u, 3u, 4u, 7u})
		for (auto state : {ib::PortState::armed, ib::PortState::active}) {
			auto answer = sm.ask({1}, ib::MadMethod::get, ib::attr_port_info, port);
			ASSERT_TRUE(answer);
			auto info = ib::smp_attribute<ib::PortInfo>(*answer);
			info.set_state(state);
			info.set_phys_state(ib::PhysState::nop);
			// Values of 20 and more mean an infinite lifetime.
			info.vl_stall_hoq_life = 20;
			ASSERT_TRUE(sm.ask({1}, ib::MadMethod::set, ib::attr_port_info, port,
					   [&](ib::Smp &smp) {
						   ib::smp_attribute<ib::PortInfo>(smp) = info;
					   }));
		}
	ASSERT_TRUE(sm.ask({1}, ib::MadMethod::set, ib::attr_linear_forwarding, 0,
			   [](ib::Smp &smp) { smp.data[9] = 7; }));

	std::vector<std::thread> threads;
	for (unsigned i = 0; i < senders; i++)
		threads.emplace_back([&, i] {
			for (std::uint32_t psn = 0; psn < each; psn++) {
				Packet packet =
					ud_packet(static_cast<ib::Lid>(100 + i), 9, 64, psn);
				while (nodes[i]->port.send(packet) == Sent::no_credit)
					ASSERT_TRUE(nodes[i]->credits.next());
			}
		});
	std::vector<std::uint32_t> expected(senders);
	for (std::uint32_t i = 0; i < senders * each; i++) {
		auto packet = receiver.packets.next();
		ASSERT_TRUE(packet) << i;
		auto from = packet->lrh().slid - 100u;
		EXPECT_EQ(expected[from]++, packet->bth().psn());
	}
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(0u, sw.port(7).counters().xmit_discards);
}

TEST(Credits, BlockedReceiverDoesNotBlockOtherReceivers)
{
	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 8});
	MadNode sm(fabric.add_port("sm"));
	fabric.connect(*fabric.find_port("sm"), sw.port(8));
	Port &dead_port = fabric.add_port("dead", 2);
	Port &live_port = fabric.add_port("live");
	Port &from_port = fabric.add_port("from");
	fabric.connect(dead_port, sw.port(1));
	fabric.connect(live_port, sw.port(2));
	fabric.connect(from_port, sw.port(3));
	PacketNode dead(dead_port);
	PacketNode live(live_port);
	PacketNode from(from_port);
	for (std::uint32_t port : {1u, 2u, 3u})
		for (auto state : {ib::PortState::armed, ib::PortState::active}) {
			auto answer = sm.ask({1}, ib::MadMethod::get, ib::attr_port_info, port);
			ASSERT_TRUE(answer);
			auto info = ib::smp_attribute<ib::PortInfo>(*answer);
			info.set_state(state);
			info.set_phys_state(ib::PhysState::nop);
			ASSERT_TRUE(sm.ask({1}, ib::MadMethod::set, ib::attr_port_info, port,
					   [&](ib::Smp &smp) {
						   ib::smp_attribute<ib::PortInfo>(smp) = info;
					   }));
		}
	ASSERT_TRUE(
		sm.ask({1}, ib::MadMethod::set, ib::attr_linear_forwarding, 0, [](ib::Smp &smp) {
			smp.data[9] = 1;
			smp.data[10] = 2;
		}));
	// Send more packets than the switch's input port has credits for.
	unsigned refused = 0;
	for (std::uint32_t i = 0; i < 400; i++) {
		Packet packet = ud_packet(5, 9, 64, i);
		if (from.port.send(packet) == Sent::no_credit)
			refused++;
	}
	EXPECT_GT(refused, 0u);
	Packet packet = ud_packet(5, 10, 64, 0);
	while (from.port.send(packet) == Sent::no_credit)
		ASSERT_TRUE(from.credits.next());
	EXPECT_TRUE(live.packets.next());
	EXPECT_GT(sw.port(1).counters().xmit_discards, 0u);
}

} // namespace
} // namespace weft::fabric
