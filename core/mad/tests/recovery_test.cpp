// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that special QPs recover from the error state on each kind of hardware, even if a step of
// the recovery fails or sends are delayed. Meanwhile each send completes once (rule MGMT-03).
#include "../recovery_state.hpp"
#include "../send_state.hpp"
#include "fixture.hpp"

#include <kern/assert.hpp>
#include <kern/lock.hpp>

using namespace mad_fixture;
using mad::next_state;
using mad::SpecialQpEvent;
using mad::SpecialQpState;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET;
constexpr unsigned int receive_queue = 512;

/* Tests every pair of a state and an event of a special QP. */
void mgmt_03_special_qp_state_transitions_match_the_expected_table(Test &test)
{
	using enum SpecialQpState;
	constexpr int states = 8, events = 7;
	/* Columns: done, failed, send_failed, receive_flushed, retry, close, stalled. */
	constexpr SpecialQpState table[states][events] = {
		/* opening */ {up, opening, opening, opening, opening, closing, opening},
		/* up */ {up, up, stopped, flushing, up, closing, failing},
		/* stopped */ {up, failing, stopped, flushing, stopped, closing, failing},
		/* failing */ {flushing, broken, failing, flushing, failing, closing, failing},
		/* flushing */ {up, broken, flushing, flushing, flushing, closing, flushing},
		/* broken */ {broken, broken, broken, broken, failing, closing, broken},
		/* closing */ {closed, closing, closing, closing, closing, closing, closing},
		/* closed */ {closed, closed, closed, closed, closed, closed, closed},
	};
	for (int state = 0; state < states; state++)
		for (int event = 0; event < events; event++)
			EXPECT_EQ(next_state(static_cast<SpecialQpState>(state),
					     static_cast<SpecialQpEvent>(event)),
				  table[state][event]);
}

/* Tests every pair of a state and an event of a send. */
void mgmt_03_mad_send_state_transitions_match_the_expected_table(Test &test)
{
	using enum mad::SendState;
	constexpr int states = 3, events = 4;
	/* Columns: posted, queued, released, decided. */
	constexpr mad::SendState table[states][events] = {
		/* decided */ {going, decided, decided, decided},
		/* going */ {going, going, waiting, decided},
		/* waiting */ {going, going, waiting, decided},
	};
	for (int state = 0; state < states; state++)
		for (int event = 0; event < events; event++)
			EXPECT_EQ(next_state(static_cast<mad::SendState>(state),
					     static_cast<mad::SendEvent>(event)),
				  table[state][event]);
}

/* A node that sends requests, and one whose QP is broken, which also sends requests. */
struct Scene {
	Node a{1}, b{2};
	Agent client{a}, server{b};

	bool ok()
	{
		server.answering = true;
		return a.ok() && b.ok() && client.open() == 0 &&
		       server.open(vendor_class, get) == 0;
	}
	ib_qp *qp() const { return server.agent->qp; }
	bool move_to(ib_qp_state state) const { return move_unasked(qp(), state); }
	bool is_full() const
	{
		return eventually([this] { return soft_posted_receives(qp()) == receive_queue; });
	}
	bool answers()
	{
		return eventually([this] {
			Sent sent(client, 2, vendor_class, IB_MGMT_METHOD_GET, 100, 0);
			return sent.ok() && sent.post() == 0 && sent.ended() &&
			       sent.status() == IB_WC_SUCCESS;
		});
	}
};

/* Makes the n-th call of a method from now on fail. */
struct FailsOnce {
	ib_device *device;
	soft_method method;
	unsigned int nth;
	kern::Atomic<unsigned int> calls{};

	FailsOnce(ib_device *of, soft_method which, unsigned int when)
	    : device(of), method(which), nth(when)
	{
		soft_interpose(
			device, method,
			[](void *context) {
				auto &self = *static_cast<FailsOnce *>(context);
				if (self.calls.fetch_add(1) + 1 == self.nth)
					soft_fail(self.device, self.method, 1, -EIO);
			},
			this);
	}
	~FailsOnce() { soft_interpose(device, method, nullptr, nullptr); }
	FailsOnce(const FailsOnce &) = delete;
	FailsOnce &operator=(const FailsOnce &) = delete;
};

