// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests connections between two cards, each with a minimal driver: data transfer, errors, and
// closing.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cards/amso1100/message_queues.hpp"
#include "cards/amso1100/testing/two_cards.hpp"
#include "net/ethernet/capture.hpp"
#include "net/iwarp/testing/tshark.hpp"

namespace weft::amso1100
{
namespace
{

namespace wire = hw::amso1100;
using namespace std::chrono_literals;
using testing::Driver;
using testing::kAddressA;
using testing::kAddressB;
using testing::kPort;
using testing::TwoCards;
using wire::EventId;
using wire::MessageId;
using wire::QpState;
using wire::Status;
using wire::WorkId;

constexpr std::uint32_t kSize = 150000;

std::vector<std::byte> text(std::size_t size, unsigned seed = 1)
{
	std::vector<std::byte> bytes(size);
	std::uint32_t state = seed * 2654435761u + 1;
	for (std::byte &byte : bytes) {
		state = state * 1664525 + 1013904223;
		byte = static_cast<std::byte>(state >> 24);
	}
	return bytes;
}

// A driver with a queue pair and a registered memory region.
struct Side {
	explicit Side(Driver &which)
	    : driver(which), sq_cq(which.create_cq()), rq_cq(which.create_cq()),
	      qp(which.create_qp(sq_cq, rq_cq)), memory(which.allocate(4 << 20)),
	      stag(which.register_memory(memory, 4 << 20))
	{
	}
	std::span<std::byte> bytes(std::uint64_t offset, std::size_t size)
	{
		return driver.host.memory(memory + offset, size);
	}
	Driver::Piece piece(std::uint64_t offset, std::uint32_t size) const
	{
		return {stag, size, memory + offset};
	}

	Driver &driver;
	Driver::Cq sq_cq, rq_cq;
	Driver::Qp qp;
	std::uint64_t memory;
	std::uint32_t stag;
};

class Amso1100Connections : public ::testing::Test, protected TwoCards
{
public:
	// Connects the two. The client's private data is in the request, and the server's in the
	// result.
	void establish(std::span<const std::byte> question = {},
		       std::span<const std::byte> answer = {})
	{
		listener = b.listen(kPort);
		a.connect(client.qp, kAddressB, kPort, question);
		const auto request = b.wait_event();
		ASSERT_EQ(Driver::id_of(request), EventId::connection_request);
		namespace asked = wire::connection_request;
		EXPECT_EQ(Driver::field(request, wire::event::resource), listener);
		EXPECT_EQ(Driver::field(request, asked::local_address), kAddressB);
		EXPECT_EQ(Driver::field(request, asked::remote_address), kAddressA);
		EXPECT_EQ(Driver::field(request, asked::local_port) >> 16, kPort);
		EXPECT_TRUE(std::ranges::equal(
			std::span(request).subspan(asked::private_data,
						   Driver::field(request, asked::private_length)),
			question));
		ASSERT_EQ(b.accept(server.qp, Driver::field(request, asked::endpoint), answer),
			  Status::ok);
		const auto result = a.wait_event();
		ASSERT_EQ(Driver::id_of(result), EventId::connect_result);
		namespace field_of = wire::connect_result;
		EXPECT_EQ(Driver::result(result), Status::ok);
		EXPECT_EQ(Driver::state_of(result), QpState::rts);
		EXPECT_EQ(Driver::field(result, field_of::remote_address), kAddressB);
		EXPECT_TRUE(std::ranges::equal(
			std::span(result).subspan(field_of::private_data,
						  Driver::field(result, field_of::private_length)),
			answer));
	}
	// Executes a Write, a Read and a Send, and compares the data.
	void exchange()
	{
		const auto written = text(kSize, 1), there = text(kSize, 2), sent = text(5000, 3);
		std::ranges::copy(written, client.bytes(0, kSize).begin());
		std::ranges::copy(there, server.bytes(1 << 20, kSize).begin());
		std::ranges::copy(sent, client.bytes(2 << 20, sent.size()).begin());
		b.receive(server.qp, 0x51,
			  {server.piece(2 << 20, 1000), server.piece((2 << 20) + 3000, 4500)});
		a.write(client.qp, 1, {client.piece(0, kSize)}, server.stag, server.memory);
		a.read(client.qp, 2, client.piece(1 << 20, kSize), server.stag,
		       server.memory + (1 << 20));
		a.send(client.qp, 3,
		       {client.piece(2 << 20, 1), client.piece((2 << 20) + 1, 2999),
			client.piece((2 << 20) + 3000, 1999), client.piece((2 << 20) + 4999, 1)});
		for (const std::uint64_t context : {1, 2, 3}) {
			const auto done = a.wait(client.sq_cq);
			EXPECT_EQ(done.result, Status::ok);
			EXPECT_EQ(done.context, context);
			EXPECT_EQ(done.qp_context, client.qp.context);
		}
		const auto arrived = b.wait(server.rq_cq);
		EXPECT_EQ(arrived.id, WorkId::receive);
		EXPECT_EQ(arrived.result, Status::ok);
		EXPECT_EQ(arrived.context, 0x51u);
		EXPECT_EQ(arrived.bytes, sent.size());
		EXPECT_TRUE(std::ranges::equal(server.bytes(0, kSize), written));
		EXPECT_TRUE(std::ranges::equal(client.bytes(1 << 20, kSize), there));
		EXPECT_TRUE(std::ranges::equal(server.bytes(2 << 20, 1000),
					       std::span(sent).first(1000)));
		EXPECT_TRUE(std::ranges::equal(server.bytes((2 << 20) + 3000, 4000),
					       std::span(sent).subspan(1000)));
	}
	// Registers the server's first page by an STag allocated for it and a work request.
	std::uint32_t register_by_request(std::uint32_t flags)
	{
		namespace field = wire::fast_register;
		const auto answer =
			b.ask(MessageId::stag_alloc, {{wire::rnic_handle, b.rnic},
						      {wire::stag_alloc::total_pages, 1},
						      {wire::stag_alloc::pd, Driver::kPd},
						      {wire::stag_alloc::flags, flags}});
		EXPECT_EQ(Driver::result(answer), Status::ok);
		const auto stag = load_be<std::uint32_t>(answer, wire::stag_alloc::reply_stag);
		Driver::Words words{{field::va, 0},           {field::va + 4, 0x5000},
				    {field::key, 0},          {field::stag, stag},
				    {field::page_size, 4096}, {field::first_offset, 0},
				    {field::length, 4096},    {field::pages_here, 1}};
		std::ranges::copy(Driver::address_words(field::pages, server.memory),
				  std::back_inserter(words));
		b.post(server.qp, Driver::slot_of(WorkId::fast_register, 1, wire::work::signaled,
						  words, field::pages + 8, {}));
		EXPECT_EQ(b.wait(server.sq_cq).result, Status::ok);
		return stag;
	}
	void expect_event(Driver &driver, EventId id, QpState state)
	{
		const auto event = driver.wait_event();
		EXPECT_EQ(Driver::id_of(event), id);
		EXPECT_EQ(Driver::state_of(event), state);
	}
	// Returns the result of a connect() that is never accepted.
	Status failure()
	{
		const auto event = a.wait_event();
		EXPECT_EQ(Driver::id_of(event), EventId::connect_result);
		EXPECT_EQ(Driver::state_of(event), QpState::idle);
		return Driver::result(event);
	}

