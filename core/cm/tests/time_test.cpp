// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests timeouts: lost or unanswered messages are retransmitted, and late or duplicated messages
// are handled, within the times that the messages specify.
#include "../times.hpp"
#include "fixture.hpp"

using namespace cm_fixture;

namespace
{

/* A node with the CM, and an independent peer that sends only what the test sends. */
struct Alone {
	Node node{1};
	UnknownPeer peer{2};
	End active, listener, passive;

	bool ok()
	{
		listener.fresh = &passive;
		return node.ok() && peer.open() && active.open(node) && listener.open(node) &&
		       ib_cm_listen(listener.id, service, 0) == 0;
	}
	ib::Mad to_active(ib::CmAttribute attribute, u32 their_id = 0x77)
	{
		return UnknownPeer::make(attribute, their_id, active.id->local_id);
	}
	ib::Mad reply(u32 their_id = 0x77, u32 qpn = other_qpn)
	{
		ib::Mad mad = to_active(ib::CmAttribute::rep, their_id);
		ib::cm_message<ib::CmRep>(mad).qpn = qpn;
		ib::cm_message<ib::CmRep>(mad).ca_guid = peer.node.guid();
		return mad;
	}
	bool connect()
	{
		return active.request(node, peer.node) == 0 &&
		       peer.receives(ib::CmAttribute::req) && peer.says(node, reply()) &&
		       active.receives(IB_CM_REP_RECEIVED) &&
		       ib_send_cm_rtu(active.id, "rtu", 4) == 0;
	}
};

void cm_04_timeouts_are_computed_from_their_exponents(Test &test)
{
	/* 4.096 us * 2^t, rounded up to milliseconds. */
	EXPECT_EQ(cm::wait_ms(cm::time_ns(0)), 1u);
	EXPECT_EQ(cm::wait_ms(cm::time_ns(20)), 4295u);
	EXPECT_EQ(cm::wait_ms(cm::time_ns(24)), 68720u);
	EXPECT_EQ(cm::wait_ms(cm::time_ns(31)), cm::longest_wait_ms);
	EXPECT_EQ(cm::response_ms(18, 20), 6443u);
	/*
	 * A packet lifetime has six bits; values above 31 must not wrap around to a shorter time.
	 */
	EXPECT_EQ(cm::response_ms(32, 0), cm::longest_wait_ms);
	EXPECT_EQ(cm::wait_ms(cm::time_ns(63)), cm::longest_wait_ms);
	/* The ACK timeout is the nearest power of two above twice the lifetime plus the delay. */
	EXPECT_EQ(cm::ack_timeout(0, 18), 19);
	EXPECT_EQ(cm::ack_timeout(15, 14), 16);
	EXPECT_EQ(cm::ack_timeout(20, 10), 20);
	EXPECT_EQ(cm::ack_timeout(20, 18), 21);
	EXPECT_EQ(cm::ack_timeout(31, 31), 31);
	EXPECT_EQ(cm::ack_timeout(0, 32), 31);
	EXPECT_EQ(cm::ack_timeout(32, 0), 31);
}

/* The REQ determines the number of retries and the interval; then the peer gets a REJ. */
void cm_04_unanswered_req_times_out(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	const u64 begin = kern::now_ns();
	ASSERT_EQ(alone->active.request(alone->node, alone->peer.node), 0);
	ASSERT_TRUE(alone->active.receives(IB_CM_REQ_ERROR));
	const u64 ms = (kern::now_ns() - begin) / 1'000'000;
	const u32 once = cm::response_ms(10, 16);
	EXPECT_GE(ms, 4u * once);
	EXPECT_LE(ms, 4u * once + 2000);
	EXPECT_EQ(alone->active.last.param.send_status, IB_WC_RESP_TIMEOUT_ERR);
	EXPECT_EQ(alone->peer.received(ib::CmAttribute::req), 4u);
	EXPECT_EQ(alone->node.counters().retries[IB_CM_COUNTER_REQ], 3u);
	EXPECT_EQ(alone->node.counters().sent[IB_CM_COUNTER_REQ], 4u);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::rej));
	const ib::Mad &rej = alone->peer.last(ib::CmAttribute::rej);
	EXPECT_EQ(ib::cm_message<ib::CmRej>(rej).reason, IB_CM_REJ_TIMEOUT);
	EXPECT_EQ(ib::cm_message<ib::CmRej>(rej).info_length(), 8);
	EXPECT_EQ(alone->active.state(), IB_CM_IDLE);
}