/* The way in which a QP is broken, and the number of ib_modify_qp() calls that this takes. */
enum class Break : u8 { idle, with_sends, send_queue };
constexpr unsigned int own_calls[] = {1, 2, 0};

/*
 * Breaks the server's QP while a call of a method fails during the recovery. Returns true if the
 * recovery reached that call. Afterwards the QP works again, and each outstanding request has
 * completed once.
 */
bool breaks_and_recovers(Test &test, Scene &scene, Break how, soft_method method, unsigned int nth)
{
	const bool modifies = method == SOFT_MODIFY_QP;
	FailsOnce fault(scene.b.device(), method,
			nth + (modifies ? own_calls[static_cast<int>(how)] : 0));
	Sent sends[] = {{scene.server, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0},
			{scene.server, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0}};
	BadRequest bad;
	switch (how) {
	case Break::idle:
		EXPECT_TRUE(scene.move_to(IB_QPS_ERR));
		break;
	case Break::with_sends:
		/* A queue in SQD accepts requests and does not send them. */
		EXPECT_TRUE(scene.move_to(IB_QPS_SQD));
		for (Sent &sent : sends)
			EXPECT_EQ(sent.post(), 0);
		EXPECT_TRUE(scene.move_to(IB_QPS_ERR));
		break;
	case Break::send_queue:
		EXPECT_EQ(bad.post(scene.qp(), sends[0].buf()->ah), 0);
		for (Sent &sent : sends)
			EXPECT_EQ(sent.post(), 0);
		bad.ended.wait();
		break;
	}
	EXPECT_TRUE(scene.answers());
	if (how != Break::idle)
		for (Sent &sent : sends)
			EXPECT_TRUE(sent.ended() && sent.completions() == 1);
	EXPECT_TRUE(scene.is_full());
	return fault.calls.load_acquire() >= fault.nth;
}

/*
 * Each kind of error, on hardware like a card, and those with different behaviour on other
 * hardware. The first QP transition of the recovery fails, then the second, and so on; then posting
 * the first receive, and one in the middle. Afterwards as many requests as a queue holds are
 * answered.
 */
void mgmt_03_special_qp_recovers_even_if_a_recovery_step_fails_once(Test &test)
{
	for (soft_behaviour behaviour :
	     {SOFT_CARD_SENDS_FIRST, SOFT_CARD_RECEIVES_FIRST, SOFT_PLAIN}) {
		const bool all = behaviour == SOFT_CARD_SENDS_FIRST;
		soft_set_behaviour(behaviour);
		auto made = kern::make<Scene>(kern::Gfp::kernel);
		ASSERT_OK(made);
		Scene &scene = *made.value();
		ASSERT_TRUE(scene.ok());
		for (Break how : {Break::idle, Break::with_sends, Break::send_queue}) {
			if (!all && how != Break::with_sends)
				continue;
			unsigned int nth = 1;
			while (!test.failed() &&
			       breaks_and_recovers(test, scene, how, SOFT_MODIFY_QP, nth))
				nth++;
			/*
			 * The recovery takes SQE to RTS, or RESET, INIT, RTR and RTS, and possibly
			 * calls that find out how many steps are needed.
			 */
			EXPECT_GE(nth, how == Break::send_queue ? 2u : 5u);
			EXPECT_LE(nth, 7u);
			if (test.failed())
				kern_kunit_note(test.native(), "behaviour %d, break %d, step %u",
						behaviour, static_cast<int>(how), nth);
			ASSERT_FALSE(test.failed());
		}
		if (!all)
			continue;
		for (unsigned int nth : {1u, 300u})
			EXPECT_TRUE(
				breaks_and_recovers(test, scene, Break::idle, SOFT_POST_RECV, nth));
		for (unsigned int n = 0; n <= receive_queue; n++)
			ASSERT_TRUE(scene.answers());
	}
}

