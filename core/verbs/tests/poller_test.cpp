// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests completion queues, the midlayer's polling contexts, and draining.
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

struct Request {
	ib_cqe cqe{.done = done};
	kern::Atomic<unsigned int> completions{0};
	kern::Atomic<int> status{-1};
	/* The number of requests that completed before this one. */
	kern::Atomic<unsigned int> order{0};
	static inline constinit kern::Atomic<unsigned int> clock{0};

	static void done(ib_cq *, ib_wc *wc)
	{
		auto *self = reinterpret_cast<Request *>(wc->wr_cqe);
		self->status.store_relaxed(wc->status);
		self->order.store_relaxed(clock.fetch_add(1));
		self->completions.add_relaxed(1);
	}
};
static_assert(__builtin_offsetof(Request, cqe) == 0);

/* Invalid sizes, vectors, flags and contexts return EINVAL. */
void cq_rejects_invalid_arguments(Test &test)
{
	Device device({.vectors = 2, .lid = 1});
	ASSERT_TRUE(device.ok());
	ib_cq_init_attr attr = {.cqe = 0, .comp_vector = 0, .flags = 0};
	EXPECT_EQ(rdma::ptr_err(ib_create_cq(device, nullptr, nullptr, nullptr, &attr)), -EINVAL);
	attr.cqe = static_cast<unsigned int>(device.get()->attrs.max_cqe) + 1;
	EXPECT_EQ(rdma::ptr_err(ib_create_cq(device, nullptr, nullptr, nullptr, &attr)), -EINVAL);
	attr = {.cqe = 1, .comp_vector = 2, .flags = 0};
	EXPECT_EQ(rdma::ptr_err(ib_create_cq(device, nullptr, nullptr, nullptr, &attr)), -EINVAL);
	attr = {.cqe = 1, .comp_vector = 0, .flags = 1};
	EXPECT_EQ(rdma::ptr_err(ib_create_cq(device, nullptr, nullptr, nullptr, &attr)), -EINVAL);
	EXPECT_EQ(rdma::ptr_err(ib_alloc_cq(device, nullptr, -1, 0, IB_POLL_SOFTIRQ)), -EINVAL);
	EXPECT_EQ(rdma::ptr_err(ib_alloc_cq(device, nullptr, 1, -1, IB_POLL_SOFTIRQ)), -EINVAL);
	EXPECT_EQ(
		rdma::ptr_err(ib_alloc_cq(device, nullptr, 1, 0, static_cast<ib_poll_context>(9))),
		-EINVAL);
}

/*
 * A CQ uses one of the device's vectors, and its events arrive by that vector's interrupt only.
 * Other vectors return EINVAL.
 */
void chan_01_completion_events_use_the_vector_of_their_cq(Test &test)
{
	struct Notified {
		kern::Atomic<unsigned int> interrupts{0}, other{0};

		static void handler(ib_cq *, void *notified)
		{
			auto &self = *static_cast<Notified *>(notified);
			(kern_in_hard_irq() ? self.interrupts : self.other).fetch_add(1);
		}
	};
	constexpr int vectors = 3;
	Device device({.vectors = vectors, .context = SOFT_HARD_INTERRUPT, .lid = 1});
	ASSERT_TRUE(device.ok());
	EXPECT_EQ(device.get()->num_comp_vectors, vectors);
	unsigned long raised[vectors] = {};
	for (int vector = -1; vector <= vectors; vector++) {
		Notified notified;
		const ib_cq_init_attr attr = {
			.cqe = 1, .comp_vector = static_cast<u32>(vector), .flags = 0};
		ib_cq *own = ib_create_cq(device, Notified::handler, nullptr, &notified, &attr);
		ib_cq *polled = ib_alloc_cq(device, nullptr, 1, vector, IB_POLL_SOFTIRQ);
		if (vector < 0 || vector == vectors) {
			EXPECT_EQ(rdma::ptr_err(own), -EINVAL);
			EXPECT_EQ(rdma::ptr_err(polled), -EINVAL);
			continue;
		}
		ASSERT_FALSE(rdma::is_err(own) || rdma::is_err(polled));
		/* One CQ is armed by its owner, and the other by the midlayer. */
		EXPECT_EQ(ib_req_notify_cq(own, IB_CQ_NEXT_COMP), 0);
		Request request;
		ib_wc wc = {};
		wc.wr_cqe = &request.cqe;
		EXPECT_TRUE(soft_complete(own, &wc, false));
		EXPECT_TRUE(soft_complete(polled, &wc, false));
		EXPECT_TRUE(eventually([&] {
			return notified.interrupts.load_relaxed() + notified.other.load_relaxed() >
			       0;
		}));
		EXPECT_TRUE(eventually([&] { return request.completions.load_relaxed() == 1; }));
		EXPECT_EQ(notified.interrupts.load_relaxed(), 1u);
		EXPECT_EQ(notified.other.load_relaxed(), 0u);
		raised[vector] = 2;
		for (unsigned int i = 0; i < vectors; i++)
			EXPECT_EQ(soft_interrupts(device, i), raised[i]);
		ib_destroy_cq(own);
		ib_free_cq(polled);
	}
}