/* A REP times out after the response timeout that the sender of the REQ has announced. */
void cm_04_unanswered_rep_times_out(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->peer.says(alone->node, alone->peer.make_req(alone->node, 0x55)));
	ASSERT_TRUE(alone->passive.receives(IB_CM_REQ_RECEIVED));
	const u64 begin = kern::now_ns();
	ASSERT_EQ(alone->passive.reply(), 0);
	ASSERT_TRUE(alone->passive.receives(IB_CM_REP_ERROR));
	EXPECT_GE((kern::now_ns() - begin) / 1'000'000, 2u * cm::wait_ms(cm::time_ns(14)));
	EXPECT_EQ(alone->peer.received(ib::CmAttribute::rep), 2u);
	EXPECT_EQ(alone->passive.state(), IB_CM_IDLE);
}

/* An unanswered DREQ also closes the connection, by way of timewait. */
void cm_04_unanswered_dreq_times_out(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->connect());
	ASSERT_EQ(ib_send_cm_dreq(alone->active.id, nullptr, 0), 0);
	ASSERT_TRUE(alone->active.receives(IB_CM_DREQ_ERROR));
	EXPECT_EQ(alone->peer.received(ib::CmAttribute::dreq), 4u);
	EXPECT_TRUE(alone->active.receives(IB_CM_TIMEWAIT_EXIT));
}

/* After an MRA, the ID waits for the announced time, now and after each retry. */
void cm_04_mra_extends_the_timeout_of_each_retry(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	/* The timeout is long enough that nothing is retransmitted before the MRA arrives. */
	const sa_path_rec path = alone->node.path_to(alone->peer.node);
	auto param = End::request_of(path);
	param.remote_cm_response_timeout = 20;
	ASSERT_EQ(ib_send_cm_req(alone->active.id, &param), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::req));
	ib::Mad mra = alone->to_active(ib::CmAttribute::mra);
	ib::cm_message<ib::CmMra>(mra).set_service_timeout(21);
	ASSERT_TRUE(alone->peer.says(alone->node, mra));
	ASSERT_TRUE(alone->active.receives(IB_CM_MRA_RECEIVED));
	EXPECT_EQ(alone->active.last.param.mra_rcvd.service_timeout, 21);
	const unsigned int sent = alone->peer.received(ib::CmAttribute::req);
	/*
	 * The MRA asks for 8.6 s: nothing is retransmitted in the first seven, and three times
	 * later.
	 */
	kern::sleep_ms(7'000);
	EXPECT_EQ(alone->peer.received(ib::CmAttribute::req), sent);
	const u64 begin = kern::now_ns();
	ASSERT_TRUE(alone->active.receives_within(IB_CM_REQ_ERROR, 60));
	EXPECT_GE((kern::now_ns() - begin) / 1'000'000, 24'000u);
	EXPECT_EQ(alone->peer.received(ib::CmAttribute::req), 4u);
}

/* A peer that repeatedly requests 2.4 hours gets 90 seconds for each retry. */
void cm_04_mra_extends_a_timeout_by_at_most_90_seconds(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	const sa_path_rec path = alone->node.path_to(alone->peer.node);
	auto param = End::request_of(path);
	param.max_cm_retries = 0;
	param.remote_cm_response_timeout = 20;
	ASSERT_EQ(ib_send_cm_req(alone->active.id, &param), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::req));
	ib::Mad mra = alone->to_active(ib::CmAttribute::mra);
	ib::cm_message<ib::CmMra>(mra).set_service_timeout(31);
	const u64 begin = kern::now_ns();
	for (int i = 0; i < 10; i++)
		ASSERT_TRUE(alone->peer.says(alone->node, mra));
	ASSERT_TRUE(alone->active.receives_within(IB_CM_REQ_ERROR, 110));
	const u64 seconds = (kern::now_ns() - begin) / 1'000'000'000;
	EXPECT_GE(seconds, 90u);
	EXPECT_EQ(alone->active.delivered(IB_CM_MRA_RECEIVED), 1u);
	EXPECT_EQ(alone->node.counters().duplicates[IB_CM_COUNTER_MRA], 9u);
}

