// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Tests requests to the RNIC and their replies, and the handling of a card that does not reply. */
#include "fixture.hpp"
#include "../qp.hpp"
#include "../stream_states.hpp"

using namespace amso1100;
using kern::kunit::Test;

namespace
{

/*
 * Requests and replies wrap around at the ends of their queues. The card's status is returned as an
 * errno.
 */
void status_of_a_card_reply_is_returned_as_errno(Test &test)
{
	Boxed<Card> card;
	ASSERT_TRUE(card->start(false));
	Rnic &rnic = *card->rnic;
	EXPECT_EQ(card->asked(wire::MessageId::init), 1u);
	EXPECT_EQ(card->last(wire::MessageId::rnic_open).get<u16>(wire::rnic_open::flags),
		  wire::rnic_open::privileged);
	for (u32 i = 0; i < 3 * Card::entries; i++)
		ASSERT_OK(rnic.set_address(wire::ConfigOption::add_address, i, 0));
	EXPECT_EQ(card->asked(wire::MessageId::rnic_setconfig), 3 * Card::entries);
	const struct {
		wire::Status said;
		int expected;
	} answers[] = {{wire::Status::insufficient_resources, -ENOMEM},
		       {wire::Status::address_in_use, -EADDRINUSE},
		       {wire::Status::not_implemented, -EOPNOTSUPP},
		       {static_cast<wire::Status>(200), -EINVAL}};
	for (const auto &[said, expected] : answers) {
		card->answers(wire::MessageId::rnic_setconfig, said);
		EXPECT_ERROR(rnic.set_address(wire::ConfigOption::add_address, 1, 0), expected);
	}
}

/*
 * If a card does not reply, its bus mastering is disabled once, and no further request is sent to
 * it.
 */
void bus_mastering_is_disabled_once_for_an_unresponsive_card(Test &test)
{
	Boxed<Card> card(300u);
	ASSERT_TRUE(card->start(false));
	Rnic &rnic = *card->rnic;
	card->answers(wire::MessageId::rnic_setconfig, wire::Status::pending);
	EXPECT_ERROR(rnic.set_address(wire::ConfigOption::add_address, 1, 0), -EIO);
	EXPECT_EQ(card->cut.load_relaxed(), 1u);
	EXPECT_EQ(card->failures.load_relaxed(), 1u);
	card->answers(wire::MessageId::rnic_setconfig, wire::Status::ok);
	EXPECT_ERROR(rnic.set_address(wire::ConfigOption::add_address, 1, 0), -EIO);
	EXPECT_EQ(card->asked(wire::MessageId::rnic_setconfig), 1u);
	EXPECT_EQ(card->cut.load_relaxed(), 1u);
}

/*
 * Code that changes an address of the interface does not wait for the card. Code that uses the
 * address does.
 */
void changes_of_an_interface_address_do_not_wait_for_the_card(Test &test)
{
	Boxed<Card> card;
	ASSERT_TRUE(card->start(false));
	Rnic &rnic = *card->rnic;
	card->holding.store_release(true);
	/* These are more requests than the queue can contain. */
	constexpr u32 count = 2 * Card::entries;
	for (u32 i = 0; i < count; i++)
		rnic.change_address(i % 2 ? wire::ConfigOption::delete_address
					  : wire::ConfigOption::add_address,
				    i, 0);
	EXPECT_EQ(card->asked(wire::MessageId::rnic_setconfig), 0u);
	card->holding.store_release(false);
	rnic.flush_address_changes();
	EXPECT_EQ(card->asked(wire::MessageId::rnic_setconfig), count);
	const Message &last = card->last(wire::MessageId::rnic_setconfig);
	EXPECT_EQ(last.get_opaque<u32>(wire::rnic_setconfig::address), count - 1);
	EXPECT_FALSE(rnic.channel().failed());
}

/*
 * If a card rejects a step of the start, or does not reply to it, the completed steps are undone. A
 * card that does not reply gets no more requests.
 */
void failed_start_of_the_card_undoes_completed_steps(Test &test)
{
	using enum wire::MessageId;
	for (const auto step : {rnic_open, rnic_query})
		for (const auto answer :
		     {wire::Status::insufficient_resources, wire::Status::pending}) {
			const bool silent = answer == wire::Status::pending;
			Boxed<Card> card(200u);
			card->answers(step, answer);
			EXPECT_FALSE(card->start(false));
			EXPECT_EQ(card->asked(step), 1u);
			card->rnic->stop();
			EXPECT_EQ(card->asked(rnic_close), step == rnic_query && !silent ? 1u : 0u);
			EXPECT_EQ(card->cut.load_relaxed(), silent ? 1u : 0u);
			if (!silent)
				EXPECT_TRUE(eventually([&] { return card->asked(term) == 1; }));
		}
}

/*
 * The memory of the queues is freed when the card has accepted that its driver stops. If the card
 * does not accept it, at any position of its queue, its bus mastering has been disabled by then.
 */
void bus_mastering_is_disabled_if_the_card_does_not_stop(Test &test)
{
	for (u32 asked = 0; asked < Card::entries; asked++)
		for (const bool accepts_term : {true, false}) {
			Boxed<Card> card(200u);
			ASSERT_TRUE(card->start(false));
			card->accepts_term = accepts_term;
			for (u32 i = 0; i < asked; i++)
				ASSERT_OK(card->rnic->set_address(wire::ConfigOption::add_address,
								  i, 0));
			card->rnic->stop();
			EXPECT_EQ(card->asked(wire::MessageId::term), 1u);
			EXPECT_EQ(card->cut.load_relaxed(), accepts_term ? 0u : 1u);
		}
}

/* An object that the card has refused to create does not exist, and does not block the next one. */
void qp_or_cq_creation_that_the_card_rejects_does_not_block_later_creations(Test &test)
{
	using enum wire::MessageId;
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	rdma::QueuePair qp;
	const auto create_cq = [&] {
		return rdma::CompletionQueue::create(&card.ib->ib, nullptr, nullptr, 8);
	};
	for (unsigned int round = 0; round < 2 * Card::most_qps; round++) {
		card.answers(qp_create, wire::Status::insufficient_resources);
		ASSERT_FALSE(bed->add(qp, IB_SIGNAL_ALL_WR));
		card.answers(cq_create, wire::Status::insufficient_resources);
		ASSERT_FALSE(create_cq());
	}
	EXPECT_EQ(card.asked(qp_destroy) + card.asked(cq_destroy), 0u);
	card.answers(qp_create, wire::Status::ok);
	card.answers(cq_create, wire::Status::ok);
	EXPECT_TRUE(create_cq());
	EXPECT_TRUE(bed->add(qp, IB_SIGNAL_ALL_WR));
}

/* An invalid index makes the driver treat the card as failed. */
void out_of_range_queue_index_marks_the_card_as_failed(Test &test)
{
	Boxed<Card> card;
	ASSERT_TRUE(card->start(false));
	Channel &channel = card->rnic->channel();
	EXPECT_FALSE(channel.failed());
	__atomic_store_n(channel.card_memory().event_word, swap_be(u16{Card::entries}),
			 __ATOMIC_RELEASE);
	Message event;
	EXPECT_FALSE(channel.next_event(event));
	EXPECT_TRUE(channel.failed());
	EXPECT_EQ(card->cut.load_relaxed(), 1u);
}

/*
 * The queues must be inside the window, and their slots large enough for messages. The test makes
 * each word wrong in turn.
 */
void message_queue_layouts_with_an_invalid_size_or_offset_are_rejected(Test &test)
{
	auto words = kern::make_array<u64>(kern::Gfp::kernel, 16);
	ASSERT_OK(words);
	const auto page = kern::Mmio::over_memory(words.value().data(), 128);
	namespace at = wire::page;
	constexpr u64 window = 0x10000;
	const auto set = [&](size_t entries, size_t bytes, size_t pool, size_t shared) {
		page.write_be32(entries, 16);
		page.write_be32(bytes, 256);
		page.write_be32(pool, 0x2000);
		page.write_be32(shared, 0x1000);
	};
	set(at::q0_q_size, at::q0_msg_size, at::q0_pool_start, at::q0_shared);
	set(at::q1_q_size, at::q1_msg_size, at::q1_pool_start, at::q1_shared);
	set(at::q2_q_size, at::q2_msg_size, at::q2_pool_start, at::q2_shared);
	EXPECT_OK(read_queue_layout(page, window));
	const struct {
		size_t offset;
		u32 value;
	} wrong[] = {
		{at::q0_q_size, 1},          {at::q0_q_size, 65536},  {at::q0_msg_size, 248},
		{at::q0_msg_size, 260},      {at::q0_msg_size, 2048}, {at::q0_pool_start, 0xf008},
		{at::q0_pool_start, 0x2004}, {at::q0_shared, 0xffc8}, {at::q0_shared, 0xfffffff8},
		{at::q1_q_size, 0},          {at::q1_msg_size, 192},  {at::q1_shared, 0x10000},
		{at::q2_msg_size, 48},       {at::q2_shared, 0x1004},
	};
	for (const auto &[offset, value] : wrong) {
		const u32 before = page.read_be32(offset);
		page.write_be32(offset, value);
		EXPECT_ERROR(read_queue_layout(page, window), -EPROTO);
		page.write_be32(offset, before);
	}
}

/* Replies with attributes of new queues are validated; on failure, creation is undone. */
void newly_created_queue_is_destroyed_if_the_create_reply_of_the_card_is_invalid(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	rdma::QueuePair qp;
	card.reply_depth_offset = 1;
	EXPECT_FALSE(bed->add(qp, IB_SIGNAL_ALL_WR));
	EXPECT_EQ(card.asked(wire::MessageId::qp_destroy), 1u);
	card.reply_depth_offset = 0;
	/* The index belongs to another queue, or to no queue. */
	for (const u32 index : {3u, 0u, 2u, 32768u}) {
		card.next_queue_index = index;
		auto cq = rdma::CompletionQueue::create(&card.ib->ib, nullptr, nullptr, 8);
		EXPECT_ERROR(cq, index == 3 ? -EBUSY : -EPROTO);
	}
	EXPECT_EQ(card.asked(wire::MessageId::cq_destroy), 4u);
	card.next_queue_index = 100;
	EXPECT_TRUE(bed->add(qp, IB_SIGNAL_ALL_WR));
}

/* Local keys cover all memory. A peer can only use a region that is registered with the card. */
void only_regions_with_remote_access_are_registered_with_the_card(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	{
		auto local = rdma::MemoryRegion::all(bed->pd, IB_ACCESS_LOCAL_WRITE);
		ASSERT_OK(local);
		EXPECT_EQ(card.asked(wire::MessageId::mr_register), 0u);
		auto remote = rdma::MemoryRegion::all(bed->pd, IB_ACCESS_LOCAL_WRITE |
								       IB_ACCESS_REMOTE_READ);
		ASSERT_OK(remote);
		EXPECT_EQ(remote.value()->rkey, 0x01798a00u);
		const Message &asked = card.last(wire::MessageId::mr_register);
		EXPECT_EQ(asked.get<u16>(wire::mr_register::flags), 0x3eu);
		EXPECT_EQ(asked.get<u64>(wire::mr_register::pages + 24), u64{3} << 30);
		EXPECT_EQ(asked.get<u32>(wire::mr_register::pages_here), 4u);
	}
	EXPECT_EQ(card.asked(wire::MessageId::stag_dealloc), 1u);
	EXPECT_EQ(card.last(wire::MessageId::stag_dealloc).get<u32>(wire::object_handle),
		  0x01798a00u);
}

/* On every path through the state table, each expected event is reported, and at most one close. */
void iwcm_01_each_connect_reports_one_result_and_each_connection_reports_one_close(Test &test)
{
	kern::SeededRandom random(test.seed());
	for (unsigned int run = 0; run < 2000; run++) {
		Stream state = Stream::idle;
		unsigned int promised = 0, connects = 0, ends = 0, answers = 0;
		for (unsigned int i = 0; i < 12; i++) {
			const auto event =
				static_cast<StreamEvent>(random.below(u32{stream_event_count}));
			const StreamStep taken = step(state, event);
			if (taken.upcall == Upcall::invalid) {
				EXPECT_EQ(taken.next, state);
				continue;
			}
			promised += event == StreamEvent::connect;
			answers += taken.upcall == Upcall::connected ||
				   taken.upcall == Upcall::refused;
			connects += taken.upcall == Upcall::connected ||
				    taken.upcall == Upcall::accepted;
			ends += taken.upcall == Upcall::closed;
			state = taken.next;
			const bool open = state == Stream::established || state == Stream::closing;
			ASSERT_EQ(connects, ends + open);
			ASSERT_EQ(promised, answers + (state == Stream::connecting));
		}
	}
}

} // namespace

KUNIT_SUITE(
	amso1100_channel, KUNIT_CASE(status_of_a_card_reply_is_returned_as_errno),
	KUNIT_CASE(changes_of_an_interface_address_do_not_wait_for_the_card),
	KUNIT_CASE(bus_mastering_is_disabled_once_for_an_unresponsive_card),
	KUNIT_CASE(failed_start_of_the_card_undoes_completed_steps),
	KUNIT_CASE(bus_mastering_is_disabled_if_the_card_does_not_stop),
	KUNIT_CASE(qp_or_cq_creation_that_the_card_rejects_does_not_block_later_creations),
	KUNIT_CASE(out_of_range_queue_index_marks_the_card_as_failed),
	KUNIT_CASE(message_queue_layouts_with_an_invalid_size_or_offset_are_rejected),
	KUNIT_CASE(newly_created_queue_is_destroyed_if_the_create_reply_of_the_card_is_invalid),
	KUNIT_CASE(only_regions_with_remote_access_are_registered_with_the_card),
	KUNIT_CASE(iwcm_01_each_connect_reports_one_result_and_each_connection_reports_one_close));
