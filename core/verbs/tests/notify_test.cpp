// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the rules of completion notification (NOTIFY in Documentation/rules.rst) on each kind of
// hardware: hardware that raises an event when a CQ that contains completions is armed, and
// hardware that does not (NOTIFY-06).
#include <kern/thread.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_notify kinds[] = {SOFT_NOTIFY_FIRES, SOFT_NOTIFY_REPORTS, SOFT_NOTIFY_FIRES_ONCE};

/* A CQ whose handler counts. */
struct Counted {
	explicit Counted(ib_device *device)
	{
		auto made = rdma::CompletionQueue::create(device, handler, this, 64);
		if (made.ok())
			cq = made.take();
	}
	static void handler(ib_cq *, void *context)
	{
		static_cast<Counted *>(context)->events.add_relaxed(1);
	}

	bool complete(bool solicited = false, ib_wc_status status = IB_WC_SUCCESS)
	{
		ib_wc wc = {};
		wc.status = status;
		return soft_complete(cq->get(), &wc, solicited);
	}
	int arm(ib_cq_notify_flags flags) { return cq->request_notification(flags); }
	/* Handlers run at once, in a hard interrupt: what has been raised has been counted. */
	unsigned int count() const { return events.load_relaxed(); }

	CqRef cq;
	kern::Atomic<unsigned int> events{0};
};

soft_options hard(soft_notify kind)
{
	return {.notify = kind, .context = SOFT_HARD_INTERRUPT, .lid = 1};
}

/* Exactly one of SOLICITED and NEXT_COMP arms; anything else is EINVAL and arms nothing. */
void notify_01_arming_with_invalid_flags_is_rejected(Test &test)
{
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		for (unsigned int flags = 0; flags < 16; flags++) {
			const unsigned int wanted = flags & IB_CQ_SOLICITED_MASK;
			const bool valid =
				(wanted == IB_CQ_SOLICITED || wanted == IB_CQ_NEXT_COMP) &&
				flags < 8;
			if (!valid)
				EXPECT_EQ(counted.arm(static_cast<ib_cq_notify_flags>(flags)),
					  -EINVAL);
		}
		EXPECT_TRUE(counted.complete(true));
		EXPECT_EQ(counted.count(), 0u);
		ib_wc wc;
		EXPECT_EQ(counted.cq->poll(1, &wc), 1);
		EXPECT_EQ(counted.arm(IB_CQ_SOLICITED), 0);
		EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
	}
}

/* A request that fails arms nothing. */
void notify_02_failed_arm_request_does_not_arm_the_cq(Test &test)
{
	Device device(hard(SOFT_NOTIFY_FIRES));
	ASSERT_TRUE(device.ok());
	Counted counted(device);
	ASSERT_TRUE(counted.cq);
	soft_fail(device, SOFT_REQ_NOTIFY_CQ, 1, -EIO);
	EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP), -EIO);
	EXPECT_TRUE(counted.complete());
	EXPECT_EQ(counted.count(), 0u);
}

/*
 * If arming with REPORT_MISSED_EVENTS returns zero, every completion since the last poll raises an
 * event.
 */
void notify_03_armed_cq_raises_an_event_for_the_next_completion(Test &test)
{
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
		EXPECT_TRUE(counted.complete());
		EXPECT_EQ(counted.count(), 1u);
		/*
		 * With a completion in the queue, either an event follows, or the consumer is asked
		 * to poll. One of both must happen.
		 */
		const int result = counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		EXPECT_GE(result, 0);
		EXPECT_TRUE(result > 0 || counted.count() == 2);
	}
}

/*
 * Arming returns a positive value only with REPORT_MISSED_EVENTS, and only if a completion may have
 * been missed.
 */
void notify_04_missed_completions_are_reported_on_request(Test &test)
{
	Device device(hard(SOFT_NOTIFY_REPORTS));
	ASSERT_TRUE(device.ok());
	Counted counted(device);
	ASSERT_TRUE(counted.cq);
	ASSERT_TRUE(counted.complete());
	EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP), 0);
	EXPECT_GT(counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
	ib_wc wc;
	EXPECT_EQ(counted.cq->poll(1, &wc), 1);
	EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
}

