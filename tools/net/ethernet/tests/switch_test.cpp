// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the learning switch: forwarding, flooding, address learning, and the limits on learnt
// addresses and on flooded traffic.
#include <chrono>
#include <iterator>
#include <list>

#include <gtest/gtest.h>

#include "net/ethernet/switch.hpp"
#include "nodes.hpp"

namespace weft::ethernet
{
namespace
{

using namespace std::chrono_literals;

constexpr Address kA = 0x02000000000a, kB = 0x02000000000b, kC = 0x02000000000c;

class EthernetSwitch : public ::testing::Test
{
public:
	EthernetSwitch()
	{
		for (Node *node : {&a, &b, &c})
			plug(*node);
	}
	Port &plug(Node &node)
	{
		Port &port = lan.add_port();
		links.emplace_back(loop, node.port, port, LinkSettings{}, 1);
		return port;
	}
	void forget()
	{
		for (Node *node : {&a, &b, &c})
			node->arrived.clear();
	}
	void pass(Clock::duration time)
	{
		bool over = false;
		Timer timer(loop, [&] { over = true; });
		timer.arm(time);
		ASSERT_TRUE(loop.run_until([&] { return over; }, time + 1s));
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	Switch lan{loop, "lan"};
	Node a{"a"}, b{"b"}, c{"c"};
	std::list<Link> links;
};

TEST_F(EthernetSwitch, FloodsFramesToUnknownAddressesAndLearnsSourceAddresses)
{
	a.port.send(frame_to(kB, kA, '1'));
	EXPECT_EQ(b.fillers() + "|" + c.fillers() + "|" + a.fillers(), "1|1|");
	forget();
	b.port.send(frame_to(kA, kB, '2'));
	EXPECT_EQ(a.fillers() + "|" + c.fillers(), "2|");
	a.port.send(frame_to(kB, kA, '3'));
	EXPECT_EQ(b.fillers() + "|" + c.fillers(), "3|");
	EXPECT_EQ(lan.addresses(), 2u);
}

TEST_F(EthernetSwitch, BroadcastAndMulticastReachAllOtherPorts)
{
	a.port.send(frame_to(kBroadcast, kA, '1'));
	a.port.send(frame_to(0x01005e000001, kA, '2'));
	EXPECT_EQ(b.fillers() + "|" + c.fillers() + "|" + a.fillers(), "12|12|");
}

TEST_F(EthernetSwitch, DoesNotForwardLinkLocalFrames)
{
	a.port.send(frame_to(0x0180c2000000, kA, '1'));
	a.port.send(frame_to(0x0180c200000e, kA, '2'));
	a.port.send(frame_to(0x0180c2000010, kA, '3'));
	EXPECT_EQ(b.fillers(), "3");
}

TEST_F(EthernetSwitch, LearnsMovedAddresses)
{
	a.port.send(frame_to(kBroadcast, kA));
	c.port.send(frame_to(kBroadcast, kA));
	forget();
	b.port.send(frame_to(kA, kB, '1'));
	EXPECT_EQ(a.fillers() + "|" + c.fillers(), "|1");
	EXPECT_EQ(lan.addresses(), 2u);
}

TEST_F(EthernetSwitch, ForgetsAddressesAfterTheAgeingTime)
{
	a.port.send(frame_to(kBroadcast, kA));
	pass(Switch::kAgeing + 1s);
	forget();
	b.port.send(frame_to(kA, kB, '1'));
	EXPECT_EQ(a.fillers() + "|" + c.fillers(), "1|1");
}

TEST_F(EthernetSwitch, DoesNotLearnGroupAddresses)
{
	a.port.send(frame_to(kBroadcast, kBroadcast));
	a.port.send(frame_to(kBroadcast, 0));
	EXPECT_EQ(lan.addresses(), 0u);
}

// A port that uses a million source addresses evicts only its own entries. Those of other ports
// stay.
TEST_F(EthernetSwitch, NumberOfAddressesLearntPerPortIsLimited)
{
	b.port.send(frame_to(kBroadcast, kB));
	for (Address i = 0; i < 10 * Switch::kMostAddresses; ++i)
		a.port.send(frame_to(kBroadcast, kC + 1 + i));
	EXPECT_EQ(lan.addresses(), Switch::kMostAddresses + 1);
	forget();
	c.port.send(frame_to(kB, kC, '1'));
	EXPECT_EQ(a.fillers() + "|" + b.fillers(), "|1");
	// Its last address is known, and its first is not.
	forget();
	c.port.send(frame_to(kC + 10 * Switch::kMostAddresses, kC, '2'));
	EXPECT_EQ(a.fillers() + "|" + b.fillers(), "2|");
	c.port.send(frame_to(kC + 1, kC, '3'));
	EXPECT_EQ(a.fillers() + "|" + b.fillers(), "23|3");
}

// Returns a broadcast frame with @size bytes.
FramePtr frame_of(std::size_t size)
{
	return frame_to(kBroadcast, kA, 0, size - 14);
}

// Returns how many frames of @size bytes one port may send to all other ports if their copies may
// have @bytes bytes in total.
std::uint64_t floods(std::uint64_t bytes, std::size_t size, unsigned ports)
{
	return bytes / ((size + Switch::kCopyOverhead) * (ports - 1));
}

// The limit applies only to frames that a port floods: not to its other frames, and not to the
// frames of other ports.
TEST_F(EthernetSwitch, RateOfFloodedTrafficPerPortIsLimited)
{
	b.port.send(frame_to(kBroadcast, kB));
	forget();
	constexpr unsigned more = 500;
	const std::size_t size = frame_to(kBroadcast, kA)->size();
	const std::uint64_t at_once = floods(Switch::kFloodAtOnce, size, 3);
	const auto flood = [&] {
		for (unsigned i = 0; i < at_once + more; ++i)
			a.port.send(frame_to(i % 2 ? kBroadcast : kC, kA));
	};
	flood();
	EXPECT_EQ(c.arrived.size(), at_once);
	EXPECT_EQ(links.front().end(1).counters.rcv_storm_discards, more);
	forget();
	a.port.send(frame_to(kB, kA, '1'));
	c.port.send(frame_to(kBroadcast, 0, '2'));
	EXPECT_EQ(b.fillers(), "12");
	forget();
	pass(1ms);
	flood();
	EXPECT_NEAR(static_cast<double>(c.arrived.size()),
		    static_cast<double>(floods(Switch::kFloodRate / 1000, size, 3)), 1);
	pass(10s);
	forget();
	flood();
	EXPECT_EQ(c.arrived.size(), at_once);
}

TEST_F(EthernetSwitch, FloodLimitCountsBytesNotFrames)
{
	const auto most = [&](std::size_t size) {
		const FramePtr frame = frame_of(size);
		forget();
		for (unsigned i = 0; i < 2000; ++i)
			a.port.send(frame);
		return c.arrived.size();
	};
	EXPECT_EQ(most(kMostFrame), floods(Switch::kFloodAtOnce, kMostFrame, 3));
	pass(10s);
	EXPECT_EQ(most(60), 2000u);
}

TEST_F(EthernetSwitch, FloodLimitCountsEachCopyOfAFloodedFrame)
{
	std::list<Node> more;
	for (unsigned i = 3; i < 30; ++i)
		plug(more.emplace_back("more"));
	const FramePtr frame = frame_of(9000);
	for (unsigned i = 0; i < 1000; ++i)
		a.port.send(frame);
	EXPECT_EQ(c.arrived.size(), floods(Switch::kFloodAtOnce, 9000, 30));
	while (links.size() > 3)
		links.pop_back();
}

TEST_F(EthernetSwitch, RemovingAPortRemovesItsAddresses)
{
	Node d("d");
	Port &port = plug(d);
	EXPECT_EQ(port.name(), "lan/4");
	d.port.send(frame_to(kBroadcast, kC));
	links.pop_back();
	lan.remove_port(port);
	EXPECT_EQ(lan.addresses(), 0u);
	forget();
	a.port.send(frame_to(kC, kA, '1'));
	EXPECT_EQ(b.fillers() + "|" + c.fillers(), "1|1");
	EXPECT_EQ(lan.add_port().name(), "lan/4");
}

TEST_F(EthernetSwitch, NumberOfPortsIsLimited)
{
	for (unsigned number = 4; number <= Switch::kMostPorts; ++number)
		lan.add_port();
	EXPECT_THROW(lan.add_port(), std::length_error);
	EXPECT_THROW(lan.add_port(Switch::kMostPorts + 1), std::length_error);
}

TEST_F(EthernetSwitch, PortWithAGivenNumberIsAddedOnce)
{
	EXPECT_EQ(lan.add_port(200).name(), "lan/200");
	EXPECT_EQ(lan.add_port().name(), "lan/4");
	EXPECT_THROW(lan.add_port(200), std::invalid_argument);
}

// The switch with trunk ports to two other daemons.
class EthernetTrunkPorts : public EthernetSwitch
{
public:
	EthernetTrunkPorts()
	{
		for (Node *node : {&x, &y})
			links.emplace_back(
				loop, node->port,
				lan.add_trunk_port("lan@here/" + node->port.name(), kHosts),
				LinkSettings{}, 1);
	}
	void forget_all()
	{
		forget();
		x.arrived.clear();
		y.arrived.clear();
	}

