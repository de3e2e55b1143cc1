// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that each request of a destroyed QP (MGMT-09) completes once, in order, before the
// destruction returns.
#include <kern/atomic.hpp>
#include <kern/work.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};
constexpr unsigned int depth = 8;

/* A request that is counted by its done function. */
struct Request {
	ib_cqe cqe{.done = done};
	unsigned int number = 0;
	struct Seen *seen = nullptr;

	static void done(ib_cq *, ib_wc *wc);
};
static_assert(__builtin_offsetof(Request, cqe) == 0);

/* The requests of one queue. They are read when all have completed. */
struct Seen {
	Request requests[depth];
	kern::Atomic<unsigned int> done{0};
	kern::Atomic<unsigned int> wrong{0};

	Seen()
	{
		for (unsigned int i = 0; i < depth; i++) {
			requests[i].number = i;
			requests[i].seen = this;
		}
	}
};

void Request::done(ib_cq *, ib_wc *wc)
{
	Request &self = *reinterpret_cast<Request *>(wc->wr_cqe);
	Seen &seen = *self.seen;

	/* The callback is slow, so that a destruction that does not wait for it is detected. */
	kern::delay_us(500);
	/* The QP can still be accessed. */
	if (wc->status != IB_WC_WR_FLUSH_ERR || self.number != seen.done.load_relaxed() ||
	    wc->qp->qp_context != &seen)
		seen.wrong.add_relaxed(1);
	seen.done.fetch_add(1);
}

/*
 * A QP with `depth` sends and as many receives. The sends wait, because the peer has posted no
 * receives.
 */
struct Laden {
	Laden(const PdRef &the_pd, ib_cq *send_cq, ib_cq *recv_cq, void *context = nullptr)
	{
		auto attr = qp_attr(IB_QPT_RC);
		attr.send_cq = send_cq;
		attr.recv_cq = recv_cq;
		attr.qp_context = context;
		qp = ib_create_qp(the_pd->get(), &attr);
		peer = ib_create_qp(the_pd->get(), &attr);
		ok = !rdma::is_err(qp) && !rdma::is_err(peer) &&
		     connect(qp, peer->qp_num, 1) == 0 && connect(peer, qp->qp_num, 1) == 0;
	}
	~Laden()
	{
		if (qp)
			destroy();
		(void)ib_destroy_qp(peer);
	}
	int destroy() { return ib_destroy_qp(std::exchange(qp, nullptr)); }
	/* Posts requests identified by number, or the requests of `seen`. */
	int post(Seen *seen = nullptr)
	{
		for (unsigned int i = 0; i < depth; i++) {
			ib_send_wr send = send_wr(nullptr, IB_WR_SEND, i);
			ib_recv_wr receive = {.wr_id = 100 + i};
			if (seen)
				send.wr_cqe = &seen->requests[i].cqe;
			if (int error = ib_post_send(qp, &send, nullptr))
				return error;
			if (seen)
				continue;
			if (int error = ib_post_recv(qp, &receive, nullptr))
				return error;
		}
		return 0;
	}

	bool ok = false;
	ib_qp *qp = nullptr, *peer = nullptr;
};

/*
 * On a CQ that the consumer polls, all requests complete as flushed, in the order of each queue,
 * with no QP set.
 */
void mgmt_09_qp_destroy_flushes_requests_in_order(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto one = rdma::CompletionQueue::create(device, nullptr, nullptr, 64);
	auto two = rdma::CompletionQueue::create(device, nullptr, nullptr, 64);
	ASSERT_TRUE(pd.ok() && one.ok() && two.ok());
	for (ib_cq *recv_cq : {one.value()->get(), two.value()->get()}) {
		Laden laden(pd.value(), one.value()->get(), recv_cq);
		ASSERT_TRUE(laden.ok);
		ASSERT_EQ(laden.post(), 0);
		EXPECT_EQ(laden.destroy(), 0);
		u64 sends = 0, receives = 100;
		ib_wc wc;
		while (one.value()->poll(1, &wc) == 1 || two.value()->poll(1, &wc) == 1) {
			EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
			EXPECT_EQ(wc.wr_id, wc.wr_id < 100 ? sends++ : receives++);
			EXPECT_TRUE(wc.qp == nullptr);
		}
		EXPECT_EQ(sends, u64{depth});
		EXPECT_EQ(receives, u64{100} + depth);
	}
}

/*
 * On a CQ that the midlayer polls, every done function has returned by then, and had the QP set;
 * other QPs are unaffected.
 */
void mgmt_09_qp_destroy_waits_for_running_done_callbacks(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	for (ib_poll_context context :
	     {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE, IB_POLL_DIRECT}) {
		ib_cq *cq = ib_alloc_cq(device, nullptr, 64, 0, context);
		ASSERT_FALSE(rdma::is_err(cq));
		Seen seen, others;
		{
			Laden other(pd.value(), cq, cq, &others);
			Laden laden(pd.value(), cq, cq, &seen);
			ASSERT_TRUE(laden.ok && other.ok);
			ASSERT_EQ(laden.post(&seen), 0);
			ASSERT_EQ(other.post(&others), 0);
			EXPECT_EQ(laden.destroy(), 0);
			EXPECT_EQ(seen.done.load_relaxed(), depth);
			EXPECT_EQ(seen.wrong.load_relaxed(), 0u);
			EXPECT_EQ(others.done.load_relaxed(), 0u);
		}
		EXPECT_EQ(others.done.load_relaxed(), depth);
		EXPECT_EQ(others.wrong.load_relaxed(), 0u);
		ib_free_cq(cq);
	}
}

/*
 * Completed requests keep their status, and a QP that has been in RESET, or has been drained,
 * leaves no completions.
 */
