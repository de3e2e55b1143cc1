// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-03 (each send completes exactly once) with RMPP messages of many segments, in
// both directions.
#include "fixture.hpp"

using namespace mad_fixture;

namespace
{

constexpr unsigned long get_multi = 1ul << 0x14;
constexpr u8 method_get_multi = 0x14;

struct Pair {
	Node a{1}, b{2};
	Agent client{a}, server{b};

	bool ok()
	{
		server.answering = true;
		return a.ok() && b.ok() && client.open(0, 0, 1, IB_MGMT_RMPP_VERSION) == 0 &&
		       server.open(vendor_rmpp_class, get_multi, 1, IB_MGMT_RMPP_VERSION) == 0;
	}
};

/*
 * Messages from one segment to several windows, with all lengths of the last segment near its
 * limits.
 */
void mgmt_03_rmpp_messages_of_1_to_201_segments_arrive_intact(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	for (int bytes : {1, 215, 216, 217, 5000, 64 * 216, 64 * 216 + 1, 200 * 216 + 77}) {
		pair.server.answer_bytes = bytes + 3;
		Sent sent(pair.client, 2, vendor_rmpp_class, method_get_multi, 5000, 2, bytes);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
		EXPECT_EQ(pair.server.last_length, bytes + IB_MGMT_VENDOR_HDR);
		EXPECT_EQ(pair.client.last_length, bytes + 3 + IB_MGMT_VENDOR_HDR);
	}
	EXPECT_TRUE(pair.server.content_right);
	EXPECT_TRUE(pair.client.content_right);
	EXPECT_TRUE(eventually([&] { return pair.server.answers_sent.load_acquire() == 8; }));
	EXPECT_EQ(pair.server.answers_failed.load_acquire(), 0u);
}

/*
 * More messages than can be assembled at the same time. Each starts when the previous one has
 * ended, although completed messages are remembered for a while.
 */
void mgmt_03_rmpp_completed_messages_do_not_block_new_messages(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	pair.server.answer_bytes = 300;
	for (unsigned int n = 0; n < 150; n++) {
		Sent sent(pair.client, 2, vendor_rmpp_class, method_get_multi, 5000, 0, 300);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		ASSERT_TRUE(sent.ended());
		ASSERT_EQ(sent.status(), IB_WC_SUCCESS);
	}
}

/* The path of the request loses and reorders packets; every message arrives complete. */
void mgmt_03_rmpp_messages_arrive_complete_despite_loss_and_reordering(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	pair.server.answering = false;
	soft_disturb(pair.a.device(), 30, 20, test.seed());
	soft_disturb(pair.b.device(), 30, 0, test.seed() + 1);
	for (unsigned int n = 1; n <= 3; n++) {
		const int bytes = 150 * 216 + static_cast<int>(n);
		Sent sent(pair.client, 2, vendor_rmpp_class, method_get_multi, 100, 100, bytes);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		EXPECT_TRUE(eventually([&] { return pair.server.received.load_acquire() == n; }));
		EXPECT_EQ(pair.server.last_length, bytes + IB_MGMT_VENDOR_HDR);
		ib_cancel_mad(sent.buf());
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.completions(), 1u);
	}
	EXPECT_TRUE(pair.server.content_right);
	soft_disturb(pair.a.device(), 0, 0, 0);
	soft_disturb(pair.b.device(), 0, 0, 0);
}

/* ABORT and STOP from the peer terminate the transfer, with the peer's reason. */
void mgmt_03_rmpp_abort_and_stop_packets_terminate_the_transfer(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	for (u8 type : {IB_MGMT_RMPP_TYPE_ABORT, IB_MGMT_RMPP_TYPE_STOP}) {
		/* All data is lost: the message waits for the peer. */
		Watch watch(pair.a.device(), ~0ul);
		Sent sent(pair.client, 2, vendor_rmpp_class, method_get_multi, 600'000, 0, 5000);
		Sent word(pair.server, 1, vendor_rmpp_class, method_get_multi | IB_MGMT_METHOD_RESP,
			  0, 0);
		ASSERT_TRUE(sent.ok() && word.ok());
		ASSERT_EQ(sent.post(), 0);
		auto &mad = *static_cast<ib_rmpp_mad *>(word.buf()->mad);
		mad.mad_hdr.tid = sent.header().tid;
		mad.rmpp_hdr.rmpp_version = IB_MGMT_RMPP_VERSION;
		mad.rmpp_hdr.rmpp_type = type;
		ib_set_rmpp_flags(&mad.rmpp_hdr, IB_MGMT_RMPP_FLAG_ACTIVE);
		mad.rmpp_hdr.rmpp_status = IB_MGMT_RMPP_STATUS_RESX;
		ASSERT_EQ(word.post(), 0);
		ASSERT_TRUE(word.ended());
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.status(), IB_WC_REM_ABORT_ERR);
		EXPECT_EQ(sent.completions(), 1u);
	}
}

