// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests RDMAP streams between two hosts, over a link with every fault, in virtual time.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/iwarp/testing/party.hpp"
#include "net/iwarp_tcp/carrier.hpp"
#include "net/tcp/testing/host.hpp"

namespace weft::iwarp
{
namespace
{

using namespace std::chrono_literals;
using TcpHost = tcp::testing::Host;
using testing::Memory;
using testing::pattern;

constexpr Stag kRemote = 0x200, kLocal = 0x100;
constexpr std::uint16_t kPort = 7174;
constexpr std::size_t kMuch = 300000;

// The owner of a carrier, which may not exist yet.
class Peer final : public Memory
{
public:
	void post(Request asked) override { carrier->post(std::move(asked)); }
	void accept(const Bytes &private_data) override { carrier->accept(private_data, 16, 16); }

	std::optional<Carrier> carrier;
	bool over = false;
};

class IwarpTcp : public ::testing::Test
{
public:
	IwarpTcp()
	{
		for (TcpHost *host : {&a, &b})
			host->stack.add_address(host->address, tcp::testing::kMask);
		server.regions[kRemote] = {pattern(kMuch, 7), 0x10000};
		client.regions[kLocal] = {Bytes(kMuch), 0x20000};
		make(client, {.start = {.private_data = {'h', 'i'}}});
		make(server, {});
	}
	void make(Peer &peer, const StreamConfig &config)
	{
		peer.carrier.emplace(loop, config, peer, [&peer] { peer.over = true; });
	}
	void set(const fabric::Faults &faults, bool up = true) { link.set({up, faults}); }
	void listen()
	{
		b.stack.listen({0, kPort}, [this](const tcp::ConnectionPtr &connection) {
			server.carrier->adopt(connection);
		});
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
		ASSERT_TRUE(client.carrier->connect(a.stack, {b.address, kPort}));
		ASSERT_TRUE(until([&] { return client.reply.has_value(); }));
	}
	// Executes all operations, compares the data, and closes in an orderly way.
	void exchange()
	{
		establish();
		server.receives = {kMuch, 100};
		client.receives = {100};
		const Bytes written = pattern(kMuch, 3), sent = pattern(100000, 4);
		client.write(written, kRemote, 0x10000);
		client.read({.sink = kLocal,
			     .sink_offset = 0x20000,
			     .length = kMuch,
			     .source = kRemote,
			     .source_offset = 0x10000});
		client.send(sent);
		client.send({'e', 'n', 'd'}, Opcode::send_solicited);
		ASSERT_TRUE(until(
			[&] { return client.done.size() == 4 && server.messages.size() == 2; }));
		server.send({'b', 'y', 'e'});
		ASSERT_TRUE(until([&] { return client.messages.size() == 1; }));
		EXPECT_TRUE(server.regions[kRemote].bytes == written);
		EXPECT_TRUE(client.regions[kLocal].bytes == written);
		EXPECT_TRUE(server.messages[0].bytes == sent);
		EXPECT_TRUE(server.messages[1].solicited);
		EXPECT_EQ(client.messages[0].bytes, (Bytes{'b', 'y', 'e'}));
		client.carrier->close();
		ASSERT_TRUE(until([&] { return client.over && server.over; }));
		EXPECT_EQ(client.end, End{End::Kind::closed});
		EXPECT_EQ(server.end, End{End::Kind::closed});
		// One of the two connections stays in TIME_WAIT for a while.
		EXPECT_TRUE(
			until([&] { return a.stack.connections() + b.stack.connections() == 0; }));
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	TcpHost a{loop, 1}, b{loop, 2};
	ethernet::Link link{loop, a.port, b.port, {}, 1};
	Peer client, server; // declared last, because they have connections of the stacks
};

TEST_F(IwarpTcp, MessagesArriveInBothDirections)
{
	exchange();
	EXPECT_EQ(server.request->private_data, (Bytes{'h', 'i'}));
	EXPECT_TRUE(server.request->crc);
}

TEST_F(IwarpTcp, MessagesArriveIntactDespitePacketLoss)
{
	fabric::Faults faults;
	faults.loss = 0.05;
	faults.delay = 1ms;
	set(faults);
	exchange();
}

TEST_F(IwarpTcp, MessagesArriveIntactDespiteReorderingDuplicationAndCorruption)
{
	fabric::Faults faults;
	faults.reordering = 0.2;
	faults.duplication = 0.1;
	faults.corruption = 0.02;
	faults.delay = 1ms;
	set(faults);
	exchange();
}

// RFC 5044 section 5: each FPDU has its own segment. No segment of a long Write contains parts of
// two FPDUs.
TEST_F(IwarpTcp, EachFpduIsSentInItsOwnSegment)
{
	establish();
	const std::size_t before = b.frames;
	client.write(pattern(1440 * 50, 3), kRemote, 0x10000);
	ASSERT_TRUE(until([&] { return client.done.size() == 1; }));
	pass(1s);
	EXPECT_EQ(b.frames - before, 50u);
}

// More data is posted than TCP's buffer holds. The rest waits, and all of it arrives.
TEST_F(IwarpTcp, MessagesWaitForSendBufferSpace)
{
	establish();
	for (unsigned i = 0; i < 4; ++i)
		client.write(pattern(kMuch, i), kRemote, 0x10000);
	EXPECT_TRUE(until([&] { return client.done.size() == 4; }));
	server.receives = {10};
	client.send({'x'});
	ASSERT_TRUE(until([&] { return server.messages.size() == 1; }));
	EXPECT_TRUE(server.regions[kRemote].bytes == pattern(kMuch, 3));
}

// The error is reported by a Terminate message, which arrives before the end of the connection.
TEST_F(IwarpTcp, TerminateReportsTheErrorToThePeer)
{
	establish();
	client.write({1}, kRemote + 1, 0);
	ASSERT_TRUE(until([&] { return client.over && server.over; }));
	EXPECT_EQ(server.end, (End{End::Kind::failed, errors::kTaggedInvalidStag}));
	EXPECT_EQ(client.end, (End{End::Kind::terminated, errors::kTaggedInvalidStag}));
}

TEST_F(IwarpTcp, MpaRejectIsReportedWithItsPrivateData)
{
	listen();
	server.accepts = false;
	ASSERT_TRUE(client.carrier->connect(a.stack, {b.address, kPort}));
	ASSERT_TRUE(until([&] { return server.request.has_value(); }));
	server.carrier->reject({'n', 'o'});
	ASSERT_TRUE(until([&] { return client.over && server.over; }));
	EXPECT_EQ(client.refusal->private_data, (Bytes{'n', 'o'}));
	EXPECT_EQ(client.end, End{End::Kind::refused});
}

// The errors without a listener, without a host, and for an unreachable address are different.
TEST_F(IwarpTcp, ConnectReportsTheCauseOfFailure)
{
	ASSERT_TRUE(client.carrier->connect(a.stack, {b.address, kPort}));
	ASSERT_TRUE(until([&] { return client.over; }));
	EXPECT_TRUE(client.end);
	EXPECT_EQ(client.carrier->tcp_end(), tcp::End::reset);
	EXPECT_FALSE(client.carrier->started());

	Peer lost;
	make(lost, {});
	ASSERT_TRUE(lost.carrier->connect(a.stack, {tcp::testing::kNetwork | 9, kPort}));
	ASSERT_TRUE(until([&] { return lost.over; }));
	EXPECT_EQ(lost.carrier->tcp_end(), tcp::End::unreachable);

	set({}, false);
	Peer silent;
	make(silent, {});
	const auto start = loop.now();
	ASSERT_TRUE(silent.carrier->connect(a.stack, {b.address, kPort}));
	ASSERT_TRUE(until([&] { return silent.over; }));
	EXPECT_EQ(silent.carrier->tcp_end(), tcp::End::timed_out);
	EXPECT_EQ(loop.now() - start, Carrier::kConnecting);

	Peer nowhere;
	make(nowhere, {});
	EXPECT_FALSE(nowhere.carrier->connect(a.stack, {0x0b000001, kPort}));
}

// A peer that connects and sends nothing is dropped after a timeout, on either side.
TEST_F(IwarpTcp, ConnectionWithoutMpaRequestTimesOut)
{
	listen();
	tcp::testing::Client mute;
	mute.connection = a.stack.connect({b.address, kPort}, mute);
	const auto start = loop.now();
	ASSERT_TRUE(until([&] { return server.over; }));
	EXPECT_GE(loop.now() - start, Carrier::kStarting);
	EXPECT_LT(loop.now() - start, Carrier::kStarting + 1s);
	EXPECT_TRUE(server.end);
	EXPECT_EQ(server.carrier->tcp_end(), tcp::End::timed_out);

	b.stack.listen({0, kPort + 1},
		       [&](const tcp::ConnectionPtr &connection) { connection->set_user(&mute); });
	ASSERT_TRUE(client.carrier->connect(a.stack, {b.address, kPort + 1}));
	ASSERT_TRUE(until([&] { return client.over; }));
	EXPECT_EQ(client.carrier->tcp_end(), tcp::End::timed_out);
}

// If the other side does not close, the connection is reset after a timeout. The same applies if
// the peer does not read the last data.
TEST_F(IwarpTcp, UnansweredCloseResetsTheConnection)
{
	establish();
	client.carrier->close();
	set({}, false);
	const auto start = loop.now();
	ASSERT_TRUE(until([&] { return client.over; }));
	EXPECT_EQ(loop.now() - start, Carrier::kClosing);
	EXPECT_EQ(client.end, (End{End::Kind::lost, errors::kConnectionLost}));
	EXPECT_EQ(client.carrier->tcp_end(), tcp::End::aborted);
}

// Requests that were posted before the close are completed, in both directions.
TEST_F(IwarpTcp, CloseWaitsUntilPostedRequestsAreComplete)
{
	establish();
	server.receives = {10};
	client.write(pattern(kMuch, 3), kRemote, 0x10000);
	client.read({.sink = kLocal,
		     .sink_offset = 0x20000,
		     .length = kMuch,
		     .source = kRemote,
		     .source_offset = 0x10000});
	client.send({'x'});
	client.carrier->close();
	ASSERT_TRUE(until([&] { return client.over && server.over; }));
	EXPECT_EQ(client.done.size(), 3u);
	EXPECT_TRUE(client.regions[kLocal].bytes == pattern(kMuch, 3));
	EXPECT_EQ(server.messages.size(), 1u);
	EXPECT_EQ(client.end, End{End::Kind::closed});
}

TEST_F(IwarpTcp, AbortIsReportedToThePeerAsConnectionLost)
{
	establish();
	client.carrier->abort();
	ASSERT_TRUE(until([&] { return client.over && server.over; }));
	EXPECT_EQ(server.end, (End{End::Kind::lost, errors::kConnectionLost}));
	EXPECT_EQ(server.carrier->tcp_end(), tcp::End::reset);
}

// A carrier without an owner stores no data and reports nothing.
TEST_F(IwarpTcp, DataForAStreamWhoseQpHasDetachedIsNotWrittenToMemory)
{
	establish();
	const Bytes before = server.regions[kRemote].bytes;
	server.carrier->set_owner(nullptr);
	client.write(pattern(100, 9), kRemote, 0x10000);
	ASSERT_TRUE(until([&] { return client.over && server.over; }));
	EXPECT_FALSE(server.end);
	EXPECT_TRUE(server.regions[kRemote].bytes == before);
	EXPECT_EQ(client.end->kind, End::Kind::terminated);
}

// The carrier is destroyed while its connection is open, as when a card is removed.
TEST_F(IwarpTcp, DestroyingAnIwarpStreamResetsItsTcpConnection)
{
	establish();
	client.carrier.reset();
	ASSERT_TRUE(until([&] { return server.over; }));
	EXPECT_EQ(server.carrier->tcp_end(), tcp::End::reset);
}

} // namespace
} // namespace weft::iwarp
