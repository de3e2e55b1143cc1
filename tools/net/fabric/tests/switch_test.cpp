// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a switch answers management requests and forwards packets by its tables.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using namespace testing;
using ib::MadMethod;

struct OneSwitch : ::testing::Test {
	Fabric fabric;
	Switch &sw = fabric.add_switch({.name = "sw", .ports = 4});
	Port &a = fabric.add_port("a");
	Port &b = fabric.add_port("b");
	Link &link_a = fabric.connect(a, sw.port(1));
	Link &link_b = fabric.connect(b, sw.port(2));
	MadNode sm{a};

	// Brings the switch's port from INIT to ACTIVE.
	void activate(int port)
	{
		for (auto state : {ib::PortState::armed, ib::PortState::active}) {
			auto answer = sm.ask({1}, MadMethod::get, ib::attr_port_info,
					     static_cast<std::uint32_t>(port));
			ASSERT_TRUE(answer);
			auto info = ib::smp_attribute<ib::PortInfo>(*answer);
			info.set_state(state);
			info.set_phys_state(ib::PhysState::nop);
			answer = sm.ask({1}, MadMethod::set, ib::attr_port_info,
					static_cast<std::uint32_t>(port), [&](ib::Smp &smp) {
						ib::smp_attribute<ib::PortInfo>(smp) = info;
					});
			ASSERT_TRUE(answer);
			ASSERT_EQ(0u, MadNode::status(*answer));
		}
	}
	void route(ib::Lid lid, unsigned port)
	{
		auto answer = sm.ask({1}, MadMethod::get, ib::attr_linear_forwarding, lid / 64u);
		ASSERT_TRUE(answer);
		answer = sm.ask({1}, MadMethod::set, ib::attr_linear_forwarding, lid / 64u,
				[&](ib::Smp &smp) {
					std::copy_n(answer->data, 64, smp.data);
					smp.data[lid % 64] = static_cast<std::uint8_t>(port);
				});
		ASSERT_TRUE(answer);
		ASSERT_EQ(0u, MadNode::status(*answer));
	}
};

TEST_F(OneSwitch, AnswersNodeInfoOverOneHop)
{
	PacketNode node(b);
	auto answer = sm.ask({1}, MadMethod::get, ib::attr_node_info);
	ASSERT_TRUE(answer);
	const auto &info = ib::smp_attribute<ib::NodeInfo>(*answer);
	EXPECT_EQ(ib::NodeType::switch_, info.type());
	EXPECT_EQ(4, info.num_ports);
	EXPECT_EQ(sw.guid(), info.node_guid);
	EXPECT_EQ(1, info.local_port);
	EXPECT_TRUE(answer->returning());
	EXPECT_EQ(0, answer->header.hop_ptr);
}

TEST_F(OneSwitch, ForwardsDirectedRouteSmps)
{
	MadNode other(b, 0x200);
	auto answer = sm.ask({1, 2}, MadMethod::get, ib::attr_node_info);
	ASSERT_TRUE(answer);
	EXPECT_EQ(0x200u, ib::smp_attribute<ib::NodeInfo>(*answer).node_guid);
	EXPECT_EQ(ib::NodeType::channel_adapter, ib::smp_attribute<ib::NodeInfo>(*answer).type());
	answer = sm.ask({}, MadMethod::get, ib::attr_node_info);
	ASSERT_TRUE(answer);
	EXPECT_EQ(0x100u, ib::smp_attribute<ib::NodeInfo>(*answer).node_guid);
}

TEST_F(OneSwitch, PortStateChangesWithTheLinkAndWithSetPortInfo)
{
	auto state = [&](std::uint32_t port) {
		auto answer = sm.ask({1}, MadMethod::get, ib::attr_port_info, port);
		return answer ? ib::smp_attribute<ib::PortInfo>(*answer).state()
			      : ib::PortState::nop;
	};
	EXPECT_EQ(ib::PortState::init, state(1));
	EXPECT_EQ(ib::PortState::down, state(2));
	EXPECT_EQ(ib::PortState::down, state(3));
	{
		PacketNode node(b);
		EXPECT_EQ(ib::PortState::init, state(2));
		activate(2);
		EXPECT_EQ(ib::PortState::active, state(2));
		link_b.set_plugged(false);
		EXPECT_EQ(ib::PortState::down, state(2));
		link_b.set_plugged(true);
		EXPECT_EQ(ib::PortState::init, state(2));
	}
	EXPECT_EQ(ib::PortState::down, state(2));
	// A port cannot go from INIT to ACTIVE directly.
	auto answer = sm.ask({1}, MadMethod::get, ib::attr_port_info, 1);
	auto info = ib::smp_attribute<ib::PortInfo>(*answer);
	info.set_state(ib::PortState::active);
	answer = sm.ask({1}, MadMethod::set, ib::attr_port_info, 1,
			[&](ib::Smp &smp) { ib::smp_attribute<ib::PortInfo>(smp) = info; });
	ASSERT_TRUE(answer);
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value}, MadNode::status(*answer));
	EXPECT_EQ(ib::PortState::init, state(1));
}