/*
 * The kernel's part of CHAN-03: a CQ without a completion handler is polled and armed like any
 * other.
 */
void chan_03_cq_without_a_handler_can_be_polled_and_armed(Test &test)
{
	for (soft_notify notify : {SOFT_NOTIFY_FIRES, SOFT_NOTIFY_REPORTS}) {
		Device device({.notify = notify, .lid = 1});
		ASSERT_TRUE(device.ok());
		const ib_cq_init_attr attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
		ib_cq *cq = ib_create_cq(device, nullptr, nullptr, nullptr, &attr);
		ASSERT_FALSE(rdma::is_err(cq));
		ib_wc wc = {};
		for (u64 i = 0; i < 3; i++) {
			EXPECT_EQ(ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
			wc.wr_id = i;
			EXPECT_TRUE(soft_complete(cq, &wc, true));
			EXPECT_TRUE(eventually([&] { return soft_events(cq) == i + 1; }));
			ib_wc polled;
			EXPECT_EQ(ib_poll_cq(cq, 1, &polled), 1);
			EXPECT_EQ(polled.wr_id, i);
		}
		ib_destroy_cq(cq);
	}
}

/*
 * The kernel's half of CHAN-05: a CQ's end waits for its handler or discards the event; no handler
 * runs afterwards.
 */
void chan_05_no_completion_handler_runs_after_the_cq_is_destroyed(Test &test)
{
	struct Consumer {
		kern::Atomic<bool> entered{}, ended{};
		kern::Atomic<unsigned int> notified{}, late{};
	};
	constexpr unsigned int short_us = 20, turns = 50;
	for (soft_context context : {SOFT_HARD_INTERRUPT, SOFT_SOFT_INTERRUPT, SOFT_TASK}) {
		Device device({.context = context, .lid = 1});
		ASSERT_TRUE(device.ok());
		const ib_cq_init_attr attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
		Consumer consumers[40];
		for (Consumer &consumer : consumers) {
			ib_cq *cq = ib_create_cq(
				device,
				[](ib_cq *, void *of) {
					auto &self = *static_cast<Consumer *>(of);
					self.entered.store_release(true);
					for (unsigned int i = 0;
					     i < turns && !self.ended.load_acquire(); i++)
						kern::delay_us(short_us);
					(self.ended.load_acquire() ? self.late : self.notified)
						.fetch_add(1);
				},
				nullptr, &consumer, &attr);
			ASSERT_FALSE(rdma::is_err(cq));
			EXPECT_EQ(ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
			const ib_wc wc = {};
			EXPECT_TRUE(soft_complete(cq, &wc, false));
			/*
			 * Every second CQ is destroyed while its handler runs, unless the handler
			 * has already returned.
			 */
			if ((&consumer - consumers) % 2)
				EXPECT_TRUE(eventually(
					[&] { return consumer.entered.load_acquire(); }));
			ib_destroy_cq(cq);
			consumer.ended.store_release(true);
		}
		/*
		 * Events of an existing CQ still arrive, after any that are left from the destroyed
		 * ones.
		 */
		Consumer last;
		ib_cq *cq = ib_create_cq(
			device,
			[](ib_cq *, void *of) {
				static_cast<Consumer *>(of)->notified.fetch_add(1);
			},
			nullptr, &last, &attr);
		ASSERT_FALSE(rdma::is_err(cq));
		EXPECT_EQ(ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
		const ib_wc wc = {};
		EXPECT_TRUE(soft_complete(cq, &wc, false));
		EXPECT_TRUE(eventually([&] { return last.notified.load_acquire() == 1; }));
		ib_destroy_cq(cq);
		for (const Consumer &consumer : consumers) {
			EXPECT_EQ(consumer.late.load_acquire(), 0u);
			EXPECT_LE(consumer.notified.load_acquire(), 1u);
		}
	}
}

/* A CQ keeps its entries when it is resized. A size that is too small for them is refused. */
void cq_resize_preserves_unpolled_completions(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 4);
	ASSERT_OK(cq);
	ib_cq *raw = cq.value()->get();
	ib_wc wc = {};
	for (u64 i = 0; i < 4; i++) {
		wc.wr_id = i;
		ASSERT_TRUE(soft_complete(raw, &wc, false));
	}
	EXPECT_EQ(ib_peek_cq(raw, 3), 3);
	EXPECT_EQ(ib_peek_cq(raw, 9), 4);
	EXPECT_EQ(ib_resize_cq(raw, 2), -EINVAL);
	EXPECT_EQ(ib_resize_cq(raw, 0), -EINVAL);
	EXPECT_EQ(ib_resize_cq(raw, 8), 0);
	EXPECT_EQ(raw->cqe, 8);
	for (u64 i = 0; i < 4; i++) {
		EXPECT_EQ(ib_poll_cq(raw, 1, &wc), 1);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(ib_poll_cq(raw, 1, &wc), 0);
}

/* Moderation beyond the device's limits returns EINVAL. */
void cq_moderation_beyond_the_device_limits_is_rejected(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 4);
	ASSERT_OK(cq);
	EXPECT_EQ(rdma_set_cq_moderation(cq.value()->get(), 1000, 1000), 0);
	EXPECT_EQ(rdma_set_cq_moderation(cq.value()->get(), 1001, 0), -EINVAL);
	EXPECT_EQ(rdma_set_cq_moderation(cq.value()->get(), 0, 1001), -EINVAL);
}

/* Vectors are assigned in turn. */
void cq_alloc_any_assigns_vectors_round_robin(Test &test)
{
	Device device({.vectors = 3, .lid = 1});
	ASSERT_TRUE(device.ok());
	unsigned int used[3] = {};
	for (int i = 0; i < 6; i++) {
		ib_cq *cq = ib_alloc_cq_any(device, nullptr, 4, IB_POLL_DIRECT);
		ASSERT_FALSE(rdma::is_err(cq));
		used[cq->comp_vector]++;
		ib_free_cq(cq);
	}
	for (unsigned int count : used)
		EXPECT_EQ(count, 2u);
}

/* MGMT-13: in each context every request's done function is called once, in order of completion. */
void mgmt_13_each_done_callback_runs_once_in_completion_order(Test &test)
{
	for (ib_poll_context context :
	     {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE, IB_POLL_DIRECT}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		auto cq = rdma::CompletionQueue::create(device, nullptr, 64, 0, context);
		ASSERT_OK(cq);
		Request requests[20];
		Request::clock.store_relaxed(0);
		for (Request &request : requests) {
			ib_wc wc = {};
			wc.wr_cqe = &request.cqe;
			ASSERT_TRUE(soft_complete(cq.value()->get(), &wc, false));
		}
		if (context == IB_POLL_DIRECT) {
			/* The budget is kept. */
			EXPECT_EQ(cq.value()->process_direct(3), 3);
			EXPECT_EQ(cq.value()->process_direct(-1), 17);
			EXPECT_EQ(cq.value()->process_direct(-1), 0);
		}
		EXPECT_TRUE(eventually([] { return Request::clock.load_relaxed() == 20; }));
		for (unsigned int i = 0; i < 20; i++) {
			EXPECT_EQ(requests[i].completions.load_relaxed(), 1u);
			EXPECT_EQ(requests[i].order.load_relaxed(), i);
		}
	}
}

constexpr ib_poll_context polled_contexts[] = {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE,
					       IB_POLL_UNBOUND_WORKQUEUE};

/*
 * If arming the CQ fails once, no event follows. The poller polls again after a delay, and arms the
 * CQ when that is possible.
 */
void notify_02_poller_polls_again_after_a_failed_arm(Test &test)
{
	for (ib_poll_context context : polled_contexts) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		auto cq = rdma::CompletionQueue::create(device, nullptr, 64, 0, context);
		ASSERT_OK(cq);
		ib_cq *raw = cq.value()->get();
		const auto complete_one = [&] {
			Request request;
			ib_wc wc = {};
			wc.wr_cqe = &request.cqe;
			return soft_complete(raw, &wc, false) &&
			       eventually([&] { return request.completions.load_relaxed() == 1; });
		};
		/*
		 * Several arms fail in a row, so that a poller that tries only once more fails the
		 * test.
		 */
		soft_fail_arms(raw, 3, -EIO);
		const unsigned long arms = soft_calls(device, SOFT_REQ_NOTIFY_CQ);
		ASSERT_TRUE(complete_one());
		ASSERT_TRUE(eventually(
			[&] { return soft_calls(device, SOFT_REQ_NOTIFY_CQ) >= arms + 4; }));
		ASSERT_TRUE(complete_one());
		ASSERT_TRUE(complete_one());
	}
}

/* The same if it is ib_poll_cq() that fails: the completion is not lost. */
void poller_polls_again_after_ib_poll_cq_fails(Test &test)
{
	for (ib_poll_context context : polled_contexts) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		auto cq = rdma::CompletionQueue::create(device, nullptr, 64, 0, context);
		ASSERT_OK(cq);
		Request request;
		ib_wc wc = {};
		wc.wr_cqe = &request.cqe;
		soft_fail(device, SOFT_POLL_CQ, 3, -EIO);
		const unsigned long arms = soft_calls(device, SOFT_REQ_NOTIFY_CQ);
		ASSERT_TRUE(soft_complete(cq.value()->get(), &wc, false));
		ASSERT_TRUE(eventually([&] { return request.completions.load_relaxed() == 1; }));
		/* It is not armed while polling fails: each arm would raise an event at once. */
		ASSERT_TRUE(eventually(
			[&] { return soft_calls(device, SOFT_REQ_NOTIFY_CQ) >= arms + 1; }));
		EXPECT_EQ(soft_calls(device, SOFT_REQ_NOTIFY_CQ), arms + 1);
	}
}

