// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connections between two stacks, over a link with every fault, in virtual time.
#include <chrono>
#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/tcp/testing/host.hpp"

namespace weft::tcp
{
namespace
{

using namespace std::chrono_literals;
using testing::Client;
using testing::Host;

Bytes some_bytes(std::size_t size, std::uint32_t seed)
{
	Bytes bytes(size);
	for (auto &byte : bytes)
		byte = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
	return bytes;
}

class Tcp : public ::testing::Test
{
public:
	Tcp()
	{
		for (Host *host : {&a, &b})
			host->stack.add_address(host->address, testing::kMask);
	}
	void set(const fabric::Faults &faults, bool up = true) { link.set({up, faults}); }
	void listen()
	{
		b.stack.listen({0, 80}, [this](const ConnectionPtr &connection) {
			server.connection = connection;
			connection->set_user(&server);
		});
	}
	void connect()
	{
		client.connection = a.stack.connect({b.address, 80}, client);
		ASSERT_NE(client.connection, nullptr);
	}
	bool until(const std::function<bool()> &done, Clock::duration time = 10min)
	{
		return loop.run_until(done, time);
	}
	void pass(Clock::duration time)
	{
		bool over = false;
		Timer timer(loop, [&] { over = true; });
		timer.arm(time);
		ASSERT_TRUE(until([&] { return over; }, time + 1s));
	}
	void establish()
	{
		listen();
		connect();
		ASSERT_TRUE(
			until([&] { return client.connections == 1 && server.connections == 1; }));
	}
	// Both sides send, close, and are notified of the end.
	void exchange(std::size_t size)
	{
		establish();
		client.output = some_bytes(size, 1);
		server.output = some_bytes(size, 2);
		client.closes_when_sent = true;
		server.closes_back = false;
		server.closes_when_sent = true;
		client.send();
		server.send();
		ASSERT_TRUE(until([&] { return client.end && server.end; }));
		EXPECT_EQ(client.end, End::closed);
		EXPECT_EQ(server.end, End::closed);
		EXPECT_TRUE(server.input == client.output) << server.input.size();
		EXPECT_TRUE(client.input == server.output) << client.input.size();
		// One of the two connections stays in TIME_WAIT and has no user any more.
		EXPECT_LE(a.stack.connections() + b.stack.connections(), 2u);
		ASSERT_TRUE(until(
			[&] { return a.stack.connections() + b.stack.connections() == 0; }, 11s));
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	Client client, server; // declared before the stacks, which may notify them of an end
	Host a{loop, 1}, b{loop, 2};
	ethernet::Link link{loop, a.port, b.port, {}, 1};
};

TEST_F(Tcp, DataArrivesInBothDirections)
{
	exchange(1 << 20);
}

// A connection to the host's own address works like any other, without the cable.
TEST_F(Tcp, HostConnectsToItsOwnAddress)
{
	b.stack.listen({0, 80}, [this](const ConnectionPtr &connection) {
		server.connection = connection;
		connection->set_user(&server);
	});
	client.connection = b.stack.connect({b.address, 80}, client);
	ASSERT_NE(client.connection, nullptr);
	client.output = some_bytes(1 << 20, 1);
	client.closes_when_sent = true;
	ASSERT_TRUE(until([&] { return client.connections == 1; }));
	const auto before = b.port.counters.xmit_frames;
	client.send();
	ASSERT_TRUE(until([&] { return client.end && server.end; }));
	EXPECT_TRUE(server.input == client.output) << server.input.size();
	EXPECT_EQ(b.port.counters.xmit_frames, before);
}

// Nothing is retransmitted without loss: on a quiet link every segment is sent once.
TEST_F(Tcp, NothingIsRetransmittedWithoutLoss)
{
	fabric::Faults faults;
	faults.delay = 5ms;
	set(faults);
	exchange(146000);
	EXPECT_LT(a.port.counters.xmit_bytes, 146000u + 300 * 66);
	EXPECT_LT(b.port.counters.xmit_bytes, 146000u + 300 * 66);
}

TEST_F(Tcp, DataArrivesIntactDespiteLoss)
{
	fabric::Faults faults;
	faults.loss = 0.05;
	faults.delay = 1ms;
	set(faults);
	exchange(300000);
}

TEST_F(Tcp, DataArrivesIntactDespiteReordering)
{
	fabric::Faults faults;
	faults.reordering = 0.2;
	faults.delay = 1ms;
	set(faults);
	exchange(300000);
}

TEST_F(Tcp, DataArrivesIntactDespiteDuplicationAndCorruption)
{
	fabric::Faults faults;
	faults.duplication = 0.2;
	faults.corruption = 0.02;
	faults.silent_corruption = 0.02; // detected by the checksums of IPv4 and TCP
	faults.delay = 1ms;
	set(faults);
	exchange(300000);
}

TEST_F(Tcp, DataArrivesIntactDespiteAllLinkFaultsCombined)
{
	fabric::Faults faults;
	faults.loss = faults.duplication = faults.reordering = 0.05;
	faults.delay = 1ms;
	faults.jitter = 3ms;
	set(faults);
	exchange(300000);
}

// A lost part of a window is retransmitted soon.
TEST_F(Tcp, BurstLossIsRepairedWithin600Milliseconds)
{
	establish();
	fabric::Faults faults;
	faults.delay = 1ms;
	set(faults);
	client.output = some_bytes(400000, 3);
	client.send();
	pass(5ms);
	const auto begun = loop.now();
	fabric::Faults lossy = faults;
	lossy.loss = 1;
	set(lossy);
	pass(1ms);
	set(faults);
	ASSERT_TRUE(until([&] { return server.input.size() == client.output.size(); }));
	EXPECT_TRUE(server.input == client.output);
	EXPECT_LT(loop.now() - begun, 600ms);
}

// The link is down for a while, and then permanently.
TEST_F(Tcp, ConnectionContinuesAfterAShortOutageAndTimesOutAfterALongOutage)
{
	establish();
	set({}, false);
	client.output = some_bytes(10000, 4);
	client.send();
	pass(5s);
	set({}, true);
	ASSERT_TRUE(until([&] { return server.input.size() == 10000; }));
	set({}, false);
	client.output = some_bytes(20000, 4);
	client.send();
	const auto begun = loop.now();
	ASSERT_TRUE(until([&] { return client.end.has_value(); }, 20min));
	EXPECT_EQ(client.end, End::timed_out);
	EXPECT_GT(loop.now() - begun, 100s);
}

// The link goes up and down with a period related to the retransmission timeout. Retransmissions
// must not always meet the same phase.
TEST_F(Tcp, TransferCompletesOverALinkThatFlapsPeriodically)
{
	establish();
	fabric::Faults faults;
	faults.delay = 1ms;
	set(faults);
	Timer flap(loop, [&] {
		set(faults, !link.settings().up);
		flap.arm(50ms);
	});
	flap.arm(3ms);
	for (unsigned i = 1; i <= 10; ++i) {
		client.output = some_bytes(i * 300000, 3);
		client.send();
		ASSERT_TRUE(
			until([&] { return server.input.size() == client.output.size(); }, 30min))
			<< i;
	}
	EXPECT_FALSE(client.end);
}

TEST_F(Tcp, SingleSegmentIsAcknowledgedAfterTheDelayedAckTimeout)
{
	establish();
	client.output = {1};
	client.send();
	const auto frames = a.frames;
	pass(Connection::kDelayedAck + 1ms);
	EXPECT_EQ(a.frames, frames + 1);
	EXPECT_EQ(server.input.size(), 1u);
	pass(1s);
	EXPECT_EQ(a.frames, frames + 1);
}

// Each piece that was written is sent as one segment, as RFC 5044 requires for FPDUs.
TEST_F(Tcp, EachWriteIsSentAsOneSegment)
{
	establish();
	client.output = some_bytes(700 * 20, 5);
	client.piece = 700;
	const auto frames = b.frames;
	client.send();
	ASSERT_TRUE(until([&] { return server.input.size() == client.output.size(); }));
	EXPECT_EQ(b.frames - frames, 20u);
}

TEST_F(Tcp, SizeOfTheSendBufferIsLimited)
{
	establish();
	set({}, false);
	const Bytes piece(1000, 7);
	std::size_t taken = 0;
	while (client.connection->write(piece))
		taken += piece.size();
	EXPECT_EQ(taken, Connection::kMostQueued / 1000 * 1000);
	EXPECT_LT(client.connection->room(), 1000u);
}

TEST_F(Tcp, HalfClosedConnectionStillReceives)
{
	establish();
	server.closes_back = false;
	client.connection->close();
	ASSERT_TRUE(until([&] { return server.closed_by_peer; }));
	EXPECT_FALSE(client.connection->write(Bytes{1}));
	server.output = some_bytes(50000, 6);
	server.closes_when_sent = true;
	server.send();
	ASSERT_TRUE(until([&] { return client.end && server.end; }));
	EXPECT_EQ(client.input.size(), 50000u);
	EXPECT_EQ(client.end, End::closed);
}

TEST_F(Tcp, SimultaneousCloseClosesBothSides)
{
	establish();
	fabric::Faults faults;
	faults.delay = 5ms;
	set(faults);
	client.connection->close();
	server.connection->close();
	// The connections stay in TIME_WAIT, but their users do not wait for that.
	ASSERT_TRUE(until([&] { return client.end && server.end; }, 1s));
	EXPECT_EQ(client.end, End::closed);
	EXPECT_EQ(server.end, End::closed);
	EXPECT_EQ(a.stack.connections() + b.stack.connections(), 2u);
}

TEST_F(Tcp, AbortSendsReset)
{
	establish();
	client.connection->abort();
	EXPECT_EQ(client.end, End::aborted);
	ASSERT_TRUE(until([&] { return server.end.has_value(); }));
	EXPECT_EQ(server.end, End::reset);
}

TEST_F(Tcp, ConnectToAClosedPortIsReset)
{
	connect();
	ASSERT_TRUE(until([&] { return client.end.has_value(); }));
	EXPECT_EQ(client.end, End::reset);
}

TEST_F(Tcp, ConnectingToAnUnusedAddressFailsAsUnreachable)
{
	client.connection = a.stack.connect({testing::kNetwork | 9, 80}, client);
	ASSERT_TRUE(until([&] { return client.end.has_value(); }, 1min));
	EXPECT_EQ(client.end, End::unreachable);
	EXPECT_EQ(a.stack.connect({0x0b000001, 80}, client), nullptr);
}

TEST_F(Tcp, RemovingAnAddressClosesItsConnections)
{
	establish();
	a.stack.remove_address(a.address);
	EXPECT_EQ(client.end, End::unreachable);
	EXPECT_EQ(a.stack.connect({b.address, 80}, client), nullptr);
	server.output = {1};
	server.send();
	// From now on, no host answers ARP requests for the address.
	ASSERT_TRUE(until([&] { return server.end.has_value(); }, 20min));
	EXPECT_EQ(server.end, End::timed_out);
}

TEST_F(Tcp, SecondListenerOnAPortIsRefused)
{
	listen();
	EXPECT_FALSE(b.stack.listen({0, 80}, [](const ConnectionPtr &) {}));
	EXPECT_TRUE(b.stack.listen({b.address, 80}, [](const ConnectionPtr &) {}));
	b.stack.stop_listening({b.address, 80});
	b.stack.stop_listening({0, 80});
	connect();
	ASSERT_TRUE(until([&] { return client.end.has_value(); }));
	EXPECT_EQ(client.end, End::reset);
}

} // namespace
} // namespace weft::tcp