TEST_F(OneSwitch, RejectsUnknownAttributes)
{
	auto status = [&](MadMethod method, std::uint16_t attribute, std::uint32_t modifier) {
		auto answer = sm.ask({1}, method, attribute, modifier);
		return answer ? MadNode::status(*answer) : 0xffffu;
	};
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value},
		  status(MadMethod::get, ib::attr_port_info, 5));
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value},
		  status(MadMethod::get, ib::attr_linear_forwarding, 0xffffffff));
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value},
		  status(MadMethod::get, ib::attr_multicast_forwarding, 0x10000000));
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value},
		  status(MadMethod::set, ib::attr_sl_to_vl, 0x0905));
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value},
		  status(MadMethod::set, ib::attr_sl_to_vl, ib::sl_to_vl_all_inputs | 0x0009));
	EXPECT_EQ(unsigned{ib::mad_status_unsupported_method_attribute},
		  status(MadMethod::get, 0x7777, 0));
	EXPECT_EQ(unsigned{ib::mad_status_unsupported_method_attribute},
		  status(MadMethod::set, ib::attr_node_info, 0));
}

TEST_F(OneSwitch, ForwardsUnicastOnlyIfBothPortsAreActiveAndTheLidIsRouted)
{
	PacketNode c(fabric.add_port("c"));
	PacketNode node(b);
	Link &link_c = fabric.connect(c.port, sw.port(3));
	route(7, 3);
	auto send = [&](std::size_t bytes) {
		Packet packet = ud_packet(5, 7, bytes);
		return node.port.send(packet);
	};
	// Ports in INIT forward only VL15.
	EXPECT_EQ(Sent::done, send(64));
	activate(2);
	EXPECT_EQ(Sent::done, send(64));
	activate(3);
	EXPECT_EQ(0u, c.packets.size());
	EXPECT_EQ(Sent::done, send(64));
	auto got = c.packets.next();
	ASSERT_TRUE(got);
	EXPECT_EQ(64u, got->payload().size());
	EXPECT_EQ(7, got->lrh().dlid);
	// This LID has no route.
	Packet lost = ud_packet(5, 8, 64);
	EXPECT_EQ(Sent::done, node.port.send(lost));
	EXPECT_EQ(1u, sw.port(2).counters().rcv_switch_relay_errors);
	EXPECT_EQ(1u, sw.port(3).counters().xmit_discards);
	link_c.set_plugged(false);
	send(64);
	EXPECT_EQ(2u, sw.port(3).counters().xmit_discards);
	EXPECT_EQ(0u, c.packets.size());
}

// VL15 needs no port state, P_Key or credit, so it is only for SMPs.
TEST_F(OneSwitch, Vl15PacketsThatAreNotSmpsAreDropped)
{
	PacketNode c(fabric.add_port("c"));
	PacketNode node(b);
	fabric.connect(c.port, sw.port(3));
	route(7, 3);
	const auto send = [&](std::uint32_t qp, std::size_t bytes) {
		packet::Headers headers = ud_packet(5, 7, bytes).parse();
		headers.lrh.set_vl(ib::vl_management);
		headers.bth.set_dest_qp(qp);
		std::vector<std::byte> data(bytes);
		Packet packet = std::move(*Packet::make(headers, Payload::copy_of(data)));
		EXPECT_EQ(Sent::done, node.port.send(packet));
	};
	send(0x48, ib::mad_bytes);
	send(ib::qpn_gsi, ib::mad_bytes);
	send(ib::qpn_smi, 2 * ib::mad_bytes);
	EXPECT_EQ(0u, c.packets.size());
	EXPECT_EQ(3u, sw.port(2).counters().rcv_errors);
	send(ib::qpn_smi, ib::mad_bytes);
	EXPECT_EQ(1u, c.packets.size());
}