/* A CQ can be freed while its poller waits for a retry, and nothing is leaked. */
void poller_does_not_arm_a_freed_cq_again(Test &test)
{
	for (ib_poll_context context : polled_contexts) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		Request request;
		ib_wc wc = {};
		wc.wr_cqe = &request.cqe;
		ib_cq *cq = ib_alloc_cq(device, nullptr, 16, 0, context);
		ASSERT_FALSE(rdma::is_err(cq));
		soft_fail_arms(cq, 1'000'000, -EIO);
		ASSERT_TRUE(soft_complete(cq, &wc, false));
		ASSERT_TRUE(eventually([&] { return request.completions.load_relaxed() == 1; }));
		ib_free_cq(cq);
		const unsigned long arms = soft_calls(device, SOFT_REQ_NOTIFY_CQ);
		/* Longer than the poller waits before it tries again. */
		constexpr unsigned int longer_ms = 200;
		kern::sleep_ms(longer_ms);
		EXPECT_EQ(soft_calls(device, SOFT_REQ_NOTIFY_CQ), arms);
	}
}

/* A CQ whose first arm fails would never be polled, so it is not created. */
void notify_02_ib_alloc_cq_fails_if_the_first_arm_fails(Test &test)
{
	for (ib_poll_context context : polled_contexts) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		soft_fail(device, SOFT_REQ_NOTIFY_CQ, 1, -EIO);
		EXPECT_EQ(rdma::ptr_err(ib_alloc_cq(device, nullptr, 16, 0, context)), -EIO);
	}
}