/*
 * Receive buffers that the hardware refuses for a while are posted later (MGMT-12), even if no MAD
 * arrives.
 */
void mgmt_12_mad_receive_queue_is_refilled_after_failed_posts(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	soft_fail(scene.b.device(), SOFT_POST_RECV, 1'000'000, -ENOMEM);
	for (int n = 0; n < 20; n++)
		ASSERT_TRUE(scene.answers());
	EXPECT_LE(soft_posted_receives(scene.qp()), receive_queue - 20);
	soft_fail(scene.b.device(), SOFT_POST_RECV, 0, 0);
	EXPECT_TRUE(scene.is_full());
}

/*
 * A special QP whose CQ cannot be armed or polled for a while has no event to wait for: it polls
 * again by itself, and arms the CQ when that is possible.
 */
void notify_02_special_qp_polls_again_after_a_failed_arm_or_poll(Test &test)
{
	for (const bool polls : {false, true}) {
		Scene scene;
		ASSERT_TRUE(scene.ok());
		ASSERT_TRUE(scene.answers());
		ib_device *const device = scene.b.device();
		const unsigned long arms = soft_calls(device, SOFT_REQ_NOTIFY_CQ);
		if (polls)
			soft_fail(device, SOFT_POLL_CQ, 3, -EIO);
		else
			soft_fail_arms(scene.qp()->recv_cq, 3, -EIO);
		ASSERT_TRUE(scene.answers());
		ASSERT_TRUE(eventually(
			[&] { return soft_calls(device, SOFT_REQ_NOTIFY_CQ) >= arms + 4; }));
		ASSERT_TRUE(scene.answers());
		ASSERT_TRUE(scene.answers());
	}
}

/* Longer than all the time that a request with 20 ms and two retries waits. */
bool lets_time_pass(Scene &scene)
{
	Sent clock(scene.client, 99, vendor_class, IB_MGMT_METHOD_GET, 400, 0);
	return clock.ok() && clock.post() == 0 && clock.ended() &&
	       clock.status() == IB_WC_RESP_TIMEOUT_ERR;
}

/*
 * A request that the send queue delays is sent as often as any other, with the same timeout, which
 * starts at each send completion.
 */
void mgmt_03_timeout_of_a_mad_starts_at_its_send_completion(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	Watch watch(scene.b.device(), ~0ul);
	Sent held(scene.server, 1, vendor_class, IB_MGMT_METHOD_GET, 20, 2);
	ASSERT_TRUE(held.ok());
	/* A queue in SQD accepts requests and does not send them. */
	ASSERT_TRUE(scene.move_to(IB_QPS_SQD));
	ASSERT_EQ(held.post(), 0);
	EXPECT_TRUE(lets_time_pass(scene));
	EXPECT_EQ(held.completions(), 0u);
	const u64 begin = kern::now_ns();
	ASSERT_TRUE(scene.move_to(IB_QPS_RTS));
	ASSERT_TRUE(held.ended());
	EXPECT_EQ(held.status(), IB_WC_RESP_TIMEOUT_ERR);
	EXPECT_EQ(watch.seen.load_acquire(), 3u);
	EXPECT_GE(kern::now_ns() - begin, 120u * 1000 * 1000);
}

/*
 * Sends that are delayed forever complete nevertheless: if they are cancelled before they are
 * posted, at once, and otherwise by an error of the QP. Later sends succeed.
 */