/*
 * Each message of a connection is lost once or twice: the connection is established and ended
 * nevertheless.
 */
void cm_04_lost_messages_are_retransmitted(Test &test)
{
	struct Loss {
		ib_device *device;
		u16 attribute;
		kern::Atomic<int> left;
		Loss(ib_device *of, ib::CmAttribute which, int times)
		    : device(of), attribute(static_cast<u16>(which)), left(times)
		{
			soft_watch(
				of,
				[](void *context, const void *payload, size_t) {
					auto &self = *static_cast<Loss *>(context);
					return static_cast<const ib_mad_hdr *>(payload)
							       ->attr_id.value() ==
						       self.attribute &&
					       self.left.fetch_sub(1) > 0;
				},
				this);
		}
		~Loss() { soft_watch(device, nullptr, nullptr); }
	};
	for (auto lost : {ib::CmAttribute::req, ib::CmAttribute::rep, ib::CmAttribute::rtu,
			  ib::CmAttribute::dreq, ib::CmAttribute::drep})
		for (int times = 1; times <= 2; times++) {
			Boxed<Pair> pair;
			ASSERT_TRUE(pair.ok());
			const Loss from_a(pair->a.device(), lost, times),
				from_b(pair->b.device(), lost, times);
			ASSERT_TRUE(pair->connect());
			ASSERT_EQ(ib_send_cm_dreq(pair->active.id, nullptr, 0), 0);
			ASSERT_TRUE(pair->passive.receives(IB_CM_DREQ_RECEIVED));
			ASSERT_EQ(ib_send_cm_drep(pair->passive.id, nullptr, 0), 0);
			EXPECT_TRUE(pair->active.receives(IB_CM_TIMEWAIT_EXIT));
			EXPECT_TRUE(pair->passive.receives(IB_CM_TIMEWAIT_EXIT));
			EXPECT_EQ(pair->active.delivered(IB_CM_REP_RECEIVED), 1u);
			EXPECT_EQ(pair->passive.delivered(IB_CM_RTU_RECEIVED), 1u);
			EXPECT_EQ(pair->passive.delivered(IB_CM_DREQ_RECEIVED), 1u);
		}
}

/*
 * A repeated REP means that the RTU was lost: the RTU is sent again unchanged. A repeated REQ gets
 * the same MRA.
 */
void cm_05_duplicate_rep_gets_the_same_rtu_and_duplicate_req_the_same_mra(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->connect());
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::rtu));
	for (unsigned int n = 2; n <= 4; n++) {
		ASSERT_TRUE(alone->peer.says(alone->node, alone->reply()));
		ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::rtu, n));
	}
	const ib::Mad &rtu = alone->peer.last(ib::CmAttribute::rtu);
	EXPECT_EQ(__builtin_memcmp(ib::cm_message<ib::CmRtu>(rtu).private_data, "rtu", 4), 0);
	EXPECT_EQ(alone->node.counters().duplicates[IB_CM_COUNTER_REP], 3u);

	/* With the DELAY flag the MRA is sent only in response to the repeated REQ. */
	ASSERT_TRUE(alone->peer.says(alone->node, alone->peer.make_req(alone->node, 0x55, 0x888)));
	ASSERT_TRUE(alone->passive.receives(IB_CM_REQ_RECEIVED));
	ASSERT_EQ(ib_send_cm_mra(alone->passive.id, 20 | IB_CM_MRA_FLAG_DELAY, "wait", 5), 0);
	EXPECT_EQ(alone->node.counters().sent[IB_CM_COUNTER_MRA], 0u);
	ASSERT_TRUE(alone->peer.says(alone->node, alone->peer.make_req(alone->node, 0x55, 0x888)));
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::mra));
	const ib::Mad &mra = alone->peer.last(ib::CmAttribute::mra);
	EXPECT_EQ(ib::cm_message<ib::CmMra>(mra).service_timeout(), 20);
	EXPECT_EQ(ib::cm_message<ib::CmMra>(mra).remote_id, 0x55u);
}