void mgmt_09_qp_destroy_adds_no_completions_to_a_drained_qp(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	ib_wc wc;
	{
		Pair pair(device);
		ASSERT_TRUE(pair.ok);
		ib_recv_wr receive = {.wr_id = 7};
		ib_send_wr send = send_wr(nullptr, IB_WR_SEND, 8);
		ASSERT_EQ(pair.qp_b.post_recv(&receive), 0);
		ASSERT_EQ(pair.qp_a.post_send(&send), 0);
		ASSERT_TRUE(next(pair.cq_a, wc));
		pair.qp_b = {};
		ASSERT_EQ(pair.cq_b->poll(1, &wc), 1);
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, 7u);
		EXPECT_EQ(pair.cq_b->poll(1, &wc), 0);
		ASSERT_EQ(pair.qp_a.post_recv(&receive), 0);
		ib_qp_attr attr = {};
		attr.qp_state = IB_QPS_RESET;
		ASSERT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE), 0);
		pair.qp_a = {};
		EXPECT_EQ(pair.cq_a->poll(1, &wc), 0);
	}
	/* A drained one may even be destroyed by a done function of its CQ. */
	struct Last {
		ib_cqe cqe{.done = done};
		ib_qp *qp = nullptr;
		kern::Completion over{};

		static void done(ib_cq *, ib_wc *wc)
		{
			auto &self = *reinterpret_cast<Last *>(wc->wr_cqe);
			(void)ib_destroy_qp(self.qp);
			self.over.complete();
		}
	};
	auto pd = rdma::Pd::create(device);
	ib_cq *cq = ib_alloc_cq(device, nullptr, 64, 0, IB_POLL_WORKQUEUE);
	ASSERT_TRUE(pd.ok() && !rdma::is_err(cq));
	{
		Seen seen;
		Laden laden(pd.value(), cq, cq, &seen);
		ASSERT_TRUE(laden.ok);
		ASSERT_EQ(laden.post(&seen), 0);
		ib_drain_qp(laden.qp);
		EXPECT_EQ(seen.done.load_relaxed(), depth);
		Last last;
		last.qp = std::exchange(laden.qp, nullptr);
		ib_recv_wr receive = {};
		receive.wr_cqe = &last.cqe;
		ASSERT_EQ(ib_post_recv(last.qp, &receive, nullptr), 0);
		EXPECT_TRUE(last.over.wait_for(60'000));
	}
	ib_free_cq(cq);
}

/*
 * A handler that answers each flush with another request does not block the destruction; each
 * accepted request completes.
 */
void mgmt_09_qp_destroy_returns_even_if_a_handler_keeps_posting(Test &test)
{
	struct Poster {
		ib_cqe cqe{.done = done};
		ib_qp *qp = nullptr;
		kern::Atomic<unsigned int> posted{0}, completed{0};

		int post()
		{
			ib_recv_wr receive = {};
			receive.wr_cqe = &cqe;
			const int error = ib_post_recv(qp, &receive, nullptr);
			if (!error)
				posted.fetch_add(1);
			return error;
		}
		static void done(ib_cq *, ib_wc *wc)
		{
			auto &self = *reinterpret_cast<Poster *>(wc->wr_cqe);
			self.completed.fetch_add(1);
			(void)self.post();
		}
	};
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ib_cq *cq = ib_alloc_cq(device, nullptr, 64, 0, IB_POLL_WORKQUEUE);
	ASSERT_TRUE(pd.ok() && !rdma::is_err(cq));
	{
		Poster poster;
		Laden laden(pd.value(), cq, cq);
		ASSERT_TRUE(laden.ok);
		poster.qp = laden.qp;
		for (unsigned int i = 0; i < depth; i++)
			ASSERT_EQ(poster.post(), 0);
		EXPECT_EQ(laden.destroy(), 0);
		EXPECT_GE(poster.completed.load_relaxed(), depth);
		EXPECT_EQ(poster.completed.load_relaxed(), poster.posted.load_relaxed());
	}
	ib_free_cq(cq);
}

/* A consumer that requested notification is notified once of a destroyed QP's completions. */
void mgmt_09_qp_destroy_calls_an_armed_completion_handler_once(Test &test)
{
	for (soft_context context : {SOFT_HARD_INTERRUPT, SOFT_SOFT_INTERRUPT, SOFT_TASK}) {
		Device device({.context = context, .lid = 1});
		ASSERT_TRUE(device.ok());
		auto pd = rdma::Pd::create(device);
		kern::Atomic<unsigned int> notified{0};
		auto cq = rdma::CompletionQueue::create(
			device,
			[](ib_cq *, void *of) {
				static_cast<kern::Atomic<unsigned int> *>(of)->fetch_add(1);
			},
			&notified, 64);
		ASSERT_TRUE(pd.ok() && cq.ok());
		Laden laden(pd.value(), cq.value()->get(), cq.value()->get());
		ASSERT_TRUE(laden.ok);
		ASSERT_EQ(laden.post(), 0);
		EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 0);
		EXPECT_EQ(laden.destroy(), 0);
		EXPECT_TRUE(eventually([&] { return notified.load_relaxed() == 1; }));
		EXPECT_EQ(soft_events(cq.value()->get()), 1ul);
	}
}

} // namespace

SOFT_SUITES(verbs_destroy, KUNIT_CASE(mgmt_09_qp_destroy_flushes_requests_in_order),
	    KUNIT_CASE(mgmt_09_qp_destroy_waits_for_running_done_callbacks),
	    KUNIT_CASE(mgmt_09_qp_destroy_adds_no_completions_to_a_drained_qp),
	    KUNIT_CASE(mgmt_09_qp_destroy_returns_even_if_a_handler_keeps_posting),
	    KUNIT_CASE(mgmt_09_qp_destroy_calls_an_armed_completion_handler_once));