/* After a CQ with continuous completions has been freed, no done function runs. */
void cq_free_waits_for_running_done_callbacks(Test &test)
{
	for (ib_poll_context context : {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		for (int round = 0; round < 50; round++) {
			Request request;
			ib_cq *cq = ib_alloc_cq(device, nullptr, 16, 0, context);
			ASSERT_FALSE(rdma::is_err(cq));
			ib_wc wc = {};
			wc.wr_cqe = &request.cqe;
			for (int i = 0; i < 5; i++)
				soft_complete(cq, &wc, false);
			ib_free_cq(cq);
			const unsigned int seen = request.completions.load_relaxed();
			EXPECT_LE(seen, 5u);
		}
	}
}

/*
 * MGMT-09: a QP in the error state completes all outstanding requests once, in order, with a flush
 * error.
 */
void mgmt_09_qp_in_error_flushes_requests_in_order(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	for (u64 i = 0; i < 10; i++) {
		ib_recv_wr wr = {};
		wr.wr_id = i;
		ASSERT_EQ(pair.qp_a.post_recv(&wr), 0);
	}
	/* The peer has posted no receives, so these sends wait. */
	for (u64 i = 100; i < 110; i++) {
		ib_send_wr wr = {};
		wr.wr_id = i;
		wr.opcode = IB_WR_SEND;
		ASSERT_EQ(pair.qp_a.post_send(&wr), 0);
	}
	ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
	ASSERT_OK(pair.qp_a.modify(attr, IB_QP_STATE));
	u64 next_send = 100, next_recv = 0;
	for (int i = 0; i < 20; i++) {
		ib_wc wc;
		ASSERT_TRUE(next(pair.cq_a, wc));
		EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
		if (wc.wr_id >= 100)
			EXPECT_EQ(wc.wr_id, next_send++);
		else
			EXPECT_EQ(wc.wr_id, next_recv++);
	}
	ib_wc wc;
	EXPECT_EQ(pair.cq_a->poll(1, &wc), 0);
	/* Requests that are posted afterwards are flushed as well. */
	ib_send_wr late = {};
	late.wr_id = 7;
	late.opcode = IB_WR_SEND;
	ASSERT_EQ(pair.qp_a.post_send(&late), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.wr_id, 7u);
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
}

/* A drained QP has completed all posted requests, in every polling context. */
void mgmt_09_drain_completes_all_requests_as_flushed(Test &test)
{
	for (ib_poll_context context : {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_DIRECT}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		auto pd = rdma::Pd::create(device);
		ASSERT_OK(pd);
		auto cq = rdma::CompletionQueue::create(device, nullptr, 64, 0, context);
		ASSERT_OK(cq);
		for (ib_qp_type type : {IB_QPT_RC, IB_QPT_UD}) {
			auto attr = qp_attr(type);
			auto qp = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
			ASSERT_OK(qp);
			ASSERT_EQ(type == IB_QPT_RC ? connect(qp.value().get(), 0xffff, 99)
						    : connect_datagram(qp.value().get(), 1),
				  0);
			Request requests[8];
			for (Request &request : requests) {
				ib_recv_wr wr = {};
				wr.wr_cqe = &request.cqe;
				ASSERT_EQ(qp.value().post_recv(&wr), 0);
			}
			ib_drain_qp(qp.value().get());
			for (Request &request : requests) {
				EXPECT_EQ(request.completions.load_relaxed(), 1u);
				EXPECT_EQ(request.status.load_relaxed(),
					  static_cast<int>(IB_WC_WR_FLUSH_ERR));
			}
		}
	}
}

/* A CQ that overflows raises an event, and loses none of its entries. */
void cq_overrun_raises_one_event_and_loses_no_queued_entry(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	static constinit kern::Atomic<unsigned int> events{0};
	events.store_relaxed(0);
	const ib_cq_init_attr attr = {.cqe = 2, .comp_vector = 0, .flags = 0};
	ib_cq *cq = ib_create_cq(
		device, nullptr,
		[](ib_event *event, void *) {
			if (event->event == IB_EVENT_CQ_ERR)
				events.add_relaxed(1);
		},
		nullptr, &attr);
	ASSERT_FALSE(rdma::is_err(cq));
	ib_wc wc = {};
	EXPECT_TRUE(soft_complete(cq, &wc, false));
	EXPECT_TRUE(soft_complete(cq, &wc, false));
	EXPECT_FALSE(soft_complete(cq, &wc, false));
	EXPECT_TRUE(eventually([] { return events.load_relaxed() > 0; }));
	EXPECT_EQ(events.load_relaxed(), 1u);
	ib_wc wcs[4];
	EXPECT_EQ(ib_poll_cq(cq, 4, wcs), 2);
	ib_destroy_cq(cq);
}

} // namespace