	Side client{a}, server{b};
	std::uint32_t listener = 0;
};

TEST_F(Amso1100Connections, RdmaWriteReadAndSendTransferData)
{
	establish(text(200, 8), text(200, 9));
	exchange();
	const auto counted = [](const Driver &driver, std::string_view name) {
		const auto all = driver.card->activity();
		return std::ranges::find(all, name, &cards::Count::name)->value;
	};
	EXPECT_EQ(counted(a, "connections"), 1u);
	EXPECT_EQ(counted(a, "completions"), 3u);
	EXPECT_EQ(counted(a, "verbs-events"), 1u);
	EXPECT_EQ(counted(b, "connections"), 1u);
	EXPECT_EQ(counted(b, "completions"), 1u);
	// The requests are INIT, OPEN and the address; two CQs and a QP; 1,024 pages in 37
	// messages; and the connect.
	EXPECT_EQ(counted(a, "verbs-requests"), 3 + 3 + 37 + 1u);
}

TEST_F(Amso1100Connections, TransfersCompleteDespiteLossReorderingAndDuplication)
{
	fabric::Faults faults;
	faults.loss = 0.03;
	faults.reordering = 0.1;
	faults.duplication = 0.05;
	faults.delay = 1ms;
	set(faults);
	establish();
	exchange();
}

// The durations for which the link is up and down.
class Amso1100Flaps : public Amso1100Connections,
		      public ::testing::WithParamInterface<std::pair<int, int>>
{
};

// The cable is pulled repeatedly during transfers, also for less than TCP's retransmission timeout.
TEST_P(Amso1100Flaps, TransfersCompleteOverAFlappingLink)
{
	const std::chrono::milliseconds up(GetParam().first), down(GetParam().second);
	fabric::Faults faults;
	faults.delay = 1ms;
	set(faults);
	establish();
	unsigned flaps = 0;
	Timer flap(loop, [&] {
		set(faults, !link.settings().up);
		++flaps;
		flap.arm(link.settings().up ? up : down);
	});
	flap.arm(5ms);
	for (unsigned i = 0; i < 3; ++i)
		exchange();
	EXPECT_GE(flaps, 4u);
}
INSTANTIATE_TEST_SUITE_P(All, Amso1100Flaps,
			 ::testing::Values(std::pair(77, 50), std::pair(50, 50),
					   std::pair(80, 20)));

// tshark decodes the captured traffic, and verifies the checks of each layer.
TEST_F(Amso1100Connections, TsharkFindsNoErrorInACapturedIwarpConnection)
{
	if (!iwarp::testing::has_tshark())
		GTEST_SKIP() << "tshark is missing";
	const auto file = std::filesystem::temp_directory_path() /
			  ("weft-amso1100-" + std::to_string(::getpid()) + ".pcapng");
	const auto capture = std::make_shared<ethernet::Capture>(file, environment);
	link.set_capture(capture);
	establish(text(10, 8), text(10, 9));
	exchange();
	a.write(client.qp, 1, {client.piece(0, 10)}, server.stag + 1, server.memory);
	expect_event(a, EventId::terminate_received, QpState::terminate);
	pass(1s);
	capture->flush();
	const auto of = [&](const std::string &options) {
		return iwarp::testing::tshark(file, options, true);
	};
	EXPECT_EQ(of(iwarp::testing::kWrongFrames), "");
	const std::string all = of("-V");
	const auto count = [&](const char *what) { return iwarp::testing::count(all, what); };
	// Payload per segment of 8960 bytes, without an FPDU's framing and a tagged header.
	constexpr std::size_t payload = 8940, pieces = (kSize + payload - 1) / payload;
	EXPECT_EQ(count("ID Req frame: 4d5041204944"), 1u);
	EXPECT_EQ(count("ID Rep frame: 4d5041204944"), 1u);
	EXPECT_EQ(count("OpCode: Write (0x0)"), pieces + 2);
	EXPECT_EQ(count("OpCode: Read Request (0x1)"), 1u);
	EXPECT_EQ(count("OpCode: Read Response (0x2)"), pieces);
	EXPECT_EQ(count("OpCode: Send (0x3)"), 1u);
	EXPECT_EQ(count("OpCode: Terminate (0x7)"), 1u);
	EXPECT_EQ(count("(Good CRC32)"), 2 * pieces + 5);
	EXPECT_EQ(count("Bad CRC"), 0u);
	if (!HasFailure())
		std::filesystem::remove(file);
}

// The server may send first, because the first message of the client's card has shown that the
// client is ready.
TEST_F(Amso1100Connections, PassiveSideCanSendBeforeTheActiveSideHasPostedASend)
{
	establish();
	a.receive(client.qp, 7, {client.piece(0, 100)});
	std::ranges::copy(text(100), server.bytes(0, 100).begin());
	b.send(server.qp, 8, {server.piece(0, 100)}, wire::work::signaled, WorkId::send_solicited);
	EXPECT_EQ(b.wait(server.sq_cq).context, 8u);
	EXPECT_EQ(a.wait(client.rq_cq).bytes, 100u);
	EXPECT_TRUE(std::ranges::equal(client.bytes(0, 100), text(100)));
	EXPECT_FALSE(a.poll(client.sq_cq));
}

// Requests without a completion of their own are counted in the next completion.
TEST_F(Amso1100Connections, CompletionReportsTheNumberOfPrecedingUnsignalledRequests)
{
	establish();
	for (std::uint64_t i = 0; i < 5; ++i)
		a.write(client.qp, i, {client.piece(0, 10)}, server.stag, server.memory, 0);
	a.write(client.qp, 5, {client.piece(0, 10)}, server.stag, server.memory);
	a.write(client.qp, 6, {client.piece(0, 10)}, server.stag, server.memory);
	const auto first = a.wait(client.sq_cq), second = a.wait(client.sq_cq);
	EXPECT_EQ(first.context, 5u);
	EXPECT_EQ(first.silent, 5u);
	EXPECT_EQ(second.context, 6u);
	EXPECT_EQ(second.silent, 0u);
}

TEST_F(Amso1100Connections, OrderlyCloseCompletesOnBothSides)
{
	establish();
	exchange();
	b.receive(server.qp, 0x52, {server.piece(0, 10)});
	EXPECT_EQ(a.modify(client.qp, QpState::closing), Status::ok);
	expect_event(a, EventId::close_complete, QpState::error);
	expect_event(b, EventId::close_complete, QpState::error);
	// This is the server's receive that was still posted.
	const auto flushed = b.wait(server.rq_cq);
	EXPECT_EQ(flushed.result, Status::flushed);
	EXPECT_EQ(flushed.context, 0x52u);
	EXPECT_EQ(flushed.id, WorkId::receive);
	// Requests that are posted now are flushed at once.
	a.send(client.qp, 77, {});
	EXPECT_EQ(a.wait(client.sq_cq).result, Status::flushed);
	EXPECT_EQ(a.modify(client.qp, QpState::idle), Status::ok);
	EXPECT_EQ(a.modify(client.qp, QpState::closing), Status::invalid_qp_state);
}

// On the local side, all requests are flushed before the reply, and there is no event. The peer is
// notified.
TEST_F(Amso1100Connections, ModifyQpToErrorFlushesRequestsAndResetsTheConnection)
{
	establish();
	a.receive(client.qp, 1, {client.piece(0, 10)});
	a.receive(client.qp, 2, {client.piece(0, 10)});
	EXPECT_EQ(a.modify(client.qp, QpState::error), Status::ok);
	for (const std::uint64_t context : {1, 2}) {
		const auto done = a.poll(client.rq_cq);
		ASSERT_TRUE(done);
		EXPECT_EQ(done->result, Status::flushed);
		EXPECT_EQ(done->context, context);
	}
	expect_event(b, EventId::connection_reset, QpState::error);
	EXPECT_FALSE(a.next_event());
	EXPECT_EQ(a.destroy(MessageId::qp_destroy, client.qp.handle), Status::ok);
	EXPECT_EQ(a.destroy(MessageId::qp_destroy, client.qp.handle), Status::invalid_qp);
}

// The same host has both ends of the connection.
TEST_F(Amso1100Connections, CardCanConnectToItsOwnAddress)
{
	auto other = a.create_qp(client.sq_cq, client.rq_cq);
	a.listen(kPort);
	a.connect(client.qp, kAddressA, kPort);
	const auto request = a.wait_event();
	ASSERT_EQ(Driver::id_of(request), EventId::connection_request);
	ASSERT_EQ(a.accept(other, Driver::field(request, wire::connection_request::endpoint)),
		  Status::ok);
	ASSERT_EQ(Driver::result(a.wait_event()), Status::ok);
	std::ranges::copy(text(kSize), client.bytes(0, kSize).begin());
	a.write(client.qp, 1, {client.piece(0, kSize)}, client.stag, client.memory + (1 << 20));
	a.receive(other, 2, {});
	a.send(client.qp, 3, {});
	EXPECT_EQ(a.wait(client.rq_cq).result, Status::ok);
	EXPECT_TRUE(std::ranges::equal(client.bytes(1 << 20, kSize), text(kSize)));
}

// Forbidden accesses have no effect, and both sides get the reason.
TEST_F(Amso1100Connections, RemoteAccessErrorTerminatesTheConnection)
{
	establish();
	const auto before = text(100, 4);
	std::ranges::copy(before, server.bytes((4 << 20) - 100, 100).begin());
	b.receive(server.qp, 9, {server.piece(0, 1)});
	a.write(client.qp, 1, {client.piece(0, 100)}, server.stag, server.memory + (4 << 20) - 99);
	a.read(client.qp, 2, client.piece(0, 10), server.stag, server.memory);
	expect_event(b, EventId::tagged_bounds_violation, QpState::terminate);
	expect_event(b, EventId::connection_reset, QpState::error);
	EXPECT_EQ(b.wait(server.rq_cq).result, Status::flushed);
	expect_event(a, EventId::terminate_received, QpState::terminate);
	expect_event(a, EventId::connection_reset, QpState::error);
	EXPECT_EQ(a.wait(client.sq_cq).result, Status::ok);
	EXPECT_EQ(a.wait(client.sq_cq).result, Status::flushed);
	EXPECT_TRUE(std::ranges::equal(server.bytes((4 << 20) - 100, 100), before));
}

struct Reach {
	const char *name;
	bool reads;
	std::uint32_t rights, flags; // flags of the region, and of the queue pair
	std::uint32_t stag_change, pd;
	EventId event;
};

class Amso1100RemoteAccess : public Amso1100Connections, public ::testing::WithParamInterface<Reach>
{
};

TEST_P(Amso1100RemoteAccess, UnauthorizedRemoteAccessIsRefused)
{
	const Reach &reach = GetParam();
	server.qp = b.create_qp(server.sq_cq, server.rq_cq, 17,
				{{wire::qp_create::flags, reach.flags}});
	const std::uint32_t stag = b.register_memory(server.memory, 4096, reach.rights,
						     {{wire::mr_register::pd, reach.pd}}) +
				   reach.stag_change;
	establish();
	const auto before = text(100, 5);
	std::ranges::copy(before, server.bytes(0, 100).begin());
	if (reach.reads)
		a.read(client.qp, 1, client.piece(0, 100), stag, server.memory);
	else
		a.write(client.qp, 1, {client.piece(0, 100)}, stag, server.memory);
	expect_event(b, reach.event, QpState::terminate);
	expect_event(b, EventId::connection_reset, QpState::error);
	expect_event(a, EventId::terminate_received, QpState::terminate);
	EXPECT_TRUE(std::ranges::equal(server.bytes(0, 100), before));
	EXPECT_FALSE(std::ranges::equal(client.bytes(0, 100), before));
}

INSTANTIATE_TEST_SUITE_P(All, Amso1100RemoteAccess,
			 ::testing::Values(Reach{"WriteOfNone", false, 0x7b, 0x2f, 0x100,
						 Driver::kPd, EventId::tagged_invalid_stag},
					   Reach{"WriteByAnotherKey", false, 0x7b, 0x2f, 1,
						 Driver::kPd, EventId::tagged_invalid_stag},
					   Reach{"WriteWithoutRight", false, 0x3b, 0x2f, 0,
						 Driver::kPd, EventId::tagged_rights_violation},
					   Reach{"WriteOfAnotherPd", false, 0x7b, 0x2f, 0, 1,
						 EventId::tagged_invalid_pd},
					   Reach{"WriteToAQueuePairWithout", false, 0x7b, 0x2d, 0,
						 Driver::kPd, EventId::write_not_enabled},
					   Reach{"ReadOfNone", true, 0x7b, 0x2f, 0x100, Driver::kPd,
						 EventId::reads_invalid_stag},
					   Reach{"ReadWithoutRight", true, 0x5b, 0x2f, 0,
						 Driver::kPd, EventId::reads_rights_violation},
					   Reach{"ReadOfAnotherPd", true, 0x7b, 0x2f, 0, 1,
						 EventId::reads_invalid_pd},
					   Reach{"ReadFromAQueuePairWithout", true, 0x7b, 0x0f, 0,
						 Driver::kPd, EventId::read_not_enabled}),
			 [](const auto &param) { return std::string(param.param.name); });

// STag 0 is for the host only; a peer cannot use it.
TEST_F(Amso1100Connections, StagZeroFromThePeerIsRejected)
{
	establish();
	std::ranges::copy(text(100, 6), client.bytes(0, 100).begin());
	b.receive(server.qp, 3, {{0, 100, server.memory}});
	a.send(client.qp, 1, {{0, 100, client.memory}});
	EXPECT_EQ(b.wait(server.rq_cq).result, Status::ok);
	EXPECT_TRUE(std::ranges::equal(server.bytes(0, 100), text(100, 6)));
	a.write(client.qp, 2, {{0, 100, client.memory}}, 0, server.memory + 4096);
	expect_event(b, EventId::tagged_invalid_stag, QpState::terminate);
}

// A receive that is too small completes with that error, and the other receives are flushed.
TEST_F(Amso1100Connections, SendLargerThanThePostedReceiveFailsTheReceiveAndResetsTheConnection)
{
	establish();
	b.receive(server.qp, 1, {server.piece(0, 99)});
	b.receive(server.qp, 2, {server.piece(0, 99)});
	a.send(client.qp, 3, {client.piece(0, 100)});
	const auto guilty = b.wait(server.rq_cq);
	EXPECT_EQ(guilty.context, 1u);
	EXPECT_EQ(guilty.result, Status::total_length_too_big);
	EXPECT_EQ(b.wait(server.rq_cq).result, Status::flushed);
	expect_event(b, EventId::connection_reset, QpState::error);
}

TEST_F(Amso1100Connections, SendWithoutAPostedReceiveTerminatesTheConnection)
{
	establish();
	a.send(client.qp, 3, {client.piece(0, 100)});
	expect_event(b, EventId::invalid_msn_range, QpState::terminate);
}

// An invalid request completes with its reason, after earlier valid requests.
TEST_F(Amso1100Connections, LocalSendErrorIsReportedInTheCompletion)
{
	struct {
		Driver::Piece piece;
		Status result;
	} const cases[] = {
		{{client.stag + 0x10000, 10, client.memory}, Status::bounds_violation},
		{{client.stag, 10, client.memory + (4 << 20) - 9}, Status::bounds_violation},
		{{client.stag, 10, client.memory - 1}, Status::bounds_violation},
		{{a.register_memory(client.memory, 4096, 0x13), 10, client.memory},
		 Status::access_violation}};
	for (const auto &each : cases) {
		SCOPED_TRACE(each.piece.offset);
		establish();
		a.write(client.qp, 1, {client.piece(0, kSize)}, server.stag, server.memory);
		a.send(client.qp, 2, {each.piece});
		a.send(client.qp, 3, {client.piece(0, 10)});
		EXPECT_EQ(a.wait(client.sq_cq).result, Status::ok);
		EXPECT_EQ(a.wait(client.sq_cq).result, each.result);
		EXPECT_EQ(a.wait(client.sq_cq).result, Status::flushed);
		expect_event(a, EventId::connection_reset, QpState::error);
		expect_event(b, EventId::terminate_received, QpState::terminate);
		expect_event(b, EventId::connection_reset, QpState::error);
		ASSERT_EQ(b.destroy(MessageId::listen_destroy, listener), Status::ok);
		client.qp = a.create_qp(client.sq_cq, client.rq_cq);
		server.qp = b.create_qp(server.sq_cq, server.rq_cq);
	}
}

TEST_F(Amso1100Connections, LocalReceiveErrorIsReportedInTheCompletion)
{
	establish();
	b.receive(server.qp, 1, {{server.stag, 100, server.memory + (4 << 20) - 50}});
	a.send(client.qp, 2, {client.piece(0, 100)});
	EXPECT_EQ(b.wait(server.rq_cq).result, Status::bounds_violation);
	expect_event(b, EventId::connection_reset, QpState::error);
}

// A Send may invalidate an STag, and reports this. A second Send with the same STag terminates the
// connection.
TEST_F(Amso1100Connections, SendWithInvalidateInvalidatesTheStag)
{
	establish();
	const auto stag = register_by_request(0x7b);
	for (const std::uint64_t i : {1, 2})
		b.receive(server.qp, i, {server.piece(0, 10)});
	for (const std::uint64_t i : {3, 4})
		a.send(client.qp, i, {}, wire::work::signaled, WorkId::send_invalidate, stag);
	const auto first = b.wait(server.rq_cq);
	EXPECT_EQ(first.stag, stag);
	EXPECT_EQ(first.result, Status::ok);
	EXPECT_EQ(b.wait(server.rq_cq).result, Status::flushed);
	expect_event(b, EventId::tagged_invalid_stag, QpState::terminate);
	EXPECT_EQ(b.destroy(MessageId::stag_dealloc, stag), Status::ok);
}

// A peer cannot invalidate the key of a region that other streams may use, or that it cannot
// access.
TEST_F(Amso1100Connections, RemoteInvalidationWithoutPermissionIsRefused)
{
	for (const bool shared : {true, false}) {
		server.qp = b.create_qp(server.sq_cq, server.rq_cq, shared ? 30 : 31);
		client.qp = a.create_qp(client.sq_cq, client.rq_cq, shared ? 30 : 31);
		establish();
		const auto stag = shared ? server.stag : register_by_request(0x1b);
		b.receive(server.qp, 1, {server.piece(0, 10)});
		a.send(client.qp, 2, {}, wire::work::signaled, WorkId::send_invalidate, stag);
		expect_event(b, EventId::tagged_rights_violation, QpState::terminate);
		expect_event(b, EventId::connection_reset, QpState::error);
		expect_event(a, EventId::terminate_received, QpState::terminate);
		expect_event(a, EventId::connection_reset, QpState::error);
		EXPECT_EQ(b.destroy(MessageId::listen_destroy, listener), Status::ok);
		static_cast<void>(a.poll(client.sq_cq));
		static_cast<void>(b.poll(server.rq_cq));
	}
	// The region still exists.
	server.qp = b.create_qp(server.sq_cq, server.rq_cq, 32);
	client.qp = a.create_qp(client.sq_cq, client.rq_cq, 32);
	establish();
	a.write(client.qp, 3, {client.piece(0, 10)}, server.stag, server.memory);
	EXPECT_EQ(a.wait(client.sq_cq).result, Status::ok);
}

// The peer cannot find out whether a region with another key exists.
TEST_F(Amso1100Connections, RemoteInvalidationWithAWrongStagKeyReportsAnInvalidStag)
{
	establish();
	b.receive(server.qp, 1, {server.piece(0, 10)});
	a.send(client.qp, 2, {}, wire::work::signaled, WorkId::send_invalidate, server.stag ^ 1);
	expect_event(b, EventId::tagged_invalid_stag, QpState::terminate);
}

// An STag is registered by a work request, with its own page list and a new key. Its invalidation
// is ordered after earlier work.
TEST_F(Amso1100Connections, FastRegisterWorkRequestMakesAnStagValid)
{
	establish();
	namespace field = wire::fast_register;
	const auto answer = b.ask(MessageId::stag_alloc, {{wire::rnic_handle, b.rnic},
							  {wire::stag_alloc::total_pages, 2},
							  {wire::stag_alloc::pd, Driver::kPd},
							  {wire::stag_alloc::flags, 0x7b}});
	ASSERT_EQ(Driver::result(answer), Status::ok);
	const auto stag = load_be<std::uint32_t>(answer, wire::stag_alloc::reply_stag);
	Driver::Words words{{field::va, 0},           {field::va + 4, 0x5000},
			    {field::key, 0x2a000000}, {field::stag, stag},
			    {field::page_size, 4096}, {field::first_offset, 96},
			    {field::length, 8000},    {field::pages_here, 2}};
	for (const std::uint64_t page : {1, 0})
		std::ranges::copy(Driver::address_words(field::pages + 8 * (1 - page),
							server.memory + 4096 * page),
				  std::back_inserter(words));
	const auto slot = Driver::slot_of(WorkId::fast_register, 1, wire::work::signaled, words,
					  field::pages + 16, {});
	b.post(server.qp, slot);
	EXPECT_EQ(b.wait(server.sq_cq).result, Status::ok);
	const auto sent = text(8000);
	std::ranges::copy(sent, client.bytes(0, 8000).begin());
	a.write(client.qp, 2, {client.piece(0, 8000)}, stag | 0x2a, 0x5000);
	b.receive(server.qp, 3, {});
	a.send(client.qp, 4, {});
	EXPECT_EQ(b.wait(server.rq_cq).result, Status::ok);
	EXPECT_TRUE(std::ranges::equal(server.bytes(4096 + 96, 4000), std::span(sent).first(4000)));
	EXPECT_TRUE(std::ranges::equal(server.bytes(0, 4000), std::span(sent).subspan(4000)));
	b.post(server.qp, Driver::slot_of(WorkId::invalidate, 5, wire::work::signaled,
					  {{wire::invalidate::key, 0x2a000000},
					   {wire::invalidate::stag, stag}},
					  wire::invalidate::size, {}));
	EXPECT_EQ(b.wait(server.sq_cq).result, Status::ok);
	a.write(client.qp, 6, {client.piece(0, 10)}, stag | 0x2a, 0x5000);
	expect_event(b, EventId::tagged_invalid_stag, QpState::terminate);
}

// The connect fails with a different error for each cause: no listener, no host, no route, no
// answer, and no accept.
TEST_F(Amso1100Connections, ConnectReportsTheCauseOfFailure)
{
	a.connect(client.qp, kAddressB, kPort);
	EXPECT_EQ(failure(), Status::connection_refused);
	a.connect(client.qp, 0x0a000009, kPort);
	EXPECT_EQ(failure(), Status::host_unreachable);
	a.connect(client.qp, 0x0b000009, kPort);
	EXPECT_EQ(failure(), Status::network_unreachable);
	a.connect(client.qp, kAddressB, kPort, text(201));
	EXPECT_EQ(failure(), Status::connection_reset);

	listener = b.listen(kPort);
	a.connect(client.qp, kAddressB, kPort);
	auto request = b.wait_event();
	EXPECT_EQ(b.destroy(MessageId::request_reject,
			    Driver::field(request, wire::connection_request::endpoint)),
		  Status::ok);
	EXPECT_EQ(failure(), Status::connection_reset);
	EXPECT_EQ(b.destroy(MessageId::request_reject,
			    Driver::field(request, wire::connection_request::endpoint)),
		  Status::invalid_endpoint);

	// If the host does not answer a request, the initiator times out first.
	a.connect(client.qp, kAddressB, kPort);
	request = b.wait_event();
	EXPECT_EQ(failure(), Status::connection_timed_out);
	pass(1s);
	EXPECT_EQ(b.accept(server.qp, Driver::field(request, wire::connection_request::endpoint)),
		  Status::connection_reset);

	set({}, false);
	a.connect(client.qp, kAddressB, kPort);
	EXPECT_EQ(failure(), Status::connection_timed_out);
}

// A connect without a valid QP or with a connected one, and a second accept, are refused.
TEST_F(Amso1100Connections, RepeatedConnectAndAcceptAreRefused)
{
	establish();
	a.connect(client.qp, kAddressB, kPort);
	const auto again = a.wait_event();
	EXPECT_EQ(Driver::result(again), Status::invalid_qp_state);
	EXPECT_EQ(Driver::state_of(again), QpState::rts);

	auto other = a.create_qp(client.sq_cq, client.rq_cq);
	a.connect(other, kAddressB, kPort);
	const auto request = b.wait_event();
	const auto endpoint = Driver::field(request, wire::connection_request::endpoint);
	EXPECT_EQ(b.accept(server.qp, endpoint), Status::invalid_qp_state);
	EXPECT_EQ(b.accept(server.qp, endpoint), Status::invalid_endpoint);
	EXPECT_EQ(failure(), Status::connection_reset);
}

// The QP is destroyed while it connects. The host gets one connect event, and reads it before the
// reply.
TEST_F(Amso1100Connections, ReplyToQpDestroyIsDelayedUntilTheHostHasReadTheConnectEvent)
{
	set({}, false);
	a.connect(client.qp, kAddressB, kPort);
	ASSERT_TRUE(a.until([&] { return a.taken(); }));
	const auto before = a.word(Driver::kReplyWord);
	a.fill(MessageId::qp_destroy,
	       {{wire::rnic_handle, a.rnic}, {wire::object_handle, client.qp.handle}});
	a.ring();
	ASSERT_TRUE(a.until([&] { return a.word(Driver::kEventWord) != a.events_read; }));
	pass(1s);
	EXPECT_EQ(a.word(Driver::kReplyWord), before);
	// Later requests are not delayed.
	a.fill(MessageId::rnic_query, {{wire::rnic_handle, a.rnic}});
	a.ring();
	ASSERT_TRUE(a.until([&] { return a.word(Driver::kReplyWord) != before; }));
	EXPECT_EQ(a.reply(before)[wire::header::id], static_cast<std::byte>(MessageId::rnic_query));
	const auto event = a.wait_event();
	EXPECT_EQ(Driver::result(event), Status::connection_reset);
	ASSERT_TRUE(a.until([&] { return a.word(Driver::kReplyWord) != before + 1; }));
	EXPECT_EQ(a.reply(static_cast<std::uint16_t>(before + 1))[wire::header::id],
		  static_cast<std::byte>(MessageId::qp_destroy));
}

// A QP cannot be used for another stream until the host has read the events of the previous one.
TEST_F(Amso1100Connections, QueuePairIsReusableOnlyAfterTheHostHasReadItsEvents)
{
	establish();
	EXPECT_EQ(a.modify(client.qp, QpState::error), Status::ok);
	ASSERT_TRUE(b.until([&] { return b.word(Driver::kEventWord) != b.events_read; }));
	EXPECT_EQ(b.modify(server.qp, QpState::error), Status::ok);
	const auto before = b.word(Driver::kReplyWord);
	b.fill(MessageId::qp_modify,
	       b.modify_words(server.qp, static_cast<std::uint32_t>(QpState::idle)));
	b.ring();
	ASSERT_TRUE(b.until([&] { return b.taken(); }));
	pass(1s);
	EXPECT_EQ(b.word(Driver::kReplyWord), before);
	expect_event(b, EventId::connection_reset, QpState::error);
	EXPECT_TRUE(b.until([&] { return b.word(Driver::kReplyWord) != before; }));
}

// After TERM the card writes nothing, even if space for a delayed message becomes available.
TEST_F(Amso1100Connections, CardWritesNoEventsAfterTheDriverHasTerminatedTheRnic)
{
	for (unsigned i = 0; i < 300; ++i) {
		a.connect(client.qp, 0x0b000009, kPort);
		ASSERT_TRUE(a.until([&] { return a.taken(); }));
	}
	const auto before = a.word(Driver::kEventWord);
	EXPECT_EQ((before + 1) % wire::event_entries, a.events_read);
	a.put<std::uint16_t>(a.event_shared + wire::shared::index, 200);
	a.fill(MessageId::term);
	a.ring();
	pass(1s);
	EXPECT_EQ(a.word(Driver::kEventWord), before);
	EXPECT_EQ(a.get<std::uint16_t>(a.shared + wire::shared::index), 0u);
}

// Connection requests are refused while a host that does not read has too many events pending.
TEST_F(Amso1100Connections, CardRefusesConnectionRequestsIfTheHostHasTooManyUnreadEvents)
{
	constexpr unsigned callers = 256, rounds = 7;
	constexpr std::uint64_t bound = MessageQueues::kMostEvents + wire::event_entries;
	static_assert(callers * rounds > bound + callers);
	listener = b.listen(kPort, 100000);
	std::vector<Driver::Qp> qps(callers);
	std::ranges::generate(qps, [&] { return a.create_qp(client.sq_cq, client.rq_cq, 2); });
	for (unsigned round = 0; round < rounds; ++round) {
		for (const Driver::Qp &qp : qps) {
			a.connect(qp, kAddressB, kPort);
			ASSERT_TRUE(a.until([&] { return a.taken(); }));
		}
		for (unsigned i = 0; i < callers; ++i)
			EXPECT_NE(failure(), Status::ok);
		pass(61s);
	}
	const auto all = b.card->activity();
	EXPECT_LE(std::ranges::find(all, "verbs-events", &cards::Count::name)->value, bound);
}

// The backlog limits the requests that wait for the host. The next one is refused.
TEST_F(Amso1100Connections, ListenBacklogIsEnforced)
{
	listener = b.listen(kPort, 2);
	for (unsigned i = 0; i < 2; ++i) {
		a.connect(a.create_qp(client.sq_cq, client.rq_cq), kAddressB, kPort);
		EXPECT_EQ(Driver::id_of(b.wait_event()), EventId::connection_request);
	}
	a.connect(client.qp, kAddressB, kPort);
	EXPECT_EQ(failure(), Status::connection_reset);
	EXPECT_FALSE(b.next_event());
}

// All listeners share the limit, whatever backlog each has requested.
TEST_F(Amso1100Connections, TotalNumberOfPendingConnectionsOfAllListenersIsLimited)
{
	listener = b.listen(kPort, 100000);
	const auto call = [&] {
		a.connect(a.create_qp(client.sq_cq, client.rq_cq, 2), kAddressB, kPort);
	};
	for (unsigned i = 0; i < 256; ++i) {
		call();
		ASSERT_EQ(Driver::id_of(b.wait_event()), EventId::connection_request) << i;
	}
	call();
	EXPECT_EQ(failure(), Status::connection_reset);
}

// The number of replies that wait for events is limited. Beyond it, no request is taken until the
// host has read events.
TEST_F(Amso1100Connections, CardStopsReadingRequestsIfUnreadEventsBlockTooManyReplies)
{
	set({}, false);
	const auto leave = [&] {
		const auto qp = a.create_qp(client.sq_cq, client.rq_cq, 2);
		a.connect(qp, kAddressB, kPort);
		EXPECT_TRUE(a.until([&] { return a.taken(); }));
		return qp.handle;
	};
	std::vector<std::uint32_t> handles(65);
	std::ranges::generate(handles, leave);
	for (std::size_t i = 0; i < handles.size(); ++i) {
		a.fill(MessageId::qp_destroy,
		       {{wire::rnic_handle, a.rnic}, {wire::object_handle, handles[i]}});
		a.ring();
		EXPECT_EQ(a.until([&] { return a.taken(); }, 100ms), i < 64) << i;
	}
	const auto before = a.word(Driver::kReplyWord);
	for (std::size_t i = 0; i < handles.size(); ++i)
		EXPECT_EQ(Driver::result(a.wait_event()), Status::connection_reset);
	EXPECT_TRUE(a.until([&] {
		return (a.word(Driver::kReplyWord) - before) % wire::reply_entries ==
		       handles.size() % wire::reply_entries;
	}));
}

// Requests that are never accepted or rejected are dropped, even if the peer would wait.
TEST_F(Amso1100Connections, UnansweredConnectionRequestsTimeOut)
{
	listener = b.listen(kPort);
	a.connect(client.qp, kAddressB, kPort);
	const auto request = b.wait_event();
	pass(61s);
	EXPECT_EQ(b.accept(server.qp, Driver::field(request, wire::connection_request::endpoint)),
		  Status::invalid_endpoint);
}

TEST_F(Amso1100Connections, InvalidAndDuplicateListenAddressesAreRefused)
{
	listener = b.listen(kPort);
	EXPECT_EQ(Driver::result(b.try_listen(0, kPort)), Status::address_in_use);
	EXPECT_EQ(Driver::result(b.try_listen(kAddressA, kPort)), Status::address_not_available);
	const auto any = b.try_listen(kAddressB, 0);
	EXPECT_EQ(Driver::result(any), Status::ok);
	EXPECT_GE(load_be<std::uint16_t>(any, wire::listen_create::reply_port), 49152);
	EXPECT_EQ(b.destroy(MessageId::listen_destroy, listener), Status::ok);
	EXPECT_EQ(b.destroy(MessageId::listen_destroy, listener), Status::invalid_endpoint);
	a.connect(client.qp, kAddressB, kPort);
	EXPECT_EQ(failure(), Status::connection_refused);
}

// The peer disappears: its cable is pulled, its address is removed, or its card is reset.
TEST_F(Amso1100Connections, UnresponsivePeerIsReportedAsConnectionLost)
{
	establish();
	set({}, false);
	a.write(client.qp, 1, {client.piece(0, 100)}, server.stag, server.memory);
	expect_event(a, EventId::connection_lost, QpState::error);
}

TEST_F(Amso1100Connections, RemovingTheLocalAddressReportsItsConnectionsAsLost)
{
	establish();
	EXPECT_EQ(a.configure(a.rnic, 2, kAddressA), Status::ok);
	expect_event(a, EventId::connection_lost, QpState::error);
}

TEST_F(Amso1100Connections, UnpluggingTheCardResetsItsConnections)
{
	establish();
	b.host.unplug();
	expect_event(a, EventId::connection_reset, QpState::error);
	// The next driver finds no state of the previous driver.
	b.host.plug(*b.card->function());
	b.start();
	b.bring_up(kAddressB);
	Side anew(b);
	EXPECT_EQ(b.modify(anew.qp, QpState::idle), Status::ok);
}

// If a completion does not fit into the queue, the connection is reset and the QP enters the error
// state.
TEST_F(Amso1100Connections, CompletionQueueOverrunResetsTheConnection)
{
	auto small = a.create_cq(3);
	client.qp = a.create_qp(small, client.rq_cq);
	establish();
	std::ranges::fill(client.bytes(0, 10), std::byte{7});
	std::ranges::fill(server.bytes(0, 120), std::byte{0});
	for (std::uint64_t i = 0; i < 12; ++i)
		a.write(client.qp, i, {client.piece(0, 10)}, server.stag, server.memory + i * 10);
	expect_event(a, EventId::sq_completion_overflow, QpState::error);
	expect_event(a, EventId::connection_reset, QpState::error);
	EXPECT_TRUE(a.poll(small));
	EXPECT_TRUE(a.poll(small));
	EXPECT_FALSE(a.poll(small));
	expect_event(b, EventId::connection_reset, QpState::error);
	// Requests after the one that overflowed are not sent.
	EXPECT_THAT(server.bytes(30, 90), ::testing::Each(std::byte{0}));
}

// An invalid producer index raises a catastrophic error event and resets the connection.
TEST_F(Amso1100Connections, InvalidProducerIndexRaisesACatastrophicErrorEvent)
{
	establish();
	a.put<std::uint16_t>(client.qp.sq + wire::shared::index, 17);
	a.host.write<std::uint32_t>(0, wire::reg::adapter_hint,
				    client.qp.sq_index << wire::hint_index_shift);
	expect_event(a, EventId::local_catastrophic, QpState::error);
	expect_event(a, EventId::connection_reset, QpState::error);
}

} // namespace
} // namespace weft::amso1100