/* A repeated DREQ gets the same DREP. */
void cm_05_repeated_dreq_gets_a_drep_even_after_its_cm_id_was_destroyed(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->connect());
	ib::Mad dreq = alone->to_active(ib::CmAttribute::dreq);
	ib::cm_message<ib::CmDreq>(dreq).remote_qpn = some_qpn;
	ASSERT_TRUE(alone->peer.says(alone->node, dreq));
	ASSERT_TRUE(alone->active.receives(IB_CM_DREQ_RECEIVED));
	ASSERT_EQ(ib_send_cm_drep(alone->active.id, "done", 5), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::drep));
	if (alone->active.state() == IB_CM_TIMEWAIT) {
		ASSERT_TRUE(alone->peer.says(alone->node, dreq));
		ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::drep, 2));
	}
	/*
	 * A DREQ for a connection that no longer exists is answered as well. Otherwise the peer
	 * would wait for all of its retries.
	 */
	const unsigned int before = alone->peer.received(ib::CmAttribute::drep);
	const u32 local = alone->active.id->local_id;
	alone->active.close();
	ASSERT_TRUE(alone->peer.says(alone->node, dreq));
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::drep, before + 1));
	const ib::Mad &drep = alone->peer.last(ib::CmAttribute::drep);
	EXPECT_EQ(ib::cm_message<ib::CmDrep>(drep).local_id, local);
	EXPECT_EQ(ib::cm_message<ib::CmDrep>(drep).remote_id, 0x77u);
}

/* A DREQ for another QP than the connection's is ignored. */
void cm_05_dreq_with_a_qpn_other_than_that_of_the_connection_is_ignored(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->connect());
	ib::Mad dreq = alone->to_active(ib::CmAttribute::dreq);
	ib::cm_message<ib::CmDreq>(dreq).remote_qpn = some_qpn + 1;
	ASSERT_TRUE(alone->peer.says(alone->node, dreq));
	EXPECT_EQ(alone->active.state(), IB_CM_ESTABLISHED);
	EXPECT_EQ(alone->active.delivered(IB_CM_DREQ_RECEIVED), 0u);
}

/*
 * A peer connects again with the same QP: its REQ is rejected as stale, and the old connection
 * ends. After that it can connect.
 */
void cm_05_second_req_from_a_connected_qp_is_rejected_and_closes_the_old_connection(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->connect());
	ASSERT_TRUE(alone->peer.says(alone->node, alone->peer.make_req(alone->node, 0x1234)));
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::rej));
	const ib::Mad &rej = alone->peer.last(ib::CmAttribute::rej);
	EXPECT_EQ(ib::cm_message<ib::CmRej>(rej).reason, IB_CM_REJ_STALE_CONN);
	EXPECT_EQ(ib::cm_message<ib::CmRej>(rej).remote_id, 0x1234u);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::dreq));
	EXPECT_EQ(alone->active.state(), IB_CM_DREQ_SENT);
	EXPECT_EQ(alone->passive.delivered(IB_CM_REQ_RECEIVED), 0u);
	ASSERT_TRUE(alone->peer.says(alone->node, alone->to_active(ib::CmAttribute::drep)));
	ASSERT_TRUE(alone->active.receives(IB_CM_DREP_RECEIVED));
	ASSERT_TRUE(alone->peer.says(alone->node, alone->peer.make_req(alone->node, 0x1235)));
	EXPECT_TRUE(alone->passive.receives(IB_CM_REQ_RECEIVED));
}

/*
 * A REP with a QP that is in use is rejected, the old connection is closed, and the new ID
 * continues to send its REQ.
 */
