// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connections with a malicious or unusual peer, which for example uses other MPA revisions,
// or sends more private data than the card accepts.
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cards/amso1100/testing/two_cards.hpp"
#include "net/iwarp/testing/party.hpp"
#include "net/iwarp_tcp/carrier.hpp"
#include "net/tcp/testing/host.hpp"

namespace weft::amso1100
{
namespace
{

namespace wire = hw::amso1100;
using namespace std::chrono_literals;
using iwarp::Bytes;
using iwarp::testing::pattern;
using testing::Driver;
using testing::kPort;
using wire::EventId;
using wire::MessageId;
using wire::QpState;
using wire::Status;

constexpr std::uint32_t kCard = 0x0a000001;
constexpr iwarp::Stag kStag = 0x200;
constexpr std::uint32_t kSize = 100000;

class MaliciousPeer final : public iwarp::testing::Memory
{
public:
	void post(iwarp::Request asked) override { carrier->post(std::move(asked)); }
	void accept(const Bytes &private_data) override { carrier->accept(private_data, 16, 16); }

	std::optional<iwarp::Carrier> carrier;
	bool over = false;
};

class Amso1100MaliciousPeer : public ::testing::Test
{
public:
	Amso1100MaliciousPeer()
	{
		card.bring_up(kCard);
		cq = card.create_cq();
		qp = card.create_qp(cq, cq);
		memory = card.allocate(1 << 20);
		stag = card.register_memory(memory, 1 << 20);
		host.stack.add_address(host.address, Driver::kMask);
		peer.regions[kStag] = {pattern(kSize, 7), 0};
		peer.regions[1] = {Bytes(kSize), 0};
	}
	void make(const iwarp::StartFrame &start)
	{
		iwarp::StreamConfig config;
		config.start = start;
		peer.carrier.emplace(loop, config, peer, [this] { peer.over = true; });
	}
	// Connects the peer to the card, which accepts.
	void call(const iwarp::StartFrame &start)
	{
		make(start);
		card.listen(kPort);
		ASSERT_TRUE(peer.carrier->connect(host.stack, {kCard, kPort}));
		const auto request = card.wait_event();
		ASSERT_EQ(Driver::id_of(request), EventId::connection_request);
		ASSERT_EQ(
			card.accept(qp, Driver::field(request, wire::connection_request::endpoint)),
			Status::ok);
		ASSERT_TRUE(loop.run_until([&] { return peer.reply.has_value(); }));
	}
	// The card connects to the peer; returns the result that it reports.
	Status call_out(const iwarp::StartFrame &start)
	{
		make(start);
		host.stack.listen({0, kPort}, [this](const tcp::ConnectionPtr &connection) {
			peer.carrier->adopt(connection);
		});
		card.connect(qp, host.address, kPort);
		return Driver::result(card.wait_event());
	}
	// Both sides execute Writes, Reads and Sends, and the data is compared.
	void exchange()
	{
		peer.receives = {kSize};
		card.receive(qp, 1, {{stag, kSize, memory}});
		const Bytes sent = pattern(5000, 3);
		peer.write(pattern(kSize, 4), stag, memory + 200000);
		peer.read({.sink = 1,
			   .sink_offset = 0,
			   .length = kSize,
			   .source = stag,
			   .source_offset = memory + 200000});
		peer.send(sent);
		const auto got = card.wait(cq);
		EXPECT_EQ(got.result, Status::ok);
		EXPECT_EQ(got.bytes, sent.size());
		ASSERT_TRUE(loop.run_until([&] { return peer.done.size() == 3; }, 1min));
		const auto is = [&](std::uint64_t at, const Bytes &bytes) {
			return std::ranges::equal(card.host.memory(at, bytes.size()),
						  std::as_bytes(std::span(bytes)));
		};
		EXPECT_TRUE(is(memory, sent));
		EXPECT_TRUE(is(memory + 200000, pattern(kSize, 4)));
		EXPECT_TRUE(peer.regions[1].bytes == pattern(kSize, 4));
		card.read(qp, 2, {stag, kSize, memory + 400000}, kStag, 0);
		card.write(qp, 3, {{stag, kSize, memory + 400000}}, 1, 0);
		card.send(qp, 4, {{stag, 5000, memory}});
		for (const std::uint64_t context : {2, 3, 4}) {
			const auto done = card.wait(cq);
			EXPECT_EQ(done.context, context);
			EXPECT_EQ(done.result, Status::ok);
		}
		ASSERT_TRUE(loop.run_until([&] { return peer.messages.size() == 1; }, 1min));
		EXPECT_TRUE(is(memory + 400000, pattern(kSize, 7)));
		EXPECT_TRUE(peer.messages[0].bytes == sent);
	}

