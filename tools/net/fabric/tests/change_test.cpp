// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that links, ports and switches can be removed and added, also while packets are in flight.
#include <atomic>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "net/fabric/fabric.hpp"
#include "net/fabric/tests/test_node.hpp"
#include "net/fabric/timeline.hpp"

namespace weft::fabric
{
namespace
{

using namespace std::chrono_literals;
using testing::MadNode;
using testing::PacketNode;
using testing::ud_packet;

// A removed link takes its ports down and makes them available for other links. It can be added
// again with new settings.
TEST(TopologyChange, RemovedLinkCanBeAddedAgain)
{
	Fabric fabric;
	PacketNode a(fabric.add_port("a")), b(fabric.add_port("b")), c(fabric.add_port("c"));
	Link &link = fabric.connect(a.port, b.port, {.faults = {.delay = 1min}});
	Packet late = ud_packet(1, 2, 64);
	EXPECT_EQ(Sent::done, a.port.send(late));
	fabric.disconnect(link);
	EXPECT_FALSE(a.port.link_up());
	EXPECT_EQ(nullptr, fabric.find_link("a-b"));
	EXPECT_TRUE(fabric.links().empty());
	Packet lost = ud_packet(1, 2, 64);
	EXPECT_EQ(Sent::link_down, a.port.send(lost));

	fabric.connect(a.port, c.port);
	Packet other = ud_packet(1, 2, 64);
	EXPECT_EQ(Sent::done, a.port.send(other));
	EXPECT_EQ(1u, c.packets.size());
	fabric.disconnect(*fabric.find_link("a-c"));

	Link &again = fabric.connect(a.port, b.port, {.mtu = ib::Mtu::mtu_1024});
	EXPECT_EQ(&link, &again) << "the same name, the same link";
	EXPECT_EQ(ib::Mtu::mtu_1024, a.port.mtu_cap());
	Packet arrives = ud_packet(1, 2, 64);
	EXPECT_EQ(Sent::done, a.port.send(arrives));
	EXPECT_EQ(1u, b.packets.size())
		<< "the packet that was in flight is lost, and so is the delay";
}

// A port with a link cannot be removed. A removed port gets its counters back when it is added
// again under its name.
TEST(TopologyChange, PortThatIsRemovedAndAddedAgainHasItsOldCounters)
{
	Fabric fabric;
	Port &a = fabric.add_port("a");
	Link &link = fabric.connect(a, fabric.add_port("b"));
	EXPECT_THROW(fabric.remove_port(a), std::invalid_argument);
	fabric.disconnect(link);
	Counters::add(a.counters().xmit_discards, 3);
	fabric.remove_port(a);
	EXPECT_EQ(nullptr, fabric.find_port("a"));
	EXPECT_EQ(1u, fabric.end_ports().size());
	EXPECT_THROW(fabric.remove_port(a), std::invalid_argument);
	Port &again = fabric.add_port("a");
	EXPECT_EQ(3u, again.counters().xmit_discards);
	fabric.connect(again, *fabric.find_port("b"));
}

// State of removed parts is bounded; names that existed before are always accepted.
TEST(TopologyChange, NumberOfRemovedPortsThatAreRememberedIsLimited)
{
	Fabric fabric;
	for (std::size_t i = 0; i < Fabric::kMostRemoved; i++)
		fabric.remove_port(fabric.add_port(std::to_string(i)));
	EXPECT_THROW(fabric.add_port("one more"), std::length_error);
	fabric.remove_port(fabric.add_port("7"));
	fabric.add_port("8");
	fabric.add_port("one more");
}

// Removing a switch removes its links, and cancels its planned tasks.
TEST(TopologyChange, RemovingASwitchRemovesItsLinks)
{
	Fabric fabric;
	MadNode sm(fabric.add_port("sm"));
	for (int round = 0; round < 20; round++) {
		Switch &sw = fabric.add_switch({.name = "s", .ports = 4, .guid = 0x500});
		Port &end = fabric.add_port("end");
		PacketNode node(end);
		fabric.connect(*fabric.find_port("sm"), sw.port(1));
		fabric.connect(end, sw.port(2));
		// These requests make the switch schedule traps, which it repeats.
		ASSERT_TRUE(sm.ask({}, ib::MadMethod::get, ib::attr_node_info));
		ASSERT_TRUE(sm.ask({1}, ib::MadMethod::get, ib::attr_node_info));
		fabric.remove_switch(sw);
		EXPECT_EQ(nullptr, end.link());
		EXPECT_EQ(nullptr, fabric.find_switch("s"));
		EXPECT_EQ(nullptr, fabric.find_port("s/3"));
		node.port.detach();
		fabric.remove_port(end);
	}
	EXPECT_TRUE(fabric.links().empty());
}

// Threads send packets continuously while links and switches are added and removed.
TEST(TopologyChange, TrafficContinuesWhileTheTopologyChanges)
{
	Fabric fabric;
	PacketNode a(fabric.add_port("a")), b(fabric.add_port("b"));
	std::atomic<bool> done{false};
	std::atomic<unsigned> sent_forth{0}, sent_back{0};
	const auto traffic = [&](PacketNode &from, std::atomic<unsigned> &sent) {
		while (!done.load()) {
			Packet packet = ud_packet(1, 2, 256);
			sent += from.port.send(packet) == Sent::done;
			from.packets.clear();
		}
	};
	std::thread forth([&] { traffic(a, sent_forth); }), back([&] { traffic(b, sent_back); });
	for (int round = 0; round < 200; round++) {
		Switch &sw = fabric.add_switch({.name = "s", .ports = 2, .guid = 0x500});
		Link &first = fabric.connect(a.port, sw.port(1),
					     {.faults = {.jitter = 1us, .reordering = 0.1}});
		fabric.connect(b.port, sw.port(2));
		if (round % 2)
			fabric.disconnect(first);
		fabric.remove_switch(sw);
		fabric.disconnect(fabric.connect(a.port, b.port));
	}
	// Both nodes still send, and their packets arrive.
	Link &last = fabric.connect(a.port, b.port);
	const unsigned forth_before = sent_forth, back_before = sent_back;
	while (sent_forth == forth_before || sent_back == back_before)
		std::this_thread::yield();
	done = true;
	forth.join();
	back.join();
	fabric.disconnect(last);
	EXPECT_TRUE(fabric.links().empty());
}

// Removing an owner drops its scheduled tasks, and waits for one that is running.
TEST(TopologyChange, RemovingAnOwnerCancelsItsScheduledTasksAndWaitsForItsRunningTask)
{
	Timeline timeline;
	int owner = 0;
	const auto planned = std::make_shared<int>(0);
	std::atomic<int> runs{0};
	std::atomic<bool> running{false}, may_end{false}, ended{false};
	timeline.at(
		timeline.now(),
		[&] {
			running = true;
			while (!may_end)
				std::this_thread::yield();
			timeline.after(1h, [planned] {}, &owner);
			ended = true;
		},
		&owner);
	timeline.after(1ms, [&, planned] { ++runs; }, &owner);
	while (!running)
		std::this_thread::yield();
	std::thread other([&] { may_end = true; });
	timeline.forget(&owner);
	const int before = runs;
	EXPECT_TRUE(ended);
	EXPECT_EQ(1, planned.use_count()) << "nothing is planned any more";
	other.join();
	std::atomic<bool> after{false};
	timeline.after(
		5ms,
		[&] {
			after = true;
			after.notify_all();
		},
		&owner);
	after.wait(false);
	EXPECT_EQ(before, runs);
}

} // namespace
} // namespace weft::fabric