/*
 * A sender that gets no ACK gives up and notifies its peer. A sender that misses only the response
 * sends no ABORT.
 */
void mgmt_03_rmpp_sender_aborts_if_no_segment_is_acknowledged(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	pair.server.answering = false;
	for (bool acknowledged : {false, true}) {
		Watch watch(pair.b.device(), acknowledged ? 0 : ~0ul);
		Spy spy(pair.a.device());
		Sent sent(pair.client, 2, vendor_rmpp_class, method_get_multi,
			  acknowledged ? 500 : 50, 1, 500);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.status(), IB_WC_RESP_TIMEOUT_ERR);
		EXPECT_EQ(sent.completions(), 1u);
		if (acknowledged) {
			EXPECT_EQ(spy.type.load_acquire(), u32{IB_MGMT_RMPP_TYPE_DATA});
			EXPECT_EQ(pair.server.received.load_acquire(), 1u);
		} else {
			EXPECT_TRUE(spy.aborted(IB_MGMT_RMPP_STATUS_TMR));
			EXPECT_EQ(pair.server.received.load_acquire(), 0u);
		}
	}
	/* The peer has recognised the ABORT as such. */
	EXPECT_EQ(dropped(pair.b).rmpp_discarded, 0u);
}

/*
 * Two nodes send requests with the same transaction ID. Each gets its own response, and the ACKs of
 * the responses are not confused.
 */
