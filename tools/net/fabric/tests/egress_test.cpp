// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a thread sends only a limited number of the packets that wait for credit, and that all
// packets are eventually sent in order.
#include <atomic>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/egress_queue.hpp"
#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using testing::Collected;
using testing::PacketNode;
using testing::ud_packet;

constexpr std::size_t kAnyNumber = 1u << 20;

// A port with an egress queue, and the peer to which it sends.
struct Route {
	class Sender final : public PortSink
	{
	public:
		explicit Sender(Port &p) : port(p), queue(p)
		{
			port.attach(*this);
			port.enable();
		}
		~Sender() override { port.detach(); }
		void receive(Packet &&) override {}
		void link_changed(bool) override {}
		void credit_available(std::uint8_t vl) override { queue.drain(vl); }

		Port &port;
		EgressQueue queue;
	};
	// Consumes each packet at once, and then calls a function of the test.
	class Eater final : public PortSink
	{
	public:
		explicit Eater(Port &p) : port(p)
		{
			port.attach(*this);
			port.enable();
		}
		~Eater() override { port.detach(); }
		void receive(Packet &&arriving) override
		{
			Packet packet(std::move(arriving));
			const std::uint32_t psn = packet.bth().psn();
			if (std::this_thread::get_id() == watched)
				by_watched++;
			psns.push(psn);
			if (!held.has_value() && hold_next.exchange(false))
				held.emplace(std::move(packet));
			else
				packet.release_credit();
			if (then)
				then(psn);
		}
		void link_changed(bool) override {}

		Port &port;
		const std::thread::id watched = std::this_thread::get_id();
		std::atomic<unsigned> by_watched{0};
		std::atomic<bool> hold_next{true};
		std::optional<Packet> held;
		std::function<void(std::uint32_t psn)> then;
		Collected<std::uint32_t> psns;
	};

	Route(Fabric &fabric, const std::string &name)
	    : sender(fabric.add_port(name + ".from")), eater(fabric.add_port(name + ".to", 1))
	{
		fabric.connect(sender.port, eater.port);
	}

	EgressQueue::Result send(std::uint32_t psn)
	{
		return sender.queue.send(ud_packet(1, 2, 64, psn), kAnyNumber);
	}
	// The first packet uses the only credit, which the peer keeps. The others wait.
	void fill(std::uint32_t count)
	{
		ASSERT_EQ(EgressQueue::Result::sent, send(0));
		for (std::uint32_t i = 1; i < count; i++)
			ASSERT_EQ(EgressQueue::Result::queued, send(i));
		ASSERT_EQ(1u, eater.psns.size());
	}
	void expect_in_order(std::uint32_t count)
	{
		for (std::uint32_t i = 0; i < count; i++) {
			const auto psn = eater.psns.next();
			ASSERT_TRUE(psn) << i << " of " << count << " arrived";
			ASSERT_EQ(i, *psn);
		}
	}

	Sender sender;
	Eater eater;
};

// The thread that returns a credit sends a limited number of packets, and other threads send the
// rest in order.
TEST(Egress, ThreadThatReturnsACreditSendsALimitedNumberOfQueuedPackets)
{
	Fabric fabric;
	Route route(fabric, "a");
	route.fill(1000);
	route.eater.held.reset();
	EXPECT_LE(route.eater.by_watched, 1 + EgressQueue::kTurnBudget);
	route.expect_in_order(1000);
}

// A thread that sends is not kept busy by other threads that add packets as fast as it sends them.
TEST(Egress, ThreadStopsSendingAtItsPacketBudgetEvenIfMorePacketsAreQueuedMeanwhile)
{
	constexpr std::uint32_t last = 20000;
	Fabric fabric;
	Route route(fabric, "a");
	route.fill(10);
	route.eater.then = [&, next = 10u](std::uint32_t) mutable {
		if (next < last)
			route.send(next++);
	};
	route.eater.held.reset();
	EXPECT_LE(route.eater.by_watched, 1 + EgressQueue::kTurnBudget);
	route.expect_in_order(last);
}

// Packets that pass through several queues share one budget.
TEST(Egress, QueuesThatOneThreadDrainsShareItsPacketBudget)
{
	Fabric fabric;
	Route near(fabric, "near"), far(fabric, "far");
	near.fill(200);
	far.fill(200);
	near.eater.then = [&](std::uint32_t psn) {
		if (psn == 1)
			far.eater.held.reset();
	};
	near.eater.held.reset();
	EXPECT_LE(near.eater.by_watched + far.eater.by_watched, 2 + EgressQueue::kTurnBudget);
	near.expect_in_order(200);
	far.expect_in_order(200);
}

// If the peer has no memory for a packet, only that packet is lost.
TEST(Egress, ExceptionInTheReceiverDropsOnlyThePacketThatCausedIt)
{
	Fabric fabric;
	Route route(fabric, "a");
	route.fill(20);
	route.eater.then = [](std::uint32_t psn) {
		if (psn == 5)
			throw std::bad_alloc();
	};
	route.eater.held.reset();
	route.expect_in_order(20);
	EXPECT_EQ(1u, route.sender.port.counters().xmit_discards);
}

// With many senders and a receiver that returns credits irregularly, the packets of each sender
// arrive in order.
TEST(Egress, PacketsArriveCompleteAndInOrder)
{
	constexpr std::uint32_t senders = 3, each = 20000;
	Fabric fabric;
	Route::Sender from(fabric.add_port("from"));
	PacketNode to(fabric.add_port("to", 8));
	fabric.connect(from.port, to.port);
	std::vector<std::thread> threads;
	for (std::uint32_t number = 0; number < senders; number++)
		threads.emplace_back([&, number] {
			for (std::uint32_t i = 0; i < each; i++)
				from.queue.send(ud_packet(1, 2, 8, number * each + i), kAnyNumber);
		});
	std::vector<std::uint32_t> expected(senders, 0);
	for (std::uint32_t i = 0; i < senders * each; i++) {
		const auto packet = to.packets.next();
		ASSERT_TRUE(packet) << i << " arrived";
		const std::uint32_t number = packet->bth().psn() / each;
		ASSERT_EQ(expected[number]++, packet->bth().psn() % each) << "of " << number;
	}
	for (std::thread &thread : threads)
		thread.join();
}

} // namespace
} // namespace weft::fabric
