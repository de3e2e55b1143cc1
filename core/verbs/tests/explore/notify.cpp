// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule NOTIFY-09 under many thread interleavings (weft-explore(1)): completions arrive at any
// moment while the midlayer polls. There are only a few completions, so that a run is short.
#include <kern/completion.hpp>
#include <kern/thread.hpp>
#include "../fixture.hpp"

using namespace fixture;

namespace
{

constexpr unsigned int total = 3;

/* A CQ that the midlayer polls, and a task that adds completions to it. */
struct Producer {
	Producer(ib_device *device, ib_poll_context context)
	{
		auto made = rdma::CompletionQueue::create(device, this, 16, 0, context);
		if (made.ok())
			cq = made.take();
		counter.owner = this;
	}
	struct Counter : ib_cqe {
		Counter()
		    : ib_cqe{.done = [](ib_cq *, ib_wc *wc) {
			      static_cast<Counter *>(wc->wr_cqe)->owner->seen_one();
		      }}
		{
		}
		Producer *owner = nullptr;
	};
	void seen_one()
	{
		if (seen.fetch_add(1) + 1 == total)
			all_seen.complete();
	}
	int produce()
	{
		for (unsigned int i = 0; i < total; i++) {
			ib_wc wc = {};
			wc.wr_cqe = &counter;
			soft_complete(cq->get(), &wc, false);
		}
		return 0;
	}

	Counter counter;
	kern::Atomic<unsigned int> seen{0};
	kern::Completion all_seen;
	CqRef cq;
};

/*
 * No completion is lost: the test waits for each without a time-out, so that a lost event shows as
 * a run that hangs.
 */
void produced_and_polled(Test &test, soft_notify kind, ib_poll_context context)
{
	Device device({.notify = kind, .context = SOFT_HARD_INTERRUPT, .lid = 1});
	ASSERT_TRUE(device.ok());
	Producer producer(device, context);
	ASSERT_TRUE(producer.cq);
	auto thread = kern::Thread::create("producer", kern::method<&Producer::produce>, &producer);
	ASSERT_OK(thread);
	producer.all_seen.wait();
	EXPECT_EQ(producer.seen.load_relaxed(), total);
}

void softirq_poller_loses_no_completion_if_arming_a_nonempty_cq_raises_an_event(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_FIRES, IB_POLL_SOFTIRQ);
}
void workqueue_poller_loses_no_completion_if_arming_a_nonempty_cq_raises_an_event(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_FIRES, IB_POLL_WORKQUEUE);
}
void softirq_poller_loses_no_completion_if_arming_reports_missed_completions(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_REPORTS, IB_POLL_SOFTIRQ);
}
void workqueue_poller_loses_no_completion_if_arming_reports_missed_completions(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_REPORTS, IB_POLL_WORKQUEUE);
}
void softirq_poller_loses_no_completion_if_a_completion_raises_at_most_one_event(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_FIRES_ONCE, IB_POLL_SOFTIRQ);
}
void workqueue_poller_loses_no_completion_if_a_completion_raises_at_most_one_event(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_FIRES_ONCE, IB_POLL_WORKQUEUE);
}
/* A driver that does not check for missed completions after arming: the explorer must find this. */
void explorer_detects_a_lost_completion_if_arming_does_not_report_missed_completions(Test &test)
{
	produced_and_polled(test, SOFT_NOTIFY_FORGETS, IB_POLL_SOFTIRQ);
}

} // namespace

KUNIT_SUITE(
	explore_notify,
	KUNIT_CASE(softirq_poller_loses_no_completion_if_arming_a_nonempty_cq_raises_an_event),
	KUNIT_CASE(workqueue_poller_loses_no_completion_if_arming_a_nonempty_cq_raises_an_event),
	KUNIT_CASE(softirq_poller_loses_no_completion_if_arming_reports_missed_completions),
	KUNIT_CASE(workqueue_poller_loses_no_completion_if_arming_reports_missed_completions),
	KUNIT_CASE(softirq_poller_loses_no_completion_if_a_completion_raises_at_most_one_event),
	KUNIT_CASE(workqueue_poller_loses_no_completion_if_a_completion_raises_at_most_one_event));
/* A separate suite, because the explorer must find this case to fail. */
KUNIT_SUITE(
	notify_defects,
	KUNIT_CASE(
		explorer_detects_a_lost_completion_if_arming_does_not_report_missed_completions));