void cm_05_rep_with_a_qpn_in_use_is_rejected(Test &test)
{
	Boxed<Alone> alone;
	Boxed<End> second;
	ASSERT_TRUE(alone.ok());
	ASSERT_TRUE(alone->connect());
	ASSERT_TRUE(second->open(alone->node));
	ASSERT_EQ(second->request(alone->node, alone->peer.node, some_qpn + 7), 0);
	ib::Mad rep = alone->reply(0x78);
	ib::cm_message<ib::CmRep>(rep).remote_id = second->id->local_id.value();
	ASSERT_TRUE(alone->peer.says(alone->node, rep));
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::rej));
	const ib::Mad &rej = alone->peer.last(ib::CmAttribute::rej);
	EXPECT_EQ(ib::cm_message<ib::CmRej>(rej).reason, IB_CM_REJ_STALE_CONN);
	EXPECT_EQ(ib::cm_message<ib::CmRej>(rej).subject(), 1);
	EXPECT_EQ(second->state(), IB_CM_REQ_SENT);
	EXPECT_EQ(alone->active.state(), IB_CM_DREQ_SENT);
}

/* If a response could not be sent, the next repetition of the REP causes it to be sent again. */
void cm_05_mra_is_resent_for_a_duplicate_rep_if_the_rtu_could_not_be_sent(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_EQ(alone->active.request(alone->node, alone->peer.node), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::req));
	ASSERT_TRUE(alone->peer.says(alone->node, alone->reply()));
	ASSERT_TRUE(alone->active.receives(IB_CM_REP_RECEIVED));
	ASSERT_EQ(ib_send_cm_mra(alone->active.id, 20, nullptr, 0), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::mra));
	kern_fail_allocation(1);
	EXPECT_EQ(ib_send_cm_rtu(alone->active.id, nullptr, 0), -ENOMEM);
	kern_fail_allocation(0);
	ASSERT_TRUE(alone->peer.says(alone->node, alone->reply()));
	EXPECT_TRUE(eventually([&] {
		return alone->peer.received(ib::CmAttribute::mra) == 2 ||
		       alone->peer.received(ib::CmAttribute::rtu);
	}));
	EXPECT_EQ(alone->peer.received(ib::CmAttribute::rtu), 0u);
	EXPECT_EQ(ib_send_cm_rtu(alone->active.id, nullptr, 0), 0);
}

/* A connection is closed even if its DREQ cannot be sent, and its consumer is notified. */
void cm_05_connection_is_closed_even_if_its_dreq_cannot_be_sent(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->connect());
	kern_fail_allocation(1);
	EXPECT_EQ(ib_send_cm_dreq(pair->active.id, nullptr, 0), -ENOMEM);
	kern_fail_allocation(0);
	EXPECT_TRUE(pair->active.receives(IB_CM_DREQ_ERROR));
	EXPECT_EQ(pair->active.state(), IB_CM_TIMEWAIT);
	EXPECT_EQ(pair->passive.state(), IB_CM_ESTABLISHED);
}

/* A REP without a QP is invalid; the ID continues to send its REQ. */
void cm_01_rep_without_a_qpn_is_dropped_as_malformed(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	ASSERT_EQ(alone->active.request(alone->node, alone->peer.node), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::req));
	ASSERT_TRUE(alone->peer.says(alone->node, alone->reply(0x77, 0)));
	EXPECT_EQ(alone->active.delivered(IB_CM_REP_RECEIVED), 0u);
	EXPECT_EQ(alone->active.state(), IB_CM_REQ_SENT);
	EXPECT_EQ(alone->node.counters().malformed, 1u);
	ASSERT_TRUE(alone->peer.says(alone->node, alone->reply()));
	EXPECT_TRUE(alone->active.receives(IB_CM_REP_RECEIVED));
}

/*
 * After a REQ has been rejected as stale, timewait lasts as long as its path requires: 2^19 * 4.096
 * us = 2.1 s.
 */