	static constexpr unsigned kHosts = 3;
	Node x{"x"}, y{"y"};
};

TEST_F(EthernetTrunkPorts, FramesFromATrunkAreNotSentToAnotherTrunk)
{
	constexpr Address at_x = 0x020000000011, at_y = 0x020000000022;
	x.port.send(frame_to(kBroadcast, at_x, '1'));
	EXPECT_EQ(a.fillers() + "|" + b.fillers() + "|" + x.fillers() + "|" + y.fillers(), "1|1||");
	y.port.send(frame_to(kC, at_y, '2'));
	EXPECT_EQ(c.fillers() + "|" + x.fillers(), "12|") << "to an unknown address";
	x.port.send(frame_to(at_y, at_x, '3'));
	EXPECT_EQ(c.fillers() + "|" + y.fillers(), "12|") << "to an address of another trunk";
	forget_all();
	a.port.send(frame_to(kBroadcast, kA, '4'));
	EXPECT_EQ(b.fillers() + "|" + x.fillers() + "|" + y.fillers(), "4|4|4");
	a.port.send(frame_to(at_y, kA, '5'));
	EXPECT_EQ(b.fillers() + "|" + x.fillers() + "|" + y.fillers(), "4|4|45");
}

TEST_F(EthernetTrunkPorts, AddressOfALocalHostIsNotLearnedFromATrunk)
{
	a.port.send(frame_to(kBroadcast, kA));
	forget_all();
	x.port.send(frame_to(kBroadcast, kA, '1'));
	EXPECT_EQ(b.fillers(), "1");
	b.port.send(frame_to(kA, kB, '2'));
	EXPECT_EQ(a.fillers() + "|" + x.fillers(), "12|");
	// In the other direction, and between trunks, an address moves at once.
	x.port.send(frame_to(kBroadcast, kC));
	y.port.send(frame_to(kBroadcast, kC));
	forget_all();
	b.port.send(frame_to(kC, kB, '3'));
	EXPECT_EQ(x.fillers() + "|" + y.fillers(), "|3");
	c.port.send(frame_to(kBroadcast, kC));
	forget_all();
	b.port.send(frame_to(kC, kB, '4'));
	EXPECT_EQ(c.fillers() + "|" + y.fillers(), "4|");
	// A host that has sent nothing for a while may have moved.
	a.port.send(frame_to(kBroadcast, kA));
	forget_all();
	pass(Switch::kProtected);
	x.port.send(frame_to(kBroadcast, kA));
	forget_all();
	b.port.send(frame_to(kA, kB, '5'));
	EXPECT_EQ(a.fillers() + "|" + x.fillers(), "|5");
}

TEST_F(EthernetTrunkPorts, AddressesOfALostTrunkAreForgotten)
{
	x.port.send(frame_to(kBroadcast, kC));
	a.port.send(frame_to(kBroadcast, kA));
	lan.forget(std::next(links.rbegin())->end(1));
	EXPECT_EQ(lan.addresses(), 1u);
	forget_all();
	a.port.send(frame_to(kC, kA, '1'));
	EXPECT_EQ(b.fillers() + "|" + x.fillers() + "|" + y.fillers(), "1|1|1");
}

// A trunk has the limits that its hosts would have as hosts of this daemon.
TEST_F(EthernetTrunkPorts, LimitsOfATrunkAreThoseOfItsHostsTogether)
{
	for (Address i = 0; i < 2 * kHosts * Switch::kMostAddresses; ++i)
		x.port.send(frame_to(kBroadcast, kC + 1 + i));
	EXPECT_EQ(lan.addresses(), kHosts * Switch::kMostAddresses);
	pass(10s);
	forget_all();
	const FramePtr frame = frame_of(kMostFrame);
	const auto most = [&](Node &from, const Node &to) {
		forget_all();
		for (unsigned i = 0; i < 2000; ++i)
			from.port.send(frame);
		return to.arrived.size();
	};
	// A host's frame counts for the eight other hosts.
	EXPECT_EQ(most(a, x), floods(Switch::kFloodAtOnce, kMostFrame, 9));
	// That of a trunk counts for the three hosts of this daemon.
	EXPECT_NEAR(static_cast<double>(most(x, a)),
		    static_cast<double>(kHosts * floods(Switch::kFloodAtOnce, kMostFrame, 4)), 1);
	EXPECT_THROW(lan.add_trunk_port("lan@here/z", Switch::kMostPorts), std::length_error);
}

} // namespace
} // namespace weft::ethernet