/* Without REPORT_MISSED_EVENTS, arming does not check whether there is a completion. */
void notify_05_arming_reads_the_cq_only_to_report_missed_events(Test &test)
{
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		ib_cq *cq = counted.cq->get();
		for (ib_cq_notify_flags flags : {IB_CQ_SOLICITED, IB_CQ_NEXT_COMP}) {
			const unsigned long arms = soft_calls(device, SOFT_REQ_NOTIFY_CQ);
			ASSERT_TRUE(counted.complete());
			EXPECT_EQ(counted.arm(flags), 0);
			EXPECT_EQ(soft_calls(device, SOFT_REQ_NOTIFY_CQ), arms + 1);
			EXPECT_EQ(soft_missed_event_checks(cq), 0u);
		}
		EXPECT_EQ(soft_calls(device, SOFT_POLL_CQ) + soft_calls(device, SOFT_PEEK_CQ), 0u);
		EXPECT_GE(counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
		EXPECT_EQ(soft_missed_event_checks(cq), kind == SOFT_NOTIFY_FIRES ? 0u : 1u);
	}
}

/*
 * Hardware that raises an event for a late arm does not report missed events. The other kind
 * reports them and raises no event.
 */
void notify_06_arming_a_nonempty_cq_raises_an_event_or_reports_missed_events(Test &test)
{
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		ASSERT_TRUE(counted.complete());
		const int result = counted.arm(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		EXPECT_EQ(result, kind == SOFT_NOTIFY_REPORTS ? 1 : 0);
		EXPECT_EQ(counted.count(), kind == SOFT_NOTIFY_REPORTS ? 0u : 1u);
	}
}

/*
 * Armed again after the event without a poll: there is another event, or the return value requests
 * a poll. On hardware that raises only one event for a completion, the driver has to return this
 * value.
 */
void notify_06_rearming_without_a_poll_raises_an_event_or_reports_missed_events(Test &test)
{
	constexpr auto or_missed =
		static_cast<ib_cq_notify_flags>(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		EXPECT_EQ(counted.arm(or_missed), 0);
		ASSERT_TRUE(counted.complete());
		EXPECT_EQ(counted.count(), 1u);
		const int result = counted.arm(or_missed);
		EXPECT_EQ(result, kind == SOFT_NOTIFY_FIRES ? 0 : 1);
		EXPECT_EQ(counted.count(), kind == SOFT_NOTIFY_FIRES ? 2u : 1u);
		ib_wc wc;
		EXPECT_EQ(counted.cq->poll(1, &wc), 1);
		EXPECT_EQ(counted.arm(or_missed), 0);
	}
}

/*
 * A solicited arm fires only for solicited completions and errors. NEXT_COMP widens it, and
 * SOLICITED does not narrow NEXT_COMP.
 */
void notify_07_solicited_arm_ignores_unsolicited_completions(Test &test)
{
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		EXPECT_EQ(counted.arm(IB_CQ_SOLICITED), 0);
		EXPECT_TRUE(counted.complete(false));
		EXPECT_EQ(counted.count(), 0u);
		EXPECT_TRUE(counted.complete(true));
		EXPECT_EQ(counted.count(), 1u);
		ib_wc wcs[8];
		EXPECT_EQ(counted.cq->poll(8, wcs), 2);

		EXPECT_EQ(counted.arm(IB_CQ_SOLICITED), 0);
		EXPECT_TRUE(counted.complete(false, IB_WC_GENERAL_ERR));
		EXPECT_EQ(counted.count(), 2u);
		EXPECT_EQ(counted.cq->poll(8, wcs), 1);

		EXPECT_EQ(counted.arm(IB_CQ_SOLICITED), 0);
		EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP), 0);
		EXPECT_TRUE(counted.complete(false));
		EXPECT_EQ(counted.count(), 3u);
		EXPECT_EQ(counted.cq->poll(8, wcs), 1);

		EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP), 0);
		EXPECT_EQ(counted.arm(IB_CQ_SOLICITED), 0);
		EXPECT_TRUE(counted.complete(false));
		EXPECT_EQ(counted.count(), 4u);
	}
}