void mgmt_03_rmpp_each_of_two_nodes_that_use_the_same_tid_gets_its_own_response(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Node third{3};
	ASSERT_TRUE(third.ok());
	Agent other{third};
	ASSERT_EQ(other.open(0, 0, 1, IB_MGMT_RMPP_VERSION), 0);
	/* Two nodes may choose the same value by chance. */
	other.agent->hi_tid = pair.client.agent->hi_tid;
	pair.server.answer_bytes = 300 * 216;
	Sent one(pair.client, 2, vendor_rmpp_class, method_get_multi, 30'000, 0, 100);
	Sent two(other, 2, vendor_rmpp_class, method_get_multi, 30'000, 0, 200);
	ASSERT_TRUE(one.ok() && two.ok());
	two.header().tid = one.header().tid;
	ASSERT_EQ(one.post(), 0);
	ASSERT_EQ(two.post(), 0);
	for (Sent *sent : {&one, &two}) {
		ASSERT_TRUE(sent->ended());
		EXPECT_EQ(sent->status(), IB_WC_SUCCESS);
	}
	EXPECT_EQ(pair.client.last_length, 300 * 216 + IB_MGMT_VENDOR_HDR);
	EXPECT_EQ(other.last_length, 300 * 216 + IB_MGMT_VENDOR_HDR);
	EXPECT_TRUE(pair.client.content_right && other.content_right);
	EXPECT_TRUE(eventually([&] { return pair.server.answers_sent.load_acquire() == 2; }));
	EXPECT_EQ(pair.server.answers_failed.load_acquire(), 0u);
}

/* If an agent is unregistered, each of its messages in transfer is flushed once. */
void mgmt_03_rmpp_agent_unregistration_flushes_each_message_once(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Watch watch(pair.b.device(), ~0ul);
	Sent sent(pair.client, 2, vendor_rmpp_class, method_get_multi, 600'000, 0, 5000);
	ASSERT_TRUE(sent.ok());
	ASSERT_EQ(sent.post(), 0);
	/* The first ACK shows that the server has begun to assemble. */
	EXPECT_TRUE(eventually([&] { return watch.seen.load_acquire() >= 1; }));
	pair.server.close();
	pair.client.close();
	EXPECT_EQ(sent.completions(), 1u);
	EXPECT_EQ(sent.status(), IB_WC_WR_FLUSH_ERR);
}

/* Segment @number of two, of the message that @id names. */
bool send_segment(Raw &raw, u32 id, u32 number)
{
	ib_rmpp_mad &mad = raw.mad();
	mad.mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad.mad_hdr.mgmt_class = vendor_rmpp_class;
	mad.mad_hdr.class_version = 1;
	mad.mad_hdr.method = method_get_multi;
	mad.mad_hdr.tid = id;
	mad.rmpp_hdr.rmpp_version = IB_MGMT_RMPP_VERSION;
	mad.rmpp_hdr.rmpp_type = IB_MGMT_RMPP_TYPE_DATA;
	mad.rmpp_hdr.seg_num = number;
	mad.rmpp_hdr.paylen_newwin = number == 2 ? 100 : 0;
	ib_set_rmpp_flags(&mad.rmpp_hdr,
			  IB_MGMT_RMPP_FLAG_ACTIVE |
				  (number == 1 ? IB_MGMT_RMPP_FLAG_FIRST : IB_MGMT_RMPP_FLAG_LAST));
	return raw.send(IB_MGMT_MAD_SIZE);
}

/*
 * A message whose peer stops sending is abandoned after 40 s and not before. Its later segments do
 * not start a new one.
 */
void mgmt_03_rmpp_receiver_abandons_a_message_if_no_segment_arrives_for_40_s(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	pair.server.answering = false;
	auto made = kern::make<Raw>(kern::Gfp::kernel, pair.client, u16{2});
	ASSERT_OK(made);
	Raw &raw = *made.value();
	Watch acknowledged(pair.b.device(), 0);
	ASSERT_TRUE(send_segment(raw, 1, 1));
	ASSERT_TRUE(eventually([&] { return acknowledged.seen.load_acquire() == 1; }));
	kern::sleep_ms(38'000);
	ASSERT_TRUE(send_segment(raw, 1, 2));
	ASSERT_TRUE(eventually([&] { return pair.server.received.load_acquire() == 1; }));

	ASSERT_TRUE(send_segment(raw, 2, 1));
	ASSERT_TRUE(eventually([&] { return acknowledged.seen.load_acquire() == 3; }));
	kern::sleep_ms(42'000);
	ASSERT_TRUE(send_segment(raw, 2, 2));
	ASSERT_TRUE(eventually([&] { return dropped(pair.b).rmpp_discarded == 1; }));
	EXPECT_EQ(pair.server.received.load_acquire(), 1u);
	EXPECT_EQ(acknowledged.seen.load_acquire(), 3u);
}

/*
 * A sender whose ACK was lost repeats the last segment. It gets an ACK for 10 s after the message
 * was complete, however often it repeats it.
 */
void mgmt_03_rmpp_repeated_last_segment_is_acknowledged_until_10_s_after_completion(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	pair.server.answering = false;
	auto made = kern::make<Raw>(kern::Gfp::kernel, pair.client, u16{2});
	ASSERT_OK(made);
	Raw &raw = *made.value();
	Watch acknowledged(pair.b.device(), 0);
	ASSERT_TRUE(send_segment(raw, 1, 1) && send_segment(raw, 1, 2));
	ASSERT_TRUE(eventually([&] { return acknowledged.seen.load_acquire() == 2; }));
	kern::sleep_ms(6'000);
	ASSERT_TRUE(send_segment(raw, 1, 2));
	ASSERT_TRUE(eventually([&] { return acknowledged.seen.load_acquire() == 3; }));
	EXPECT_EQ(dropped(pair.b).rmpp_discarded, 0u);
	kern::sleep_ms(5'000);
	ASSERT_TRUE(send_segment(raw, 1, 2));
	ASSERT_TRUE(eventually([&] { return dropped(pair.b).rmpp_discarded == 1; }));
	EXPECT_EQ(acknowledged.seen.load_acquire(), 3u);
	EXPECT_EQ(pair.server.received.load_acquire(), 1u);
}

} // namespace

SOFT_SUITES(mad_rmpp_traffic, KUNIT_CASE(mgmt_03_rmpp_messages_of_1_to_201_segments_arrive_intact),
	    KUNIT_CASE(mgmt_03_rmpp_completed_messages_do_not_block_new_messages),
	    KUNIT_CASE(mgmt_03_rmpp_messages_arrive_complete_despite_loss_and_reordering),
	    KUNIT_CASE(mgmt_03_rmpp_abort_and_stop_packets_terminate_the_transfer),
	    KUNIT_CASE(mgmt_03_rmpp_sender_aborts_if_no_segment_is_acknowledged),
	    KUNIT_CASE(mgmt_03_rmpp_each_of_two_nodes_that_use_the_same_tid_gets_its_own_response),
	    KUNIT_CASE(mgmt_03_rmpp_agent_unregistration_flushes_each_message_once));
/* These tests take minutes of virtual time, so they run only there and only once. */
CARD_SUITE(
	mad_rmpp_silence,
	KUNIT_CASE(mgmt_03_rmpp_receiver_abandons_a_message_if_no_segment_arrives_for_40_s),
	KUNIT_CASE(mgmt_03_rmpp_repeated_last_segment_is_acknowledged_until_10_s_after_completion));
