// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the rules of completion notification (NOTIFY in Documentation/rules.rst) on hardware that
// raises no event for completions that were in the queue when it was armed.
#include <kern/netdev.hpp>
#include "fixture.hpp"

using namespace amso1100;
using kern::kunit::Test;

namespace
{

constexpr auto next_or_missed =
	static_cast<ib_cq_notify_flags>(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);

/*
 * NOTIFY-01: flags that select no event, or both, are rejected, and nothing is written to the card.
 */
void notify_01_invalid_flags_do_not_arm_the_cq(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	const kern::Mmio &shared = bed->own_cq().card_memory().shared;
	const u8 armed = shared.read8(wire::shared::armed),
		 notification = shared.read8(wire::shared::notification);
	for (const int bad : {0, 3, 4, 7, 9}) {
		EXPECT_EQ(bed->arm(static_cast<ib_cq_notify_flags>(bad)), -EINVAL);
		EXPECT_EQ(shared.read8(wire::shared::armed), armed);
		EXPECT_EQ(shared.read8(wire::shared::notification), notification);
	}
	EXPECT_TRUE(bed->complete(true));
	EXPECT_EQ(bed->count(), 0u);
}

/*
 * If arming with REPORT_MISSED_EVENTS returns zero, every completion since the last poll raises an
 * event.
 */
void notify_03_armed_cq_raises_an_event_for_the_next_completion(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	EXPECT_EQ(bed->arm(next_or_missed), 0);
	EXPECT_TRUE(bed->complete());
	EXPECT_EQ(bed->count(), 1u);
	const int result = bed->arm(next_or_missed);
	EXPECT_TRUE(result > 0 || bed->count() == 2);
}

/*
 * Arming returns a positive value only with REPORT_MISSED_EVENTS, and only if a completion may have
 * been missed.
 */
void notify_04_missed_completions_are_reported_on_request(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	ASSERT_TRUE(bed->complete());
	EXPECT_EQ(bed->arm(IB_CQ_NEXT_COMP), 0);
	EXPECT_GT(bed->arm(next_or_missed), 0);
	ib_wc wc;
	EXPECT_EQ(bed->cq->poll(1, &wc), 1);
	EXPECT_EQ(bed->arm(next_or_missed), 0);
}

/* Without REPORT_MISSED_EVENTS, arming does not read the queue. */
void notify_05_arming_reads_the_cq_only_to_report_missed_events(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	const Cq &cq = bed->own_cq();
	for (const auto flags : {IB_CQ_SOLICITED, IB_CQ_NEXT_COMP}) {
		ASSERT_TRUE(bed->complete());
		EXPECT_EQ(bed->arm(flags), 0);
		EXPECT_EQ(cq.missed_event_checks(), 0ul);
	}
	EXPECT_GT(bed->arm(next_or_missed), 0);
	EXPECT_EQ(cq.missed_event_checks(), 1ul);
}

/*
 * On hardware that raises no event for existing completions, arming reports completions that are
 * already in the queue.
 */
void notify_06_arming_a_nonempty_cq_reports_missed_completions(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	ASSERT_TRUE(bed->complete());
	EXPECT_EQ(bed->arm(next_or_missed), 1);
	EXPECT_EQ(bed->count(), 0u);
	EXPECT_TRUE(bed->complete());
	EXPECT_EQ(bed->count(), 1u);
}

/*
 * A solicited arm fires only for solicited completions and errors. NEXT_COMP widens it, and
 * SOLICITED does not narrow NEXT_COMP.
 */
void notify_07_solicited_arm_ignores_unsolicited_completions(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	EXPECT_EQ(bed->arm(IB_CQ_SOLICITED), 0);
	EXPECT_TRUE(bed->complete());
	EXPECT_EQ(bed->count(), 0u);
	EXPECT_TRUE(bed->complete(true));
	EXPECT_EQ(bed->count(), 1u);
	EXPECT_EQ(bed->arm(IB_CQ_SOLICITED), 0);
	ASSERT_EQ(bed->send(1), 0);
	EXPECT_TRUE(bed->card->complete_send(1, wire::Status::flushed));
	EXPECT_EQ(bed->count(), 2u);
	ib_wc wcs[8];
	EXPECT_EQ(bed->cq->poll(8, wcs), 3);

	EXPECT_EQ(bed->arm(IB_CQ_SOLICITED), 0);
	EXPECT_EQ(bed->arm(IB_CQ_NEXT_COMP), 0);
	EXPECT_TRUE(bed->complete());
	EXPECT_EQ(bed->count(), 3u);
	EXPECT_EQ(bed->arm(IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(bed->arm(IB_CQ_SOLICITED), 0);
	EXPECT_TRUE(bed->complete());
	EXPECT_EQ(bed->count(), 4u);
}

/* Each arm raises only one event. */
void notify_08_each_arm_raises_only_one_event(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	EXPECT_EQ(bed->arm(IB_CQ_NEXT_COMP), 0);
	for (int i = 0; i < 10; i++)
		EXPECT_TRUE(bed->complete(true));
	EXPECT_EQ(bed->count(), 1u);
}

/*
 * A consumer that uses NAPI like a network interface. The card's completions arrive alternately
 * between the last empty poll and the arm, and directly after the arm. Nothing else schedules the
 * poll.
 */
class Consumer : public kern::Napi<Consumer>
{
public:
	Consumer(u32 total, u64 seed) : total_(total), random_(seed) {}
	~Consumer()
	{
		if (!dev_)
			return;
		disable();
		del();
		kern_netdev_free(dev_);
	}
	bool start()
	{
		if (!card_.there() || !card_->start())
			return false;
		auto pd = rdma::Pd::create(&card_->ib->ib);
		auto cq = rdma::CompletionQueue::create(
			&card_->ib->ib,
			[](ib_cq *, void *context) {
				static_cast<Consumer *>(context)->schedule();
			},
			this, Bed::cqe);
		if (!pd || !cq)
			return false;
		cq_ = cq.take();
		card_->knows(Cq::of(cq_->get()));
		ib_qp_init_attr attr{};
		attr.cap = {.max_send_wr = 64,
			    .max_recv_wr = 1,
			    .max_send_sge = 1,
			    .max_recv_sge = 1,
			    .max_inline_data = 0};
		attr.qp_type = IB_QPT_RC;
		auto qp = rdma::QueuePair::create(pd.take(), cq_, cq_, attr);
		dev_ = kern_netdev_alloc("amso1100%d", 1);
		if (!qp || !dev_)
			return false;
		qp_ = qp.take();
		add(dev_, false);
		enable();
		return true;
	}
	/* Produces the first completions and those that its own poll causes. */
	void run() { schedule_from_task(); }
	u32 seen() const { return seen_.load_relaxed(); }

	int poll(int budget)
	{
		ib_wc wcs[16];
		int work = 0, got;
		while (work < budget &&
		       (got = cq_->poll(budget - work < 16 ? budget - work : 16, wcs)) > 0)
			work += got;
		seen_.add_relaxed(static_cast<u32>(work));
		if (work == budget || !complete_done(work))
			return work;
		const bool before = random_.below(4) != 0;
		if (before)
			produce();
		if (cq_->request_notification(next_or_missed) > 0)
			schedule();
		if (!before)
			produce();
		return work;
	}

private:
	void produce()
	{
		for (u32 burst = 1 + random_.below(4); burst && produced_ < total_; burst--) {
			ib_sge sge{0x1000, 8, 0};
			ib_send_wr wr{};
			wr.sg_list = &sge;
			wr.num_sge = 1;
			wr.opcode = IB_WR_SEND;
			wr.send_flags = IB_SEND_SIGNALED;
			const ib_send_wr *bad;
			produced_ += qp_.post_send(&wr, &bad) == 0 && card_->complete_send(1);
		}
	}

	const u32 total_;
	kern::SeededRandom random_;
	Boxed<Card> card_;
	kern::Ref<rdma::CompletionQueue> cq_;
	rdma::QueuePair qp_;
	net_device *dev_ = nullptr;
	u32 produced_ = 0; /* number of completions that the poll has produced */
	kern::Atomic<u32> seen_{0};
};

/*
 * Returns true if the kernel detects sleeping in atomic context, which means that it is a debug
 * kernel.
 */
bool sleeping_is_watched()
{
	kern::NoSleepSection section;
	return !kern_may_sleep();
}

/*
 * None of a million completions that arrive between NAPI's last poll and the arm is lost. Slow
 * kernels use a smaller number.
 */
void notify_09_napi_loses_no_completion_between_poll_and_arm(Test &test)
{
	const u32 a_million = sleeping_is_watched() ? 20000 : 1000000;
	Boxed<Consumer> consumer(a_million, test.seed());
	ASSERT_TRUE(consumer->start());
	consumer->run();
	u32 before;
	do {
		/* Repeats as long as there is progress. */
		before = consumer->seen();
		(void)kern::kunit::eventually([&, deadline = kern::Deadline::in_ms(5000)] {
			return consumer->seen() == a_million || deadline.passed();
		});
	} while (consumer->seen() != a_million && consumer->seen() != before);
	EXPECT_EQ(consumer->seen(), a_million);
}

} // namespace

KUNIT_SUITE(amso1100_notify, KUNIT_CASE(notify_01_invalid_flags_do_not_arm_the_cq),
	    KUNIT_CASE(notify_03_armed_cq_raises_an_event_for_the_next_completion),
	    KUNIT_CASE(notify_04_missed_completions_are_reported_on_request),
	    KUNIT_CASE(notify_05_arming_reads_the_cq_only_to_report_missed_events),
	    KUNIT_CASE(notify_06_arming_a_nonempty_cq_reports_missed_completions),
	    KUNIT_CASE(notify_07_solicited_arm_ignores_unsolicited_completions),
	    KUNIT_CASE(notify_08_each_arm_raises_only_one_event),
	    KUNIT_CASE(notify_09_napi_loses_no_completion_between_poll_and_arm));