void mgmt_03_sends_stalled_by_the_sqd_state_complete_when_the_qp_enters_the_error_state(Test &test)
{
	constexpr std::size_t count = 130; /* the send queue of the hardware holds 128 */
	Scene scene;
	ASSERT_TRUE(scene.ok());
	Watch watch(scene.b.device(), ~0ul);
	auto sends = make_requests(count, scene.server, 1, 20, 0);
	ASSERT_EQ(sends.size(), count);
	ASSERT_TRUE(scene.move_to(IB_QPS_SQD));
	for (auto &sent : sends)
		ASSERT_EQ(sent->post(), 0);
	Sent &cancelled = *sends[count - 1];
	ib_cancel_mad(cancelled.buf());
	EXPECT_TRUE(cancelled.ended());
	EXPECT_EQ(cancelled.status(), IB_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(lets_time_pass(scene));
	for (std::size_t n = 0; n < count - 1; n++)
		EXPECT_EQ(sends[n]->completions(), 0u);
	ASSERT_TRUE(scene.move_to(IB_QPS_ERR));
	for (std::size_t n = 0; n < count - 1; n++) {
		ASSERT_TRUE(sends[n]->ended());
		EXPECT_EQ(sends[n]->status(), IB_WC_RESP_TIMEOUT_ERR);
	}
	for (auto &sent : sends)
		EXPECT_EQ(sent->completions(), 1u);
	EXPECT_EQ(watch.seen.load_acquire(), count - 1);
}

/* Posts a MAD again each time it completes, and checks the context of the handler. */
struct Insistent {
	kern::Atomic<unsigned int> notified{}, in_atomic{}, depth{}, deepest{};
	unsigned int rounds;
	ib_mad_agent *agent = nullptr;
	ib_mad_send_buf *send = nullptr;

	explicit Insistent(unsigned int how_often) : rounds(how_often) {}
	static void on_sent(ib_mad_agent *mad_agent, ib_mad_send_wc *wc)
	{
		auto &self = *static_cast<Insistent *>(mad_agent->context);
		const unsigned int depth = self.depth.fetch_add(1) + 1;
		if (depth > self.deepest.load_relaxed())
			self.deepest.store_relaxed(depth);
		if (!kern_may_sleep())
			self.in_atomic.fetch_add(1);
		const unsigned int notified = self.notified.fetch_add(1) + 1;
		if (notified < self.rounds)
			(void)ib_post_send_mad(wc->send_buf, nullptr);
		self.depth.fetch_sub(1);
	}
};

/*
 * Handlers are called in a task and never from a post or cancel (LOCK-05), whatever the QP's state:
 * here it is broken, so every send completes as soon as it is posted. A handler that posts again is
 * called again, and not recursively.
 */
void mgmt_03_mad_handlers_run_in_a_task_and_never_recursively(Test &test)
{
	constexpr unsigned int rounds = 10;
	Scene scene;
	ASSERT_TRUE(scene.ok());
	Insistent insistent(rounds);
	insistent.agent = ib_register_mad_agent(scene.b.device(), 1, IB_QPT_GSI, nullptr, 0,
						Insistent::on_sent, nullptr, &insistent, 0);
	ASSERT_FALSE(rdma::is_err(insistent.agent));
	insistent.send = ib_create_send_mad(insistent.agent, 1, 0, 0, IB_MGMT_MAD_HDR,
					    IB_MGMT_MAD_DATA, gfp, IB_MGMT_BASE_VERSION);
	ASSERT_FALSE(rdma::is_err(insistent.send));
	auto &header = static_cast<ib_mad *>(insistent.send->mad)->mad_hdr;
	header.base_version = IB_MGMT_BASE_VERSION;
	header.mgmt_class = vendor_class;
	header.class_version = 1;
	header.method = IB_MGMT_METHOD_SEND;
	insistent.send->ah = scene.b.address(1);

	BadRequest bad;
	soft_fail(scene.b.device(), SOFT_MODIFY_QP, 1'000'000, -EIO);
	EXPECT_EQ(bad.post(scene.qp(), insistent.send->ah), 0);
	bad.ended.wait();
	/* The recovery has failed for now if a send is flushed. */
	EXPECT_TRUE(eventually([&] {
		Sent sent(scene.server, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
		return sent.ok() && sent.post() == 0 && sent.ended() &&
		       sent.status() == IB_WC_WR_FLUSH_ERR;
	}));

	kern::IrqSpinLock lock(KERN_LOCK_CLASS("mad_test.poster"));
	int posted;
	{
		kern::Guard guard(lock);
		posted = ib_post_send_mad(insistent.send, nullptr);
	}
	EXPECT_EQ(posted, 0);
	EXPECT_TRUE(eventually([&] { return insistent.notified.load_acquire() == rounds; }));
	EXPECT_EQ(insistent.in_atomic.load_acquire(), 0u);
	EXPECT_EQ(insistent.deepest.load_acquire(), 1u);

	soft_fail(scene.b.device(), SOFT_MODIFY_QP, 0, 0);
	ib_unregister_mad_agent(insistent.agent);
	rdma_destroy_ah(insistent.send->ah, 0);
	ib_free_send_mad(insistent.send);
	EXPECT_TRUE(scene.answers());
	EXPECT_TRUE(scene.is_full());
}

/* The handler of a send that is cancelled under a lock is also called in a task. */
void mgmt_03_send_handler_of_a_mad_cancelled_under_a_spinlock_runs_in_process_context(Test &test)
{
	Scene scene;
	ASSERT_TRUE(scene.ok());
	Insistent insistent(1);
	insistent.agent = ib_register_mad_agent(
		scene.b.device(), 1, IB_QPT_GSI, nullptr, 0, Insistent::on_sent,
		[](ib_mad_agent *, ib_mad_send_buf *, ib_mad_recv_wc *wc) { ib_free_recv_mad(wc); },
		&insistent, 0);
	ASSERT_FALSE(rdma::is_err(insistent.agent));
	Sent like(scene.server, 99, vendor_class, IB_MGMT_METHOD_GET, 600'000, 0);
	ASSERT_TRUE(like.ok());
	auto *send = ib_create_send_mad(insistent.agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
					gfp, IB_MGMT_BASE_VERSION);
	ASSERT_FALSE(rdma::is_err(send));
	static_cast<ib_mad *>(send->mad)->mad_hdr = like.header();
	send->ah = like.buf()->ah;
	send->timeout_ms = 600'000;
	EXPECT_EQ(ib_post_send_mad(send, nullptr), 0);
	/* Only the missing response keeps the send outstanding. */
	EXPECT_TRUE(scene.answers());
	kern::IrqSpinLock lock(KERN_LOCK_CLASS("mad_test.canceller"));
	{
		kern::Guard guard(lock);
		ib_cancel_mad(send);
	}
	EXPECT_TRUE(eventually([&] { return insistent.notified.load_acquire() == 1; }));
	EXPECT_EQ(insistent.in_atomic.load_acquire(), 0u);
	ib_unregister_mad_agent(insistent.agent);
	ib_free_send_mad(send);
}

} // namespace

/* These tests choose the hardware themselves. */
KUNIT_SUITE_BEFORE(
	mad_recovery, ::fixture::on_plain_devices,
	KUNIT_CASE(mgmt_03_special_qp_state_transitions_match_the_expected_table),
	KUNIT_CASE(mgmt_03_mad_send_state_transitions_match_the_expected_table),
	KUNIT_CASE(mgmt_03_special_qp_recovers_even_if_a_recovery_step_fails_once),
	KUNIT_CASE(mgmt_12_mad_receive_queue_is_refilled_after_failed_posts),
	KUNIT_CASE(notify_02_special_qp_polls_again_after_a_failed_arm_or_poll),
	KUNIT_CASE(mgmt_03_timeout_of_a_mad_starts_at_its_send_completion),
	KUNIT_CASE(
		mgmt_03_sends_stalled_by_the_sqd_state_complete_when_the_qp_enters_the_error_state),
	KUNIT_CASE(mgmt_03_mad_handlers_run_in_a_task_and_never_recursively),
	KUNIT_CASE(
		mgmt_03_send_handler_of_a_mad_cancelled_under_a_spinlock_runs_in_process_context));