SOFT_SUITES(verbs_cq, KUNIT_CASE(cq_rejects_invalid_arguments),
	    KUNIT_CASE(chan_01_completion_events_use_the_vector_of_their_cq),
	    KUNIT_CASE(chan_03_cq_without_a_handler_can_be_polled_and_armed),
	    KUNIT_CASE(chan_05_no_completion_handler_runs_after_the_cq_is_destroyed),
	    KUNIT_CASE(cq_resize_preserves_unpolled_completions),
	    KUNIT_CASE(cq_moderation_beyond_the_device_limits_is_rejected),
	    KUNIT_CASE(cq_alloc_any_assigns_vectors_round_robin),
	    KUNIT_CASE(mgmt_13_each_done_callback_runs_once_in_completion_order),
	    KUNIT_CASE(notify_02_poller_polls_again_after_a_failed_arm),
	    KUNIT_CASE(poller_polls_again_after_ib_poll_cq_fails),
	    KUNIT_CASE(poller_does_not_arm_a_freed_cq_again),
	    KUNIT_CASE(notify_02_ib_alloc_cq_fails_if_the_first_arm_fails),
	    KUNIT_CASE(cq_free_waits_for_running_done_callbacks),
	    KUNIT_CASE(mgmt_09_qp_in_error_flushes_requests_in_order),
	    KUNIT_CASE(mgmt_09_drain_completes_all_requests_as_flushed),
	    KUNIT_CASE(cq_overrun_raises_one_event_and_loses_no_queued_entry));
