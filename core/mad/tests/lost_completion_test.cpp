// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-14: hardware loses completions of a special QP and does not flush the requests.
// Each send completes once nevertheless, and agents and devices can be removed.
#include "fixture.hpp"

#include <kern/time.hpp>

using namespace mad_fixture;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET;
constexpr unsigned int receive_queue = 512;

/* Like eventually(), for a condition that takes seconds. */
template<class Condition>
bool after_seconds(Condition condition)
{
	for (int tries = 0; tries < 6'000 && !condition(); tries++)
		kern::sleep_ms(10);
	return condition();
}

bool ends(const Sent &sent)
{
	return after_seconds([&] { return sent.completions() != 0; });
}

/*
 * A node whose hardware loses completions. `owner` is another agent on its special QP, which
 * answers requests of the other node.
 */
struct Lossy {
	Node a{1}, b{2};
	Agent client{a}, owner{b};

	bool ok()
	{
		owner.answering = true;
		return a.ok() && b.ok() && client.open() == 0 && owner.open(vendor_class, get) == 0;
	}
	ib_qp *qp() const { return owner.agent->qp; }
	/* Returns true if the receive queue is full, and the node answers requests. */
	bool works()
	{
		return eventually([this] { return soft_posted_receives(qp()) == receive_queue; }) &&
		       eventually([this] {
			       Sent sent(client, 2, vendor_class, IB_MGMT_METHOD_GET, 100, 0);
			       return sent.ok() && sent.post() == 0 && sent.ended() &&
				      sent.status() == IB_WC_SUCCESS;
		       });
	}
	/*
	 * Posts a send and loses its completion. Returns true when the hardware has sent it, so
	 * that the completion would be there.
	 */
	bool lose(Sent &sent)
	{
		Watch watch(b.device(), 0);
		soft_lose_completions(qp(), 1, 0);
		return sent.ok() && sent.post() == 0 &&
		       eventually([&] { return watch.seen.load_acquire() == 1; });
	}
};

/*
 * No later completion shows that the completion of the agent's send is lost. The unregistration
 * returns in spite of this, within the documented ten seconds and some time for a busy host. The
 * other agents of the special QP continue to work.
 */
void mgmt_14_unregistration_completes_a_send_whose_completion_is_lost(Test &test)
{
	auto made = kern::make<Lossy>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Lossy &lossy = *made.value();
	ASSERT_TRUE(lossy.ok());
	Agent leaving{lossy.b};
	ASSERT_EQ(leaving.open(), 0);
	Sent sent(leaving, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
	ASSERT_TRUE(lossy.lose(sent));
	const auto deadline = kern::Deadline::in_ms(40'000);
	leaving.close();
	EXPECT_FALSE(deadline.passed());
	EXPECT_EQ(sent.completions(), 1u);
	EXPECT_EQ(sent.status(), IB_WC_WR_FLUSH_ERR);
	EXPECT_TRUE(lossy.works());
	EXPECT_EQ(sent.completions(), 1u);
}

/* Cancels one send without a completion, and waits for another one. */
void mgmt_14_sends_whose_completions_are_lost_end_with_a_flush_error(Test &test)
{
	for (const bool cancels : {true, false}) {
		auto made = kern::make<Lossy>(kern::Gfp::kernel);
		ASSERT_OK(made);
		Lossy &lossy = *made.value();
		ASSERT_TRUE(lossy.ok());
		Sent sent(lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
		ASSERT_TRUE(lossy.lose(sent));
		if (cancels)
			ib_cancel_mad(sent.buf());
		EXPECT_TRUE(ends(sent));
		EXPECT_EQ(sent.status(), IB_WC_WR_FLUSH_ERR);
		EXPECT_TRUE(lossy.works());
		EXPECT_EQ(sent.completions(), 1u);
	}
}

/*
 * The completion of a later send ends the sends before it, without a recovery: the hardware has
 * executed them. A request whose response has arrived already succeeds, too.
 */
void mgmt_14_sends_whose_completions_are_lost_end_when_a_later_send_completes(Test &test)
{
	auto made = kern::make<Lossy>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Lossy &lossy = *made.value();
	ASSERT_TRUE(lossy.ok());
	Sent request(lossy.owner, 1, vendor_class, IB_MGMT_METHOD_GET, 30'000, 0);
	Sent datagram(lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
	Sent last(lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
	ASSERT_TRUE(last.ok());
	const unsigned long modified = soft_calls(lossy.b.device(), SOFT_MODIFY_QP);
	ASSERT_TRUE(lossy.lose(request));
	ASSERT_TRUE(eventually([&] { return lossy.owner.answers.load_acquire() == 1; }));
	ASSERT_TRUE(lossy.lose(datagram));
	EXPECT_EQ(request.completions(), 0u);
	EXPECT_EQ(datagram.completions(), 0u);
	ASSERT_EQ(last.post(), 0);
	for (Sent *sent : {&request, &datagram, &last}) {
		EXPECT_TRUE(sent->ended());
		EXPECT_EQ(sent->status(), IB_WC_SUCCESS);
		EXPECT_EQ(sent->completions(), 1u);
	}
	EXPECT_EQ(soft_calls(lossy.b.device(), SOFT_MODIFY_QP), modified);
}

/*
 * The QP enters the error state, and requests are not flushed: first some of the sends and
 * receives, then all of them, so that there is no sign of the error.
 */
void mgmt_14_qp_in_error_recovers_although_sends_and_receives_get_no_flush_completions(Test &test)
{
	for (const bool all : {false, true}) {
		auto made = kern::make<Lossy>(kern::Gfp::kernel);
		ASSERT_OK(made);
		Lossy &lossy = *made.value();
		ASSERT_TRUE(lossy.ok());
		Sent sends[] = {{lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0},
				{lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0}};
		/* A queue in SQD accepts requests and does not send them. */
		ASSERT_TRUE(move_unasked(lossy.qp(), IB_QPS_SQD));
		soft_lose_completions(lossy.qp(), 2, all ? receive_queue : 100);
		for (Sent &sent : sends) {
			ASSERT_TRUE(sent.ok());
			ASSERT_EQ(sent.post(), 0);
		}
		ASSERT_TRUE(move_unasked(lossy.qp(), IB_QPS_ERR));
		for (Sent &sent : sends) {
			EXPECT_TRUE(ends(sent));
			EXPECT_EQ(sent.status(), IB_WC_WR_FLUSH_ERR);
		}
		EXPECT_TRUE(lossy.works());
		for (const Sent &sent : sends)
			EXPECT_EQ(sent.completions(), 1u);
	}
}

/*
 * Some receives are not flushed, and no send is posted, so that only the time limit ends the flush.
 */
void mgmt_14_qp_in_error_without_sends_recovers_although_receives_get_no_flush_completions(
	Test &test)
{
	auto made = kern::make<Lossy>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Lossy &lossy = *made.value();
	ASSERT_TRUE(lossy.ok());
	soft_lose_completions(lossy.qp(), 0, 100);
	ASSERT_TRUE(move_unasked(lossy.qp(), IB_QPS_ERR));
	EXPECT_TRUE(
		after_seconds([&] { return soft_posted_receives(lossy.qp()) == receive_queue; }));
	EXPECT_TRUE(lossy.works());
}

/*
 * While the CQ cannot be polled, it may contain completions even after the QP was reset. So the
 * requests are not taken back before it has been polled.
 */
void mgmt_14_qp_recovery_completes_no_send_before_the_cq_has_been_polled(Test &test)
{
	auto made = kern::make<Lossy>(kern::Gfp::kernel);
	ASSERT_OK(made);
	Lossy &lossy = *made.value();
	ASSERT_TRUE(lossy.ok());
	ib_device *const device = lossy.b.device();
	Sent sends[] = {{lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0},
			{lossy.owner, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0}};
	ASSERT_TRUE(move_unasked(lossy.qp(), IB_QPS_SQD));
	soft_fail(device, SOFT_POLL_CQ, 1'000'000, -EIO);
	for (Sent &sent : sends) {
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
	}
	ASSERT_TRUE(move_unasked(lossy.qp(), IB_QPS_ERR));
	/* The recovery moves the QP to ERR, and to RESET at least twice. */
	const unsigned long modified = soft_calls(device, SOFT_MODIFY_QP);
	EXPECT_TRUE(
		after_seconds([&] { return soft_calls(device, SOFT_MODIFY_QP) >= modified + 3; }));
	for (const Sent &sent : sends)
		EXPECT_EQ(sent.completions(), 0u);
	soft_fail(device, SOFT_POLL_CQ, 0, 0);
	EXPECT_TRUE(lossy.works());
	for (const Sent &sent : sends) {
		EXPECT_TRUE(ends(sent));
		EXPECT_EQ(sent.completions(), 1u);
	}
}

/* The device is removed while a reply of the MAD layer has no completion. */
void mgmt_14_device_can_be_removed_after_the_completion_of_a_send_was_lost(Test &test)
{
	Node a{1};
	auto made = kern::make<Node>(kern::Gfp::kernel, u16{2});
	ASSERT_OK(made);
	auto b = made.take();
	Agent client{a}, server{*b};
	ASSERT_TRUE(a.ok() && b->ok());
	ASSERT_EQ(client.open(), 0);
	ASSERT_EQ(server.open(), 0);
	soft_lose_completions(server.agent->qp, 1, 0);
	/* No agent has registered for the request, so the MAD layer refuses it. */
	Sent refused(client, 2, vendor_class, IB_MGMT_METHOD_GET, 30'000, 0);
	ASSERT_TRUE(refused.ok());
	ASSERT_EQ(refused.post(), 0);
	ASSERT_TRUE(refused.ended());
	EXPECT_EQ(refused.status(), IB_WC_SUCCESS);
	EXPECT_NE(client.last_status, 0u);
	server.close();
	b.reset();
}

} // namespace

SOFT_SUITES(
	mad_lost_completion,
	KUNIT_CASE(mgmt_14_unregistration_completes_a_send_whose_completion_is_lost),
	KUNIT_CASE(mgmt_14_sends_whose_completions_are_lost_end_with_a_flush_error),
	KUNIT_CASE(mgmt_14_sends_whose_completions_are_lost_end_when_a_later_send_completes),
	KUNIT_CASE(
		mgmt_14_qp_in_error_recovers_although_sends_and_receives_get_no_flush_completions),
	KUNIT_CASE(
		mgmt_14_qp_in_error_without_sends_recovers_although_receives_get_no_flush_completions),
	KUNIT_CASE(mgmt_14_qp_recovery_completes_no_send_before_the_cq_has_been_polled),
	KUNIT_CASE(mgmt_14_device_can_be_removed_after_the_completion_of_a_send_was_lost));
