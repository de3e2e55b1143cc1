// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the verbs objects that need no connection: completion queues, queue pairs, memory regions
// and listeners, and the limits on their numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cards/amso1100/memory_regions.hpp"
#include "cards/amso1100/queue_pair.hpp"
#include "cards/amso1100/testing/driver.hpp"

namespace weft::amso1100
{
namespace
{

namespace wire = hw::amso1100;
using testing::Driver;
using wire::EventId;
using wire::MessageId;
using wire::QpState;
using wire::Status;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Fixture {
	VirtualEnvironment environment;
	Reactor reactor{"test", Reactor::Drive::manual, environment};
};

class Amso1100Verbs : public ::testing::Test, private Fixture, protected Driver
{
protected:
	Amso1100Verbs() : Driver(Fixture::reactor, 77, std::make_shared<ethernet::Channel>())
	{
		bring_up(0x0a000001);
	}
	Status create_cq_of(std::uint32_t depth)
	{
		return result(ask(MessageId::cq_create,
				  cq_words(rnic, kFree - 4096, kFree - 8192, depth)));
	}
	Status create_qp_with(const Cq &cq, const Words &more)
	{
		Words words = qp_words(cq, cq, 17, 17, 0);
		std::ranges::copy(more, std::back_inserter(words));
		return result(ask(MessageId::qp_create, words));
	}
	// Creates a completion without a connection: requests that are posted in the error state
	// are flushed.
	void complete(Qp &qp)
	{
		receive(qp, 1, {});
		host.loop().poll();
	}
};

// Creation clears the queue's words and returns a new handle. The queue cannot be destroyed while
// it is in use.
TEST_F(Amso1100Verbs, CompletionQueueInUseCannotBeDestroyed)
{
	Cq cq = create_cq(), other = create_cq();
	EXPECT_EQ(word(cq.word), 0);
	EXPECT_GE(cq.index, wire::least_queue_index);
	EXPECT_NE(cq.index, other.index);
	const Qp qp = create_qp(cq, other);
	EXPECT_EQ(destroy(MessageId::cq_destroy, cq.handle), Status::in_use);
	EXPECT_EQ(destroy(MessageId::qp_destroy, qp.handle), Status::ok);
	EXPECT_EQ(destroy(MessageId::cq_destroy, cq.handle), Status::ok);
	EXPECT_EQ(destroy(MessageId::cq_destroy, cq.handle), Status::invalid_cq);
}

TEST_F(Amso1100Verbs, CompletionQueueCountAndDepthAreLimited)
{
	EXPECT_EQ(create_cq_of(0), Status::invalid_cq_depth);
	EXPECT_EQ(create_cq_of(1), Status::invalid_cq_depth);
	EXPECT_EQ(create_cq_of(CompletionQueue::kMostDepth + 1), Status::invalid_cq_depth);
	EXPECT_EQ(create_cq_of(CompletionQueue::kMostDepth), Status::ok);
	for (std::size_t i = 1; i < CompletionQueue::kMost; ++i)
		ASSERT_EQ(create_cq_of(2), Status::ok);
	EXPECT_EQ(create_cq_of(2), Status::insufficient_resources);
}

// Completions from before the queue was armed raise no event. Later ones raise one event.
TEST_F(Amso1100Verbs, CompletionQueueRaisesOneNotificationPerArming)
{
	Cq cq = create_cq();
	Qp qp = create_qp(cq, cq);
	ASSERT_EQ(modify(qp, QpState::error), Status::ok);
	complete(qp);
	EXPECT_THAT(hints(), IsEmpty());
	arm(cq, wire::Notification::next);
	EXPECT_EQ(get<std::uint8_t>(cq.shared + wire::shared::armed), wire::armed_yes);
	host.loop().poll();
	EXPECT_THAT(hints(), IsEmpty());
	complete(qp);
	EXPECT_EQ(get<std::uint8_t>(cq.shared + wire::shared::armed), 0);
	complete(qp);
	EXPECT_THAT(hints(), ElementsAre(cq.index));
	EXPECT_TRUE(host.intx());
	// An error is reported even if only solicited completions were requested.
	arm(cq, wire::Notification::next_solicited);
	complete(qp);
	EXPECT_THAT(hints(), ElementsAre(cq.index));
	arm(cq, wire::Notification::none);
	complete(qp);
	EXPECT_THAT(hints(), IsEmpty());
}

// However often the queue is armed, there is at most one unread hint for it.
TEST_F(Amso1100Verbs, RepeatedlyArmedCompletionQueueHasAtMostOneUnreadNotification)
{
	Cq cq = create_cq(512);
	Qp qp = create_qp(cq, cq);
	ASSERT_EQ(modify(qp, QpState::error), Status::ok);
	for (unsigned i = 0; i < 100; ++i) {
		arm(cq, wire::Notification::next);
		complete(qp);
	}
	EXPECT_THAT(hints(), ElementsAre(cq.index));
}

TEST_F(Amso1100Verbs, FullCompletionQueueReportsOverflow)
{
	Cq cq = create_cq(3), other = create_cq();
	Qp qp = create_qp(other, cq);
	for (unsigned i = 0; i < 3; ++i)
		receive(qp, i, {});
	ASSERT_EQ(modify(qp, QpState::error), Status::ok);
	const auto event = wait_event();
	EXPECT_EQ(id_of(event), EventId::cq_overflow);
	EXPECT_EQ(field(event, wire::event::resource), cq.handle);
	EXPECT_TRUE(poll(cq) && poll(cq) && !poll(cq));
}

TEST_F(Amso1100Verbs, QueuePairCountAndDepthAreLimited)
{
	namespace at = wire::qp_create;
	const Cq cq = create_cq();
	constexpr std::uint32_t most = QueuePair::kMostDepth;
	EXPECT_EQ(create_qp_with(cq, {{at::sq_depth, most + 1}}), Status::invalid_sq_depth);
	EXPECT_EQ(create_qp_with(cq, {{at::sq_depth, 1}}), Status::invalid_sq_depth);
	EXPECT_EQ(create_qp_with(cq, {{at::rq_depth, most + 1}}), Status::invalid_rq_depth);
	EXPECT_EQ(create_qp_with(cq, {{at::send_sges, 5}}), Status::invalid_send_sgl_depth);
	EXPECT_EQ(create_qp_with(cq, {{at::receive_sges, 5}}), Status::invalid_receive_sgl_depth);
	EXPECT_EQ(create_qp_with(cq, {{at::write_sges, 5}}), Status::invalid_write_sgl_depth);
	EXPECT_EQ(create_qp_with(cq, {{at::sq_cq, cq.handle + 1}}), Status::invalid_cq);
	EXPECT_EQ(create_qp_with(cq, {{at::srq, 1}}), Status::invalid_srq);
	EXPECT_EQ(create_qp_with(cq, {{at::rnic_handle, rnic + 1}}), Status::invalid_rnic);
	// With queues of the largest depth, the card's queue memory is used up before the QP
	// numbers are. No memory is leaked.
	std::vector<std::uint32_t> handles;
	const auto make = [&](const Words &more) {
		Words words = qp_words(cq, cq, most, most, 0);
		std::ranges::copy(more, std::back_inserter(words));
		const auto answer = ask(MessageId::qp_create, words);
		if (result(answer) == Status::ok)
			handles.push_back(load_be<std::uint32_t>(answer, at::reply_handle));
		return result(answer);
	};
	while (make({}) == Status::ok)
		;
	constexpr std::size_t each_size =
		(64 + 256 * most + 4095) / 4096 * 4096 + (64 + 96 * most + 4095) / 4096 * 4096;
	EXPECT_EQ(handles.size(), (QueueWindow::kEnd - QueueWindow::kStart) / each_size);
	EXPECT_EQ(make({}), Status::insufficient_resources);
	for (const std::uint32_t handle : std::exchange(handles, {}))
		ASSERT_EQ(destroy(MessageId::qp_destroy, handle), Status::ok);
	while (make({{at::sq_depth, 2}, {at::rq_depth, 2}}) == Status::ok)
		;
	EXPECT_EQ(handles.size(), QueuePair::kMost);
}

// The host writes the queues, and each queue is separate.
TEST_F(Amso1100Verbs, SendAndReceiveQueuesOfTwoQpsOccupySeparateMemory)
{
	const Cq cq = create_cq();
	const Qp first = create_qp(cq, cq), second = create_qp(cq, cq);
	const std::uint64_t starts[] = {first.sq, first.rq, second.sq, second.rq};
	for (std::uint32_t i = 0; i < 4; ++i)
		put<std::uint64_t>(starts[i] + 64, 0x1111111111111111 * (i + 1));
	for (std::uint32_t i = 0; i < 4; ++i)
		EXPECT_EQ(get<std::uint64_t>(starts[i] + 64), 0x1111111111111111 * (i + 1));
	// Memory behind the queue is not accessible; a write across its end is truncated.
	const std::uint64_t end = first.sq + 64 + 17 * 256;
	put<std::uint64_t>(end - 4, ~0ull);
	EXPECT_EQ(get<std::uint64_t>(end - 4), 0xffffffff00000000);
	EXPECT_EQ(destroy(MessageId::qp_destroy, first.handle), Status::ok);
	EXPECT_EQ(get<std::uint64_t>(first.sq + 64), 0u);
	EXPECT_EQ(get<std::uint64_t>(second.sq + 64), 0x3333333333333333u);
}

TEST_F(Amso1100Verbs, InvalidStateTransitionsAreRefused)
{
	const Cq cq = create_cq();
	const Qp qp = create_qp(cq, cq);
	EXPECT_EQ(result(modify(qp, wire::no_change)), Status::ok);
	EXPECT_EQ(modify(qp, QpState::idle), Status::ok);
	for (const QpState state :
	     {QpState::rts, QpState::closing, QpState::connecting, QpState::terminate})
		EXPECT_EQ(modify(qp, state), Status::invalid_qp_state);
	EXPECT_EQ(result(modify(qp, 0x40)), Status::invalid_qp_state);
	EXPECT_EQ(modify(qp, QpState::error), Status::ok);
	EXPECT_EQ(modify(qp, QpState::error), Status::ok);
	EXPECT_EQ(modify(qp, QpState::closing), Status::invalid_qp_state);
	EXPECT_EQ(modify(qp, QpState::idle), Status::ok);
	EXPECT_FALSE(next_event());
}

TEST_F(Amso1100Verbs, InvalidMemoryRegionsAreRefused)
{
	namespace at = wire::mr_register;
	const std::vector<std::uint64_t> two{0x100000, 0x101000};
	const auto of = [&](std::uint32_t first, std::uint32_t length, const Words &more = {}) {
		return register_pages(two, 0x5000, first, length, kAllRights, more).status;
	};
	EXPECT_EQ(of(0, 8192), Status::ok);
	EXPECT_EQ(of(0, 8193), Status::invalid_length);
	EXPECT_EQ(of(1, 8192), Status::invalid_length);
	EXPECT_EQ(of(4095, 4097), Status::ok);
	EXPECT_EQ(of(4096, 10), Status::invalid_first_offset);
	EXPECT_EQ(of(0, 10, {{at::page_size, 1023}}), Status::invalid_page_size);
	EXPECT_EQ(of(0, 10, {{at::page_size, 1024}}), Status::ok);
	EXPECT_EQ(of(0, 10, {{at::page_size, 1u << 30}}), Status::ok);
	EXPECT_EQ(of(0, 10, {{at::page_size, (1u << 30) + 1}}), Status::invalid_page_size);
	EXPECT_EQ(of(0, 10, {{at::pages_here, 26}, {at::total_pages, 26}}),
		  Status::page_list_too_big);
	EXPECT_EQ(of(0, 10, {{at::pages_here, 3}}), Status::page_list_too_big);
	EXPECT_EQ(of(0, 10, {{at::va, ~0u}, {at::va + 4, ~0u}}), Status::invalid_length);
	EXPECT_EQ(destroy(MessageId::stag_dealloc, 0x7fffff00), Status::invalid_stag);
}

// Tests lists with lengths around that of a message, and the maximum length.
TEST_F(Amso1100Verbs, PageListsMaySpanSeveralMessages)
{
	for (const std::size_t pages : {1, 25, 26, 53, 54, 81, 82}) {
		const Region region = register_pages(std::vector<std::uint64_t>(pages, 0x100000), 0,
						     0, static_cast<std::uint32_t>(pages * 4096));
		EXPECT_EQ(region.status, Status::ok) << pages;
		EXPECT_EQ(destroy(MessageId::stag_dealloc, region.stag), Status::ok);
	}
	const std::vector<std::uint64_t> most(MemoryRegions::kMostPages, 0x100000);
	EXPECT_EQ(register_pages(most, 0, 0, MemoryRegions::kMostPages * 4096u).status, Status::ok);
	namespace at = wire::mr_register;
	EXPECT_EQ(register_pages({0x100000}, 0, 0, 10, kAllRights,
				 {{at::total_pages, MemoryRegions::kMostPages + 1}})
			  .status,
		  Status::page_list_too_big);
}

// A list that is too long in total is refused after its last part. A list without a last part is
// never a region.
TEST_F(Amso1100Verbs, IncompleteAndExcessivePageListsAreRefused)
{
	namespace at = wire::mr_register;
	namespace rest = wire::mr_page_list;
	const auto begun = [&](std::uint32_t total) {
		const Words words{{at::va, 0},
				  {at::va + 4, 0},
				  {at::rnic_handle, rnic},
				  {at::flags, kAllRights << 16},
				  {at::pd, kPd},
				  {at::total_pages, total},
				  {at::page_size, 4096},
				  {at::first_offset, 0},
				  {at::length, 10},
				  {at::pages_here, 1}};
		return load_be<std::uint32_t>(ask(MessageId::mr_register, words), at::reply_stag);
	};
	const auto part = [&](std::uint32_t stag, std::uint32_t here, bool last) {
		return result(ask(MessageId::mr_page_list,
				  {{wire::rnic_handle, rnic},
				   {rest::flags, last ? +wire::mr_flag::complete : 0},
				   {rest::stag, stag},
				   {rest::pages_here, here}}));
	};
	EXPECT_EQ(part(begun(3), 3, true), Status::page_list_too_big);
	EXPECT_EQ(part(begun(3), 1, true), Status::page_list_too_big);
	EXPECT_EQ(part(begun(100), 29, true), Status::page_list_too_big);
	const std::uint32_t stag = begun(4);
	EXPECT_EQ(part(stag, 9, false), Status::page_list_too_big);
	EXPECT_EQ(part(stag, 3, true), Status::page_list_too_big);
	EXPECT_EQ(part(begun(3), 2, true), Status::ok);
	EXPECT_EQ(part(0x7fffff00, 1, true), Status::invalid_stag);
}

// The entries of all lists and the regions are limited. Released ones can be reused.
TEST_F(Amso1100Verbs, NumbersOfMemoryRegionsAndPageListEntriesAreLimited)
{
	const auto allocate_list = [&](std::uint32_t pages) {
		const auto answer =
			ask(MessageId::stag_alloc, {{wire::rnic_handle, rnic},
						    {wire::stag_alloc::total_pages, pages},
						    {wire::stag_alloc::pd, kPd},
						    {wire::stag_alloc::flags, kAllRights}});
		return Region{load_be<std::uint32_t>(answer, wire::stag_alloc::reply_stag),
			      result(answer)};
	};
	constexpr std::size_t lists = MemoryRegions::kMostEntries / MemoryRegions::kMostPages;
	std::vector<std::uint32_t> stags;
	for (std::size_t i = 0; i < lists; ++i) {
		const Region region = allocate_list(MemoryRegions::kMostPages);
		ASSERT_EQ(region.status, Status::ok);
		stags.push_back(region.stag);
	}
	EXPECT_EQ(allocate_list(1).status, Status::insufficient_resources);
	EXPECT_EQ(allocate_list(0).status, Status::ok);
	EXPECT_EQ(destroy(MessageId::stag_dealloc, stags[0]), Status::ok);
	EXPECT_EQ(allocate_list(1).status, Status::ok);
	for (std::size_t i = lists + 1; i < MemoryRegions::kMostRegions; ++i)
		ASSERT_EQ(allocate_list(0).status, Status::ok);
	EXPECT_EQ(allocate_list(0).status, Status::insufficient_resources);
}

// The number of listeners is limited. Pending connection requests are tested in connections_test.
TEST_F(Amso1100Verbs, NumberOfListenersIsLimited)
{
	for (std::uint16_t i = 0; i < 1024; ++i)
		ASSERT_EQ(result(try_listen(0, static_cast<std::uint16_t>(1000 + i))), Status::ok);
	EXPECT_EQ(result(try_listen(0, 5000)), Status::insufficient_resources);
}

TEST_F(Amso1100Verbs, NumberOfIpAddressesOfAnRnicIsLimited)
{
	for (std::uint32_t i = 2; i <= 16; ++i)
		ASSERT_EQ(configure(rnic, 1, 0x0a000000 | i), Status::ok);
	EXPECT_EQ(configure(rnic, 1, 0x0a000099), Status::insufficient_resources);
	EXPECT_EQ(configure(rnic, 2, 0x0a000002), Status::ok);
	EXPECT_EQ(configure(rnic, 1, 0x0a000099), Status::ok);
}

// Replies that wait for events do not delay other replies, but their number is limited. Beyond the
// limit, no request is taken.
TEST_F(Amso1100Verbs, CardReadsNoRequestWhileTheDriverLeavesTooManyEventsUnread)
{
	const Cq cq = create_cq();
	const Qp qp = create_qp(cq, cq);
	// Each connect fails at once with one event, because there is no route.
	std::size_t asked = 0;
	const std::size_t most = wire::event_entries - 1 + MessageQueues::kMostEvents;
	for (; asked < most + 100; ++asked) {
		connect(qp, 0x0b000001, 7);
		if (!host.loop().run_until([&] { return taken(); }, std::chrono::milliseconds(20)))
			break;
	}
	EXPECT_EQ(asked, most);
	for (std::size_t i = 0; i <= most; ++i)
		ASSERT_EQ(result(wait_event()), Status::network_unreachable) << i;
	EXPECT_TRUE(until([&] { return taken(); }));
	EXPECT_FALSE(next_event());
}

} // namespace
} // namespace weft::amso1100