// Responses and traps of an untrusted guest are forwarded, its requests are dropped.
TEST_F(OneSwitch, PortOfAnUntrustedGuestDropsAllSmpsExceptResponsesAndTraps)
{
	MadNode guest(b, 0x200);
	sw.restrict_management(2);
	const auto got_through = [&](MadMethod method, std::uint16_t attribute) {
		ib::Mad mad{};
		mad.header.base_version = ib::mad_base_version;
		mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
		mad.header.class_version = 1;
		mad.header.method = static_cast<std::uint8_t>(method);
		mad.header.attr_id = attribute;
		const auto before = sw.port(2).counters().rcv_constraint_errors.load();
		MadAddress address;
		address.dlid = 7;
		EXPECT_TRUE(guest.mads.send(address, mad));
		return sw.port(2).counters().rcv_constraint_errors.load() == before;
	};
	EXPECT_TRUE(got_through(MadMethod::get_resp, ib::attr_node_info));
	EXPECT_TRUE(got_through(MadMethod::trap, ib::attr_sm_notice));
	EXPECT_FALSE(got_through(MadMethod::get, ib::attr_node_info));
	EXPECT_FALSE(got_through(MadMethod::set, ib::attr_port_info));
	EXPECT_FALSE(got_through(MadMethod::trap_repress, ib::attr_sm_notice));
	EXPECT_FALSE(got_through(MadMethod::get_resp, ib::attr_sm_info)) << "it manages nothing";
	// The subnet manager finds the node nevertheless.
	const auto answer = sm.ask({1, 2}, MadMethod::get, ib::attr_node_info);
	ASSERT_TRUE(answer);
	EXPECT_EQ(0x200u, ib::smp_attribute<ib::NodeInfo>(*answer).node_guid);
}

// Set(PortInfo) of a channel adapter's port accepts valid values only (IBA 14.2.5.6).
TEST_F(OneSwitch, RejectsInvalidPortInfo)
{
	const auto set = [&](auto &&change) {
		auto answer = sm.ask({}, MadMethod::get, ib::attr_port_info);
		ib::PortInfo info = ib::smp_attribute<ib::PortInfo>(*answer);
		info.set_state(ib::PortState::nop);
		info.set_phys_state(ib::PhysState::nop);
		change(info);
		return *sm.ask({}, MadMethod::set, ib::attr_port_info, 0,
			       [&](ib::Smp &smp) { ib::smp_attribute<ib::PortInfo>(smp) = info; });
	};
	auto answer = set([](ib::PortInfo &info) {
		info.lid = std::uint16_t{5};
		info.set_lmc(1);
	});
	EXPECT_EQ(unsigned{ib::mad_status_invalid_value}, MadNode::status(answer))
		<< "no multiple of its number of LIDs";
	answer = set([](ib::PortInfo &info) {
		info.link_width_enabled = ib::width_12x;
		info.set_speed_enabled(8);
	});
	EXPECT_EQ(0u, MadNode::status(answer));
	const auto &info = ib::smp_attribute<ib::PortInfo>(answer);
	EXPECT_EQ(ib::width_1x | ib::width_4x, info.link_width_enabled) << "none is no width";
	EXPECT_EQ(7, info.speed_enabled());
}

TEST_F(OneSwitch, DropsPacketsAboveTheNeighbourMtu)
{
	PacketNode c(fabric.add_port("c"));
	PacketNode node(b);
	fabric.connect(c.port, sw.port(3), {.mtu = ib::Mtu::mtu_2048});
	route(7, 3);
	activate(2);
	activate(3);
	Packet large = ud_packet(5, 7, 2049);
	node.port.send(large);
	EXPECT_EQ(0u, c.packets.size());
	Packet fits = ud_packet(5, 7, 2048);
	node.port.send(fits);
	EXPECT_EQ(1u, c.packets.size());
}

// Each lane has its own buffers, and packets from any lane leave on the lane that their SL selects.
// A sender that could use all lanes would have fifteen times the share of others on that lane.
TEST_F(OneSwitch, DropsPacketsOnInactiveVirtualLanes)
{
	PacketNode c(fabric.add_port("c"));
	PacketNode node(b);
	fabric.connect(c.port, sw.port(3));
	route(7, 3);
	activate(2);
	activate(3);
	for (std::uint8_t vl = 0; vl < ib::vl_management; vl++) {
		Packet packet = ud_packet(5, 7, 64);
		packet.lrh().set_vl(vl);
		EXPECT_EQ(Sent::done, node.port.send(packet));
	}
	EXPECT_EQ(1u, c.packets.size()) << "of VL0, the one that begins operational";
	EXPECT_EQ(14u, sw.port(2).counters().rcv_errors);
}