void cm_06_timewait_after_a_stale_connection_rej_lasts_at_least_twice_the_packet_lifetime(
	Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	const sa_path_rec path = alone->node.path_to(alone->peer.node, 18);
	const auto param = End::request_of(path);
	ASSERT_EQ(ib_send_cm_req(alone->active.id, &param), 0);
	ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::req));
	ib::Mad rej = alone->to_active(ib::CmAttribute::rej, 0);
	ib::cm_message<ib::CmRej>(rej).reason = u16{IB_CM_REJ_STALE_CONN};
	const u64 begin = kern::now_ns();
	ASSERT_TRUE(alone->peer.says(alone->node, rej));
	ASSERT_TRUE(alone->active.receives(IB_CM_REJ_RECEIVED));
	ASSERT_TRUE(alone->active.receives(IB_CM_TIMEWAIT_EXIT));
	EXPECT_GE((kern::now_ns() - begin) / 1'000'000, u64{cm::wait_ms(cm::time_ns(19))});
}

/*
 * Messages that could not be answered because memory was short are counted as such, not as
 * malformed messages.
 */
void cm_12_messages_dropped_for_lack_of_memory_are_not_counted_as_malformed(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	soft_fail(alone->node.device(), SOFT_CREATE_AH, 1, -ENOMEM);
	ASSERT_TRUE(alone->peer.says(alone->node,
				     UnknownPeer::make(ib::CmAttribute::dreq, 0x77, 0x88)));
	EXPECT_EQ(alone->node.counters().no_memory, 1u);
	EXPECT_EQ(alone->node.counters().malformed, 0u);
}

/*
 * Every reject reason arrives unchanged with its information and private data, before and after the
 * REP, and has a text.
 */
void cm_06_each_rej_reason_reaches_the_peer_with_the_given_ari_and_private_data(Test &test)
{
	for (int reason = IB_CM_REJ_NO_QP; reason <= IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED;
	     reason++) {
		EXPECT_TRUE((__builtin_strcmp(ibcm_reject_msg(reason), ibcm_reject_msg(0)) == 0) ==
			    (reason == 34));
		for (bool replied : {false, true}) {
			Boxed<Pair> pair;
			ASSERT_TRUE(pair.ok());
			ASSERT_TRUE(replied ? pair->reply() : pair->request());
			End &from = replied ? pair->active : pair->passive;
			End &to = replied ? pair->passive : pair->active;
			ASSERT_EQ(ib_send_cm_rej(from.id, static_cast<ib_cm_rej_reason>(reason),
						 "why", 4, "sorry", 6),
				  0);
			ASSERT_TRUE(to.receives(IB_CM_REJ_RECEIVED));
			EXPECT_EQ(to.last.param.rej_rcvd.reason, reason);
			EXPECT_EQ(to.last.param.rej_rcvd.ari_length, 4);
			EXPECT_EQ(__builtin_memcmp(to.data, "sorry", 6), 0);
			EXPECT_EQ(from.state(), IB_CM_IDLE);
			EXPECT_EQ(to.state(),
				  reason == IB_CM_REJ_STALE_CONN ? IB_CM_TIMEWAIT : IB_CM_IDLE);
		}
	}
	EXPECT_TRUE(__builtin_strcmp(ibcm_reject_msg(-1), ibcm_reject_msg(36)) == 0);
}

