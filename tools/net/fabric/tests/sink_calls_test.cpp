// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that no call into a node is in progress when its port has been detached.
#include "net/fabric/sink_calls.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/refused_membarrier.hpp"
#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric
{
namespace
{

using testing::ud_packet;

// Calls a function of the test for each packet.
class Caller final : public PortSink
{
public:
	Caller(Port &port, std::function<void()> receive)
	    : port_(port), receive_(std::move(receive))
	{
		port_.attach(*this);
		port_.enable();
	}
	~Caller() override
	{
		port_.detach();
		EXPECT_EQ(0u, inside_);
		gone_ = true;
	}
	void receive(Packet &&arriving) override
	{
		const Packet packet(std::move(arriving));
		EXPECT_FALSE(gone_);
		inside_++;
		receive_();
		EXPECT_FALSE(gone_);
		inside_--;
	}
	void link_changed(bool) override {}

private:
	Port &port_;
	const std::function<void()> receive_;
	std::atomic<unsigned> inside_{0};
	std::atomic<bool> gone_{false};
};

// Detaches a node on another thread, and expects that this waits for a call into the node. The call
// returns when @leave is set.
void expect_detach_waits(std::unique_ptr<Caller> &node, const Port &port,
			 std::atomic<bool> &detached, std::atomic<bool> &leave)
{
	std::thread detacher([&] {
		node.reset();
		detached = true;
	});
	// detach() disables the port before it waits.
	while (port.enabled())
		std::this_thread::yield();
	for (unsigned i = 0; i < 100; i++)
		std::this_thread::yield();
	EXPECT_FALSE(detached);
	leave = true;
	detacher.join();
}

struct TwoPorts : ::testing::Test {
	Fabric fabric;
	Port &a = fabric.add_port("a"), &b = fabric.add_port("b");
	Link &link = fabric.connect(a, b);

	void send()
	{
		Packet packet = ud_packet(1, 2, 8);
		a.send(packet);
	}
};

TEST_F(TwoPorts, DetachWaitsForTheCallInProgress)
{
	a.enable();
	std::atomic<bool> entered = false, leave = false, detached = false;
	auto node = std::make_unique<Caller>(b, [&] {
		entered = true;
		while (!leave)
			std::this_thread::yield();
		EXPECT_FALSE(detached);
	});
	std::thread sender([&] { send(); });
	while (!entered)
		std::this_thread::yield();
	EXPECT_TRUE(SinkCalls::in_progress(b));
	expect_detach_waits(node, b, detached, leave);
	sender.join();
	EXPECT_FALSE(SinkCalls::in_progress(b));
}

TEST_F(TwoPorts, NodeCanBeDestroyedWhileThreadsSendToIt)
{
	a.enable();
	std::atomic<bool> stop = false;
	std::atomic<unsigned> received = 0;
	std::vector<std::thread> senders;
	for (unsigned i = 0; i < 3; i++)
		senders.emplace_back([&] {
			while (!stop)
				send();
		});
	for (unsigned i = 0; i < 100; i++) {
		const unsigned before = received;
		const Caller node(b, [&] { received++; });
		while (received == before)
			std::this_thread::yield();
	}
	stop = true;
	for (std::thread &sender : senders)
		sender.join();
}

// Records of calls need a barrier of detach(). Without permission for the barrier, the process is
// aborted when it issues one.
TEST_F(TwoPorts, DetachIssuesABarrierForAllThreads)
{
	if (!ProcessBarrier::available())
		GTEST_SKIP() << "The kernel does not permit membarrier() here.";
	const auto detach_without_permission = [&] {
		const Caller node(b, [] {});
		if (weft::testing::refuse_membarrier())
			b.detach();
	};
	EXPECT_DEATH(detach_without_permission(), "membarrier");
}

// Such calls are counted in the port.
TEST_F(TwoPorts, DetachWaitsForACallNestedTooDeeplyToBeRecorded)
{
	Port &c = fabric.add_port("c"), &d = fabric.add_port("d");
	fabric.connect(c, d);
	a.enable();
	c.enable();
	unsigned depth = 0;
	std::atomic<bool> entered = false, leave = false, detached = false;
	auto innermost = std::make_unique<Caller>(d, [&] {
		entered = true;
		while (!leave)
			std::this_thread::yield();
		EXPECT_FALSE(detached);
	});
	const Caller nested(b, [&] {
		if (++depth < SinkCalls::kMostNested)
			return send();
		Packet packet = ud_packet(1, 2, 8);
		EXPECT_EQ(Sent::done, c.send(packet));
	});
	std::thread sender([&] { send(); });
	while (!entered)
		std::this_thread::yield();
	EXPECT_TRUE(SinkCalls::in_progress(b));
	EXPECT_FALSE(SinkCalls::in_progress(d)) << "it could be recorded";
	expect_detach_waits(innermost, d, detached, leave);
	sender.join();
	EXPECT_FALSE(SinkCalls::in_progress(b));
}

} // namespace
} // namespace weft::fabric