TEST_F(OneSwitch, ReplicatesMulticastToAllMembersExceptTheSender)
{
	PacketNode node(b);
	PacketNode c(fabric.add_port("c"));
	PacketNode d(fabric.add_port("d"));
	fabric.connect(c.port, sw.port(3));
	fabric.connect(d.port, sw.port(4));
	for (int port : {2, 3, 4})
		activate(port);
	auto answer =
		sm.ask({1}, MadMethod::set, ib::attr_multicast_forwarding, 0, [](ib::Smp &smp) {
			ib::smp_attribute<ib::MulticastForwarding>(smp).ports[3] = 0b11100;
		});
	ASSERT_TRUE(answer);
	ASSERT_EQ(0u, MadNode::status(*answer));
	Packet packet = ud_packet(5, 0xc003, 100);
	EXPECT_EQ(Sent::done, node.port.send(packet));
	for (PacketNode *member : {&c, &d}) {
		auto got = member->packets.next();
		ASSERT_TRUE(got);
		EXPECT_EQ(100u, got->payload().size());
	}
	EXPECT_EQ(0u, node.packets.size());
	EXPECT_EQ(1u, c.port.counters().multicast_rcv_packets);
}

// Fixture of tests with a receiver that has two credits and keeps its packets.
struct SlowReceiver : OneSwitch {
	Port &slow_port = fabric.add_port("slow", 2);
	Link &link_slow = fabric.connect(slow_port, sw.port(3));
	PacketNode from{b}, slow{slow_port};

	void SetUp() override
	{
		activate(2);
		activate(3);
		route(9, 3);
		// Packets that wait are not dropped during the test.
		auto answer = sm.ask({1}, MadMethod::get, ib::attr_port_info, 3);
		ASSERT_TRUE(answer);
		auto info = ib::smp_attribute<ib::PortInfo>(*answer);
		info.set_state(ib::PortState::nop);
		info.set_phys_state(ib::PhysState::nop);
		info.vl_stall_hoq_life = 20;
		answer = sm.ask({1}, MadMethod::set, ib::attr_port_info, 3,
				[&](ib::Smp &smp) { ib::smp_attribute<ib::PortInfo>(smp) = info; });
		ASSERT_TRUE(answer);
		ASSERT_EQ(0u, MadNode::status(*answer));
	}
	// Sends until the switch has no credit. Returns the number of packets sent.
	unsigned send_all()
	{
		unsigned sent = 0;
		Packet packet = ud_packet(5, 9, 64);
		while (sent < 1000 && b.send(packet) == Sent::done) {
			packet = ud_packet(5, 9, 64);
			sent++;
		}
		return sent;
	}
};

// A switch takes credits only for packets that it keeps, and no more than it has.
TEST_F(SlowReceiver, PacketsQueuedInTheSwitchUseCreditsOfTheInputPort)
{
	EXPECT_EQ(2u + Port::kDefaultCredits, send_all());
	slow.packets.clear();
	EXPECT_TRUE(from.credits.next());
	EXPECT_EQ(2u, send_all());
	// All credits return.
	for (unsigned i = 0; i < 2u + Port::kDefaultCredits; i++)
		ASSERT_TRUE(slow.packets.next()) << i;
	EXPECT_EQ(0u, slow.packets.size());
	EXPECT_EQ(2u + Port::kDefaultCredits, send_all());
	EXPECT_EQ(0u, sw.port(3).counters().xmit_discards);
}

// Each thread that sends at the same time may add one packet.
TEST_F(SlowReceiver, ConcurrentSendersExceedTheCreditsByAtMostOnePacketEach)
{
	constexpr unsigned threads = 4;
	for (unsigned round = 0; round < 20; round++) {
		std::atomic<unsigned> sent = 0;
		std::vector<std::thread> senders;
		for (unsigned i = 0; i < threads; i++)
			senders.emplace_back([&] { sent += send_all(); });
		for (std::thread &sender : senders)
			sender.join();
		EXPECT_GE(sent, 2u + Port::kDefaultCredits);
		EXPECT_LE(sent, 2u + Port::kDefaultCredits + threads);
		for (unsigned i = 0; i < sent; i++)
			ASSERT_TRUE(slow.packets.next()) << i;
	}
	EXPECT_EQ(0u, sw.port(3).counters().xmit_discards);
	// All credits have returned.
	EXPECT_EQ(2u + Port::kDefaultCredits, send_all());
}

// The cable to the switch may delay packets that have not taken a credit yet.
TEST_F(SlowReceiver, PacketsDelayedOnTheLinkUseCreditsOfTheSwitch)
{
	link_b.set_faults({.delay = std::chrono::hours(1)});
	EXPECT_EQ(static_cast<unsigned>(Port::kDefaultCredits), send_all());
	EXPECT_EQ(0u, slow.packets.size());
}

} // namespace
} // namespace weft::fabric