/* Each arm raises only one event. */
void notify_08_each_arm_raises_only_one_event(Test &test)
{
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Counted counted(device);
		ASSERT_TRUE(counted.cq);
		EXPECT_EQ(counted.arm(IB_CQ_NEXT_COMP), 0);
		for (int i = 0; i < 10; i++)
			EXPECT_TRUE(counted.complete(true));
		EXPECT_EQ(counted.count(), 1u);
	}
}

/*
 * A consumer like NAPI: it polls until the queue is empty, arms it, checks for missed completions,
 * and sleeps. The producer is called between the last empty poll and the arm, and right after the
 * arm, alternately.
 */
class Race
{
public:
	Race(ib_device *device, unsigned int total) : total_(total)
	{
		auto made = rdma::CompletionQueue::create(device, handler, this, 256);
		if (made.ok())
			cq_ = made.take();
	}

	/*
	 * Returns the number of completions that the consumer has seen when all have been produced
	 * and nothing more happens.
	 */
	unsigned int run(u64 seed)
	{
		kern::SeededRandom random(seed);
		ib_wc wcs[16];

		if (!cq_)
			return 0;
		cq_->request_notification(IB_CQ_NEXT_COMP);
		produce(1 + random.below(4));
		while (true) {
			/*
			 * The consumer sleeps. Everything runs in this task and in interrupts that
			 * it takes, so no event is pending.
			 */
			if (!kern::read_once(event_))
				return seen_;
			kern::write_once(event_, false);
			bool again;
			do {
				int got;
				while ((got = cq_->poll(16, wcs)) > 0)
					seen_ += static_cast<unsigned int>(got);
				/* This is the window between poll and arm. */
				if (random.below(4))
					produce(1 + random.below(4));
				again = cq_->request_notification(IB_CQ_NEXT_COMP |
								  IB_CQ_REPORT_MISSED_EVENTS) > 0;
				if (random.below(4) == 0)
					produce(1 + random.below(4));
			} while (again);
			/*
			 * Before the consumer sleeps on an empty queue, a completion must be
			 * produced, or the run would end. If the queue is not empty, the run ends.
			 */
			if (!kern::read_once(event_) && ib_peek_cq(cq_->get(), 1) == 0)
				produce(1);
			if ((seen_ & 0xfff) == 0)
				kern::cond_resched();
		}
	}
	unsigned int produced() const { return produced_; }

private:
	static void handler(ib_cq *, void *context)
	{
		kern::write_once(static_cast<Race *>(context)->event_, true);
	}

	void produce(unsigned int count)
	{
		ib_wc wc = {};
		for (; count > 0 && produced_ < total_; count--)
			if (soft_complete(cq_->get(), &wc, false))
				produced_++;
	}

	CqRef cq_;
	const unsigned int total_;
	unsigned int produced_ = 0;
	unsigned int seen_ = 0;
	bool event_ = false;
};

constexpr unsigned int a_million = 1000000;

/*
 * None of a million completions that arrive between the last poll and the arm is lost, on either
 * kind of hardware. Slow kernels use a smaller number.
 */
void notify_09_no_completion_that_arrives_between_poll_and_arm_is_lost(Test &test)
{
	const unsigned int count = sleeping_is_watched() ? a_million / 50 : a_million;
	for (soft_notify kind : kinds) {
		Device device(hard(kind));
		ASSERT_TRUE(device.ok());
		Race race(device, count);
		const unsigned int seen = race.run(test.seed());
		EXPECT_EQ(race.produced(), count);
		EXPECT_EQ(seen, count);
	}
}

