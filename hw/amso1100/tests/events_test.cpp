// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests that events of the card are handled in bounded slices, in order with replies to requests,
 * and without trusting the card.
 */
#include <kern/time.hpp>
#include <rdma/iw_cm.h>
#include "fixture.hpp"
#include "../qp.hpp"

using namespace amso1100;
using kern::kunit::Test;

namespace
{

[[gnu::noinline]] void say(Bed &bed, const EventRecorder &recorder)
{
	const Message event = recorder.event();
	bed.card->say(event);
}

/* A card that always has another event does not block code that waits for the last event. */
void flush_events_returns_even_if_the_card_keeps_adding_events(Test &test)
{
	constexpr unsigned int flood = 5'000;
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	EventRecorder recorder(*bed);
	ASSERT_TRUE(recorder.ok());
	recorder.on_event = [](EventRecorder &self, Bed &on) {
		kern::sleep_us(20, 50);
		if (self.recorded.load_acquire() < flood)
			say(on, self);
	};
	say(*bed, recorder);
	bed->card->interrupt();
	for (unsigned int i = 0; i < 3; i++)
		bed->card->rnic->flush_events();
	EXPECT_LT(recorder.recorded.load_acquire(), flood);
	/* The driver continues without another interrupt. */
	EXPECT_TRUE(eventually([&] { return recorder.recorded.load_acquire() == flood; }));
}

/* flush_events() does not depend on the interrupt. */
void flush_events_handles_pending_events_even_if_the_card_raised_no_interrupt(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	EventRecorder recorder(*bed);
	ASSERT_TRUE(recorder.ok());
	say(*bed, recorder);
	bed->card->rnic->flush_events();
	EXPECT_EQ(recorder.recorded.load_acquire(), 1u);
}

/*
 * LOCK-06: for a failed card, the recovery code calls the handlers after the last interrupt has
 * ended, and no later interrupt calls them.
 */
void lock_06_interrupts_of_a_failed_card_do_not_call_completion_handlers(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	const unsigned int before = card.synchronized.load_acquire();
	bed->waited = [](const Bed &on) { return on.card->synchronized.load_acquire(); };
	card.rnic->channel().fail("is broken by a test");
	card.rnic->flush_events();
	ASSERT_EQ(bed->count(), 1u);
	EXPECT_GT(bed->noted, before);
	card.registers.write32(wire::reg::host_hint, bed->own_cq().card_memory().queue_index);
	card.interrupt();
	EXPECT_EQ(bed->count(), 1u);
	card.registers.write32(wire::reg::host_hint, wire::hint_none);
}

/*
 * Only counted hints are read; the driver does not read one more to detect the end. Hints from
 * before the card started to count have no effect once they have been consumed.
 */
void driver_stops_reading_host_hints_after_reading_as_many_as_the_card_has_counted(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	u16 &counted = *card.rnic->channel().card_memory().hint_word;
	const auto hints_for_ever = [&] {
		const unsigned int before = bed->count();
		card.registers.write32(wire::reg::host_hint,
				       bed->own_cq().card_memory().queue_index);
		card.interrupt();
		card.registers.write32(wire::reg::host_hint, wire::hint_none);
		return bed->count() - before;
	};
	counted = swap_be(u16{1});
	EXPECT_EQ(hints_for_ever(), 1u);
	/* The card has counted no other hint. */
	EXPECT_EQ(hints_for_ever(), wire::most_queue_index + 1);
	card.interrupt();
	counted = swap_be(u16{2});
	EXPECT_EQ(hints_for_ever(), 1u);
}

/* MGMT-09: requests that do not fit into a full CQ are flushed when it has space again. */
void mgmt_09_flush_cqes_that_do_not_fit_into_a_full_cq_are_added_when_the_cq_is_polled(Test &test)
{
	constexpr u32 posted = 10, room = 4;
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	bed->qp = {};
	auto small = rdma::CompletionQueue::create(&bed->card->ib->ib, Bed::handler, &*bed, room);
	ASSERT_OK(small);
	bed->cq = small.take();
	bed->card->knows(bed->own_cq());
	ASSERT_TRUE(bed->add(bed->qp, IB_SIGNAL_ALL_WR));
	for (u32 i = 1; i <= posted; i++)
		ASSERT_EQ(bed->send(i), 0);
	bed->card->rnic->channel().fail("is broken by a test");
	for (u32 i = 1; i <= posted; i++) {
		ib_wc wc;
		ASSERT_TRUE(eventually([&] { return bed->cq->poll(1, &wc) == 1; }));
		EXPECT_EQ(wc.wr_id, i);
		EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
	}
	EXPECT_GT(bed->count(), 1u);
}

/*
 * A reject does not wait for space in the card's request queue, because there may be none until
 * events have been read.
 */
void connection_reject_does_not_wait_for_request_queue_space(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	EventRecorder recorder(*bed);
	ASSERT_TRUE(recorder.ok());
	recorder.on_event = [](EventRecorder &self, Bed &on) {
		on.card->rnic->reject_later(self.recorded.load_acquire());
	};
	card.holding.store_release(true);
	for (u32 i = 1; i < Card::entries; i++)
		card.rnic->reject(100 + i);
	const u64 begun = kern::now_ns();
	say(*bed, recorder);
	say(*bed, recorder);
	card.rnic->flush_events();
	EXPECT_EQ(recorder.recorded.load_acquire(), 2u);
	EXPECT_LT((kern::now_ns() - begun) / 1'000'000, u64{10'000});
	card.holding.store_release(false);
	EXPECT_TRUE(eventually([&] {
		return card.asked(wire::MessageId::request_reject) == Card::entries - 1 + 2;
	}));
	EXPECT_FALSE(card.rnic->channel().failed());
}

} // namespace

KUNIT_SUITE(
	amso1100_events, KUNIT_CASE(flush_events_returns_even_if_the_card_keeps_adding_events),
	KUNIT_CASE(flush_events_handles_pending_events_even_if_the_card_raised_no_interrupt),
	KUNIT_CASE(lock_06_interrupts_of_a_failed_card_do_not_call_completion_handlers),
	KUNIT_CASE(driver_stops_reading_host_hints_after_reading_as_many_as_the_card_has_counted),
	KUNIT_CASE(
		mgmt_09_flush_cqes_that_do_not_fit_into_a_full_cq_are_added_when_the_cq_is_polled),
	KUNIT_CASE(connection_reject_does_not_wait_for_request_queue_space));