/* Rejects that the CM sends by itself, and their contents. */
void cm_06_invalid_req_is_rejected_with_the_matching_rej_reason(Test &test)
{
	Boxed<Alone> alone;
	ASSERT_TRUE(alone.ok());
	struct {
		ib_cm_rej_reason reason;
		u8 info_length;
		void (*wrong)(ib::CmReq &req);
	} const cases[] = {
		{IB_CM_REJ_INVALID_SERVICE_ID, 0,
		 [](ib::CmReq &req) { req.service_id = service + 9; }},
		{IB_CM_REJ_INVALID_TRANSPORT_TYPE, 0,
		 [](ib::CmReq &req) { req.set_transport(ib::CmTransport::rd); }},
		{IB_CM_REJ_INVALID_MTU, 1, [](ib::CmReq &req) { req.set_path_mtu(9); }},
		{IB_CM_REJ_INVALID_GID, 16,
		 [](ib::CmReq &req) { req.primary.remote_gid.raw[15] ^= 0x40; }},
		{IB_CM_REJ_INVALID_GID, 16, [](ib::CmReq &req) { req.pkey = u16{0x1234}; }},
		{IB_CM_REJ_INVALID_GID, 16, [](ib::CmReq &req) { req.pkey = u16{0}; }},
		{IB_CM_REJ_INVALID_GID, 16, [](ib::CmReq &req) { req.primary.remote_gid = {}; }},
		/* No address handle can be created from these values. */
		{IB_CM_REJ_INVALID_GID, 16, [](ib::CmReq &req) { req.primary.set_rate(1); }},
		{IB_CM_REJ_INVALID_GID, 16, [](ib::CmReq &req) { req.primary.local_lid = 0u; }},
		{IB_CM_REJ_INVALID_GID, 16,
		 [](ib::CmReq &req) { req.primary.local_lid = 0xc001u; }},
		{IB_CM_REJ_INVALID_ALT_GID, 16,
		 [](ib::CmReq &req) { req.alternate.local_lid = 5u; }},
	};
	unsigned int rejected = 0;
	for (const auto &one : cases) {
		ib::Mad mad = alone->peer.make_req(alone->node, 0x100 + rejected, 0x200 + rejected);
		one.wrong(ib::cm_message<ib::CmReq>(mad));
		ASSERT_TRUE(alone->peer.says(alone->node, mad));
		ASSERT_TRUE(alone->peer.receives(ib::CmAttribute::rej, ++rejected));
		const ib::Mad &last = alone->peer.last(ib::CmAttribute::rej);
		const auto &rej = ib::cm_message<ib::CmRej>(last);
		EXPECT_EQ(rej.reason, one.reason);
		EXPECT_EQ(rej.info_length(), one.info_length);
		EXPECT_EQ(rej.local_id, 0u);
		EXPECT_EQ(rej.remote_id, 0x100 + rejected - 1);
		EXPECT_EQ(rej.subject(), 0);
		EXPECT_EQ(last.header.tid, mad.header.tid);
	}
	EXPECT_EQ(alone->passive.delivered(IB_CM_REQ_RECEIVED), 0u);
}

} // namespace

CARD_SUITE(
	cm_time, KUNIT_CASE(cm_04_timeouts_are_computed_from_their_exponents),
	KUNIT_CASE(cm_04_unanswered_req_times_out), KUNIT_CASE(cm_04_unanswered_rep_times_out),
	KUNIT_CASE(cm_04_unanswered_dreq_times_out),
	KUNIT_CASE(cm_04_mra_extends_the_timeout_of_each_retry),
	KUNIT_CASE(cm_04_mra_extends_a_timeout_by_at_most_90_seconds),
	KUNIT_CASE(cm_04_lost_messages_are_retransmitted),
	KUNIT_CASE(cm_05_duplicate_rep_gets_the_same_rtu_and_duplicate_req_the_same_mra),
	KUNIT_CASE(cm_05_repeated_dreq_gets_a_drep_even_after_its_cm_id_was_destroyed),
	KUNIT_CASE(cm_05_dreq_with_a_qpn_other_than_that_of_the_connection_is_ignored),
	KUNIT_CASE(cm_05_second_req_from_a_connected_qp_is_rejected_and_closes_the_old_connection),
	KUNIT_CASE(cm_05_rep_with_a_qpn_in_use_is_rejected),
	KUNIT_CASE(cm_05_mra_is_resent_for_a_duplicate_rep_if_the_rtu_could_not_be_sent),
	KUNIT_CASE(cm_05_connection_is_closed_even_if_its_dreq_cannot_be_sent),
	KUNIT_CASE(cm_01_rep_without_a_qpn_is_dropped_as_malformed),
	KUNIT_CASE(
		cm_06_timewait_after_a_stale_connection_rej_lasts_at_least_twice_the_packet_lifetime),
	KUNIT_CASE(cm_12_messages_dropped_for_lack_of_memory_are_not_counted_as_malformed),
	KUNIT_CASE(cm_06_each_rej_reason_reaches_the_peer_with_the_given_ari_and_private_data),
	KUNIT_CASE(cm_06_invalid_req_is_rejected_with_the_matching_rej_reason));