/* The same race detects a driver that does not check for missed completions after arming. */
void notify_09_arm_race_test_detects_a_driver_that_loses_completions(Test &test)
{
	Device device(hard(SOFT_NOTIFY_FORGETS));
	ASSERT_TRUE(device.ok());
	Race race(device, a_million);
	const unsigned int seen = race.run(test.seed());
	EXPECT_LT(seen, a_million);
}

/*
 * The same with a producer on another CPU, or preempting at any instruction, against the midlayer's
 * own poller.
 */
struct Storm {
	explicit Storm(ib_device *device, ib_poll_context context)
	{
		auto made = rdma::CompletionQueue::create(device, this, 1024, 0, context);
		if (made.ok())
			cq = made.take();
		cqe.owner = this;
	}
	struct Counter {
		ib_cqe cqe{.done = [](ib_cq *, ib_wc *wc) {
			reinterpret_cast<Counter *>(wc->wr_cqe)->owner->seen.add_relaxed(1);
		}};
		Storm *owner = nullptr;
	};
	int produce()
	{
		ib_wc wc = {};
		wc.wr_cqe = &cqe.cqe;
		for (unsigned int produced = 0; produced < total; produced++) {
			/* Let the poller reach the window before the next burst. */
			while (produced - seen.load_relaxed() > 512)
				kern::sleep_us(10, 20);
			soft_complete(cq->get(), &wc, false);
			if (produced % 7 == 0 &&
			    !eventually([&] { return seen.load_relaxed() > produced; }))
				break;
		}
		finished.complete();
		return 0;
	}

	static constexpr unsigned int total = 5000;
	kern::Completion finished;
	CqRef cq;
	Counter cqe;
	kern::Atomic<unsigned int> seen{0};
};

void notify_09_pollers_lose_no_completion_under_load(Test &test)
{
	for (soft_notify kind : kinds) {
		for (ib_poll_context context :
		     {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE}) {
			Device device({.notify = kind, .context = SOFT_HARD_INTERRUPT, .lid = 1});
			ASSERT_TRUE(device.ok());
			Storm storm(device, context);
			ASSERT_TRUE(storm.cq);
			/*
			 * Completions are delayed into the window, so that the test also works on
			 * one CPU.
			 */
			soft_complete_late(device, true);
			{
				auto thread = kern::Thread::create(
					"weft-storm", kern::method<&Storm::produce>, &storm);
				ASSERT_OK(thread);
				/*
				 * The test ends even if an event is lost, because each burst waits
				 * only for a limited time.
				 */
				storm.finished.wait();
			}
			ASSERT_TRUE(eventually(
				[&] { return storm.seen.load_relaxed() == Storm::total; }));
		}
	}
}

} // namespace

KUNIT_SUITE_BEFORE(
	verbs_notify, ::fixture::on_plain_devices,
	KUNIT_CASE(notify_01_arming_with_invalid_flags_is_rejected),
	KUNIT_CASE(notify_02_failed_arm_request_does_not_arm_the_cq),
	KUNIT_CASE(notify_03_armed_cq_raises_an_event_for_the_next_completion),
	KUNIT_CASE(notify_04_missed_completions_are_reported_on_request),
	KUNIT_CASE(notify_05_arming_reads_the_cq_only_to_report_missed_events),
	KUNIT_CASE(notify_06_arming_a_nonempty_cq_raises_an_event_or_reports_missed_events),
	KUNIT_CASE(notify_06_rearming_without_a_poll_raises_an_event_or_reports_missed_events),
	KUNIT_CASE(notify_07_solicited_arm_ignores_unsolicited_completions),
	KUNIT_CASE(notify_08_each_arm_raises_only_one_event),
	KUNIT_CASE(notify_09_no_completion_that_arrives_between_poll_and_arm_is_lost),
	KUNIT_CASE(notify_09_arm_race_test_detects_a_driver_that_loses_completions),
	KUNIT_CASE(notify_09_pollers_lose_no_completion_under_load));