	VirtualEnvironment environment;
	Reactor reactor{"test", Reactor::Drive::manual, environment};
	Loop loop{"cable", reactor};
	testing::Plug plug{loop, "card"};
	tcp::testing::Host host{loop, 2};
	ethernet::Link link{loop, plug.port, host.port, {}, 1};
	Driver card{reactor, 1, plug.channel};
	Driver::Cq cq{};
	Driver::Qp qp{};
	std::uint64_t memory = 0;
	std::uint32_t stag = 0;
	MaliciousPeer peer; // declared last, because it has connections of the host
};

// Silent peers do not count towards the host's backlog, and do not use up the card's connections,
// however many there are.
TEST_F(Amso1100MaliciousPeer, PeersThatSendNoMpaRequestDoNotExhaustTheListenBacklog)
{
	// The objects of the host must outlive the connections.
	const auto leave = [](tcp::testing::Client *client) {
		if (client->connection)
			client->connection->set_user(nullptr);
		delete client;
	};
	std::vector<std::unique_ptr<tcp::testing::Client, decltype(leave)>> silent;
	const auto call_silently = [&](unsigned times) {
		for (unsigned i = 0; i < times; ++i) {
			silent.emplace_back(new tcp::testing::Client);
			tcp::testing::Client &client = *silent.back();
			client.connection = host.stack.connect({kCard, kPort}, client);
			ASSERT_TRUE(loop.run_until([&] { return client.connections == 1; }));
		}
	};
	card.listen(kPort, 2);
	call_silently(300);
	make({});
	ASSERT_TRUE(peer.carrier->connect(host.stack, {kCard, kPort}));
	EXPECT_EQ(Driver::id_of(card.wait_event()), EventId::connection_request);
	// The oldest silent connections have been evicted.
	EXPECT_TRUE(silent.front()->end);
	EXPECT_FALSE(silent.back()->end);
}

class Amso1100Revision : public Amso1100MaliciousPeer, public ::testing::WithParamInterface<int>
{
};

// Peers of each revision get answers, with and without markers, with and without CRC.
TEST_P(Amso1100Revision, ReplyHasTheMpaRevisionOfTheRequest)
{
	const auto revision = static_cast<std::uint8_t>(GetParam());
	iwarp::StartFrame start{.markers = revision == 1, .crc = revision != 1};
	start.revision = revision;
	if (revision == 2)
		start.enhanced = iwarp::Enhanced{.ird = 4, .ord = 4};
	call(start);
	EXPECT_EQ(peer.reply->revision, revision);
	EXPECT_TRUE(peer.reply->crc);
	EXPECT_FALSE(peer.reply->markers);
	exchange();
	peer.carrier->close();
	EXPECT_EQ(Driver::id_of(card.wait_event()), EventId::close_complete);
	ASSERT_TRUE(loop.run_until([&] { return peer.over; }, 1min));
}

INSTANTIATE_TEST_SUITE_P(All, Amso1100Revision, ::testing::Values(0, 1, 2));

TEST_F(Amso1100MaliciousPeer, MpaReplyWithALowerRevisionThanTheRequestIsAccepted)
{
	EXPECT_EQ(call_out({.markers = true, .crc = false}), Status::ok);
	EXPECT_EQ(peer.request->revision, 2);
	EXPECT_TRUE(peer.request->enhanced->peer_to_peer);
	EXPECT_EQ(peer.request->enhanced->ord, 16);
	exchange();
}

// Private data that does not fit into an event is refused. Only its sender is notified.
TEST_F(Amso1100MaliciousPeer, RequestWithTooMuchPrivateDataIsRejected)
{
	iwarp::StartFrame start;
	start.private_data = Bytes(wire::most_private_data + 1);
	make(start);
	card.listen(kPort);
	ASSERT_TRUE(peer.carrier->connect(host.stack, {kCard, kPort}));
	ASSERT_TRUE(loop.run_until([&] { return peer.over; }, 1min));
	EXPECT_TRUE(peer.refusal);
	EXPECT_EQ(peer.end, iwarp::End{iwarp::End::Kind::refused});
	EXPECT_FALSE(card.next_event());
}

TEST_F(Amso1100MaliciousPeer, ReplyWithTooMuchPrivateDataResetsTheConnection)
{
	peer.answer = Bytes(wire::most_private_data + 1);
	EXPECT_EQ(call_out({}), Status::connection_reset);
	ASSERT_TRUE(loop.run_until([&] { return peer.over; }, 1min));
	EXPECT_EQ(peer.carrier->tcp_end(), tcp::End::reset);
}

// A peer that does not speak MPA is reset, and the host gets no event.
TEST_F(Amso1100MaliciousPeer, InvalidMpaRequestResetsTheConnection)
{
	card.listen(kPort);
	tcp::testing::Client client;
	client.output = Bytes(100, 'x');
	client.connection = host.stack.connect({kCard, kPort}, client);
	ASSERT_TRUE(loop.run_until([&] { return client.connections == 1; }));
	client.send();
	ASSERT_TRUE(loop.run_until([&] { return client.end.has_value(); }, 1min));
	EXPECT_FALSE(card.next_event());
}

// Each side limits its outstanding Reads to what the peer can answer. Other Reads wait.
TEST_F(Amso1100MaliciousPeer, NumberOfOutstandingReadRequestsIsLimitedToTheNegotiatedOrd)
{
	iwarp::StartFrame start;
	start.revision = 2;
	start.enhanced = iwarp::Enhanced{.ird = 4, .ord = 200};
	call(start);
	EXPECT_EQ(peer.reply->enhanced->ird, 16);
	EXPECT_EQ(peer.reply->enhanced->ord, 4);
	const Bytes there = pattern(kSize, 7);
	peer.write({1}, stag, memory);
	for (std::uint64_t i = 0; i < 12; ++i)
		card.read(qp, i, {stag, 1000, memory + 1000 * i}, kStag, 1000 * i);
	for (std::uint64_t i = 0; i < 12; ++i)
		EXPECT_EQ(card.wait(cq).context, i);
	EXPECT_TRUE(std::ranges::equal(card.host.memory(memory, 12000),
				       std::as_bytes(std::span(there).first(12000))));
}

} // namespace
} // namespace weft::amso1100
