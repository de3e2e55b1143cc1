// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a multicast packet to many members costs its sender's thread and other senders only a
// limited amount of work, and that every member gets every packet, in order.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using namespace testing;
using ib::MadMethod;

constexpr unsigned kLeaves = 4;
constexpr unsigned kMembersEach = 200;
constexpr unsigned kMembers = kLeaves * kMembersEach;
constexpr ib::Lid kGroup = 0xc003;

// Counts the packets of each sender by source LID.
class Member final : public PortSink
{
public:
	explicit Member(Port &p) : port(p)
	{
		port.attach(*this);
		port.enable();
	}
	~Member() override { port.detach(); }
	void receive(Packet &&arriving) override
	{
		Packet packet(std::move(arriving));
		auto &count = counts[packet.lrh().slid];
		in_order = in_order && packet.bth().psn() == count;
		count++;
		if (holds)
			held.push_back(std::move(packet));
	}
	void link_changed(bool) override {}
	void credit_available(std::uint8_t) override {}

	Port &port;
	std::map<ib::Lid, unsigned> counts;
	bool in_order = true;
	bool holds = false;
	std::vector<Packet> held;
};

// A spine switch with four leaf switches of 200 members each, and two senders at the spine.
struct MulticastStorm : ::testing::Test {
	VirtualEnvironment environment;
	Reactor reactor{"storm", Reactor::Drive::manual, environment};
	Loop loop{"test", reactor};
	Fabric fabric{Fabric::kDefaultSeed, &reactor};
	Switch &spine = fabric.add_switch({.name = "spine", .ports = kLeaves + 3});
	Port &sm_port = fabric.add_port("sm");
	Link &sm_link = fabric.connect(sm_port, spine.port(1));
	MadNode sm{sm_port};
	std::vector<Switch *> leaves;
	std::vector<std::unique_ptr<Member>> members;
	std::unique_ptr<Member> first, second;

	void SetUp() override
	{
		for (unsigned leaf = 0; leaf < kLeaves; leaf++) {
			leaves.push_back(&fabric.add_switch({.name = "leaf" + std::to_string(leaf),
							     .ports = kMembersEach + 1}));
			fabric.connect(spine.port(2 + leaf), leaves.back()->port(1));
			for (unsigned i = 0; i < kMembersEach; i++) {
				Port &port = fabric.add_port("m" + std::to_string(members.size()));
				fabric.connect(port, leaves.back()->port(2 + i));
				members.push_back(std::make_unique<Member>(port));
			}
		}
		first = add_sender("first", kLeaves + 2);
		second = add_sender("second", kLeaves + 3);
		set_up_switch({1}, kLeaves + 3, 2, kLeaves + 1);
		for (unsigned leaf = 0; leaf < kLeaves; leaf++)
			set_up_switch({1, static_cast<int>(2 + leaf)}, kMembersEach + 1, 2,
				      kMembersEach + 1);
	}
	std::unique_ptr<Member> add_sender(const std::string &name, unsigned number)
	{
		Port &port = fabric.add_port(name);
		fabric.connect(port, spine.port(number));
		return std::make_unique<Member>(port);
	}
	// Brings all ports of a switch to ACTIVE, and forwards the group to the ports from @from to
	// @to.
	void set_up_switch(std::initializer_list<int> path, unsigned ports, unsigned from,
			   unsigned to)
	{
		for (unsigned port = 1; port <= ports; port++)
			for (auto state : {ib::PortState::armed, ib::PortState::active}) {
				auto answer =
					sm.ask(path, MadMethod::get, ib::attr_port_info, port);
				ASSERT_TRUE(answer);
				auto info = ib::smp_attribute<ib::PortInfo>(*answer);
				info.set_state(state);
				info.set_phys_state(ib::PhysState::nop);
				answer = sm.ask(path, MadMethod::set, ib::attr_port_info, port,
						[&](ib::Smp &smp) {
							ib::smp_attribute<ib::PortInfo>(smp) = info;
						});
				ASSERT_TRUE(answer);
				ASSERT_EQ(0u, MadNode::status(*answer)) << port;
			}
		for (unsigned position = 0; position <= to / 16; position++) {
			unsigned mask = 0;
			for (unsigned bit = 0; bit < 16; bit++)
				if (position * 16 + bit >= from && position * 16 + bit <= to)
					mask |= 1u << bit;
			auto answer = sm.ask(path, MadMethod::set, ib::attr_multicast_forwarding,
					     position << 28, [&](ib::Smp &smp) {
						     ib::smp_attribute<ib::MulticastForwarding>(smp)
							     .ports[kGroup & 31] =
							     static_cast<std::uint16_t>(mask);
					     });
			ASSERT_TRUE(answer);
			ASSERT_EQ(0u, MadNode::status(*answer));
		}
	}
	Sent send(Member &from, ib::Lid slid, std::uint32_t psn)
	{
		Packet packet = ud_packet(slid, kGroup, 64, psn);
		return from.port.send(packet);
	}
	unsigned delivered(ib::Lid slid) const
	{
		unsigned sum = 0;
		for (const auto &member : members)
			if (const auto count = member->counts.find(slid);
			    count != member->counts.end())
				sum += count->second;
		return sum;
	}
	bool run_until_delivered(ib::Lid slid, unsigned count)
	{
		return loop.run_until([&] { return delivered(slid) == count; });
	}
};

TEST_F(MulticastStorm, SendersThreadMakesAtMost16CopiesOfAMulticastPacket)
{
	ASSERT_EQ(Sent::done, send(*first, 5, 0));
	EXPECT_LE(delivered(5), 16u) << "copies made on the sender's thread";
	EXPECT_TRUE(run_until_delivered(5, kMembers));
}

TEST_F(MulticastStorm, SenderThatOutrunsMulticastDeliveryIsThrottledAndLosesNoPacket)
{
	unsigned sent = 0;
	while (sent < 1000 && send(*first, 5, sent) == Sent::done)
		sent++;
	EXPECT_LT(sent, 1000u) << "it sends without end";
	EXPECT_LE(delivered(5), 16u);
	ASSERT_TRUE(run_until_delivered(5, sent * kMembers));
	// The credits of the sender have been returned.
	EXPECT_EQ(Sent::done, send(*first, 5, sent));
	EXPECT_TRUE(run_until_delivered(5, (sent + 1) * kMembers));
	for (const auto &member : members)
		EXPECT_TRUE(member->in_order);
}

TEST_F(MulticastStorm, PendingMulticastCopiesOfOneSenderDoNotDelayAnotherSender)
{
	unsigned sent = 0;
	while (sent < 300 && send(*first, 5, sent) == Sent::done)
		sent++;
	ASSERT_GT(sent, 50u);
	ASSERT_EQ(Sent::done, send(*second, 6, 0));
	ASSERT_TRUE(run_until_delivered(6, kMembers));
	EXPECT_LT(delivered(5), 4 * kMembers) << "the other sender's copies that came first";
	EXPECT_TRUE(run_until_delivered(5, sent * kMembers));
}

TEST_F(MulticastStorm, SlowReceiverDoesNotThrottleTheSender)
{
	members.front()->holds = true;
	for (unsigned i = 0; i < 2000; i++) {
		ASSERT_EQ(Sent::done, send(*first, 5, i)) << i;
		ASSERT_TRUE(loop.run_until([&] { return members.back()->counts[5] == i + 1; }));
	}
	// The packets return their credits, and packets that wait for these are received.
	members.front()->holds = false;
	const std::vector<Packet> released = std::move(members.front()->held);
}

} // namespace
} // namespace weft::fabric
