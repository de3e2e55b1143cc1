// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rules MGMT-03 and MGMT-07: each MAD that an agent sends completes once, and each received
// MAD has its sender's address.
#include "fixture.hpp"

using namespace mad_fixture;

namespace
{

constexpr unsigned long get = 1ul << IB_MGMT_METHOD_GET, send = 1ul << IB_MGMT_METHOD_SEND;
/* The request is not abandoned even if the responder takes long. */
constexpr int patient = 1000;

/* Node a sends requests, and node b responds. */
struct Pair {
	Node a{1}, b{2};
	Agent client{a}, server{b};

	bool ok()
	{
		server.answering = true;
		return a.ok() && b.ok() && client.open(vendor_class, send) == 0 &&
		       server.open(vendor_class, get) == 0;
	}
};

void mgmt_03_each_request_completes_once_and_gets_its_response(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	for (unsigned int n = 1; n <= 20; n++) {
		Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
		ASSERT_TRUE(sent.ok());
		ASSERT_EQ(sent.post(), 0);
		ASSERT_TRUE(sent.ended());
		EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
		EXPECT_EQ(sent.completions(), 1u);
		EXPECT_EQ(pair.client.answers.load_acquire(), n);
	}
}

/*
 * MADs and completions that arrive after the last poll and before the arm, on hardware that raises
 * no event for them: each is reported, and each request answered.
 */
void notify_09_mad_that_arrives_between_poll_and_arm_is_received(Test &test)
{
	Node asking{1, SOFT_NOTIFY_REPORTS, SOFT_TASK}, asked{2, SOFT_NOTIFY_REPORTS, SOFT_TASK};
	ASSERT_TRUE(asking.ok() && asked.ok());
	Agent client{asking}, server{asked};
	server.answering = true;
	ASSERT_EQ(client.open(), 0);
	ASSERT_EQ(server.open(vendor_class, 1ul << IB_MGMT_METHOD_GET), 0);
	soft_complete_late(asking.device(), true);
	soft_complete_late(asked.device(), true);
	for (unsigned int round = 0; round < 5; round++) {
		/*
		 * The first MAD raises an event. The following ones arrive before the CQ is armed,
		 * and raise none.
		 */
		Sent burst[] = {{client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0},
				{client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0},
				{client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0},
				{client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0}};
		for (Sent &sent : burst) {
			ASSERT_TRUE(sent.ok());
			ASSERT_EQ(sent.post(), 0);
		}
		for (Sent &sent : burst) {
			ASSERT_TRUE(sent.ended());
			EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
		}
	}
	soft_complete_late(asking.device(), false);
	soft_complete_late(asked.device(), false);
}

/*
 * Agents are bound to QP0 or QP1, which have their own classes and, for QP1, a Q_Key. A datagram to
 * QP1 from any QP is received if it has that Q_Key.
 */
void mgmt_01_management_class_selects_qp0_or_qp1_and_qp1_checks_the_qkey(Test &test)
{
	Node node{1}, other{2};
	ASSERT_TRUE(node.ok() && other.ok());
	struct {
		ib_qp_type type;
		u32 number;
		u8 its_class, other_class;
	} const interfaces[] = {
		{IB_QPT_SMI, IB_QP0, IB_MGMT_CLASS_SUBN_LID_ROUTED, IB_MGMT_CLASS_PERF_MGMT},
		{IB_QPT_GSI, IB_QP1.value(), IB_MGMT_CLASS_PERF_MGMT,
		 IB_MGMT_CLASS_SUBN_LID_ROUTED},
	};
	const auto bind = [&](ib_qp_type type, u8 mgmt_class) {
		ib_mad_reg_req request{};
		request.mgmt_class = mgmt_class;
		request.mgmt_class_version = 1;
		request.method_mask[0] = get;
		return ib_register_mad_agent(
			node.device(), 1, type, &request, 0,
			[](ib_mad_agent *, ib_mad_send_wc *) {},
			[](ib_mad_agent *, ib_mad_send_buf *, ib_mad_recv_wc *wc) {
				ib_free_recv_mad(wc);
			},
			nullptr, 0);
	};
	for (const auto &interface : interfaces) {
		EXPECT_EQ(rdma::ptr_err(bind(interface.type, interface.other_class)),
			  -EPROTONOSUPPORT);
		auto *agent = bind(interface.type, interface.its_class);
		ASSERT_FALSE(rdma::is_err(agent));
		EXPECT_EQ(agent->qp->qp_num, interface.number);
		EXPECT_EQ(agent->qp->qp_type, interface.type);
		ib_qp_attr attr{};
		ib_qp_init_attr init;
		EXPECT_EQ(ib_query_qp(agent->qp, &attr, IB_QP_QKEY, &init), 0);
		EXPECT_EQ(attr.qkey, interface.type == IB_QPT_GSI ? IB_QP1_QKEY : 0);
		ib_unregister_mad_agent(agent);
	}

	Agent server{node};
	ASSERT_EQ(server.open(vendor_class, get), 0);
	auto pd = rdma::Pd::create(other.device());
	auto cq = rdma::CompletionQueue::create(other.device(), nullptr, nullptr, 8);
	ASSERT_TRUE(pd.ok() && cq.ok());
	auto init = fixture::qp_attr(IB_QPT_UD);
	auto qp = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), init);
	fixture::Memory memory(pd.value());
	ASSERT_TRUE(qp.ok() && memory.ok);
	ASSERT_EQ(fixture::connect_datagram(qp.value().get(), IB_QP1_QKEY), 0);
	auto &header = *reinterpret_cast<ib_mad_hdr *>(memory.at(0));
	header.base_version = IB_MGMT_BASE_VERSION;
	header.mgmt_class = vendor_class;
	header.class_version = 1;
	header.method = IB_MGMT_METHOD_GET;
	ib_ah *ah = other.address(1);
	ASSERT_FALSE(rdma::is_err(ah));
	for (u32 qkey : {0x1234u, 0x10000u, IB_QP1_QKEY}) {
		ib_sge sge = fixture::sge_of(pd.value(), memory.at(0), IB_MGMT_MAD_SIZE);
		ib_ud_wr wr = {.wr = fixture::send_wr(&sge, IB_WR_SEND),
			       .ah = ah,
			       .remote_qpn = 1,
			       .remote_qkey = qkey};
		EXPECT_EQ(qp.value().post_send(&wr.wr), 0);
		ib_wc wc;
		EXPECT_TRUE(fixture::next(cq.value(), wc));
	}
	/* This is the last of the three datagrams, and the fabric keeps their order. */
	EXPECT_TRUE(eventually([&] { return server.received.load_acquire() >= 1; }));
	EXPECT_EQ(server.received.load_acquire(), 1u);
	EXPECT_EQ(server.last.src_qp, qp.value().number());
	rdma_destroy_ah(ah, 0);
}

void mgmt_07_received_mad_reports_lid_and_qp_of_the_sender(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
	ASSERT_TRUE(sent.ok());
	ASSERT_EQ(sent.post(), 0);
	ASSERT_TRUE(sent.ended());
	EXPECT_EQ(pair.server.last.slid, 1u);
	EXPECT_EQ(pair.server.last.src_qp, 1u);
	EXPECT_EQ(pair.client.last.slid, 2u);
	EXPECT_EQ(pair.client.last_length, static_cast<int>(IB_MGMT_MAD_SIZE));
}

/* Three transmissions, which wait for one, two and three times the timeout. */
void mgmt_03_unanswered_send_times_out_with_back_off(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Watch watch(pair.a.device(), ~0ul);
	Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 100, 2);
	ASSERT_TRUE(sent.ok());
	const u64 begin = kern::now_ns();
	ASSERT_EQ(sent.post(), 0);
	ASSERT_TRUE(sent.ended());
	EXPECT_EQ(sent.status(), IB_WC_RESP_TIMEOUT_ERR);
	EXPECT_EQ(watch.seen.load_acquire(), 3u);
	EXPECT_GE(kern::now_ns() - begin, 600u * 1000 * 1000);
	EXPECT_EQ(sent.completions(), 1u);
}

void mgmt_03_request_succeeds_after_two_lost_transmissions(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Watch watch(pair.a.device(), 0b11);
	Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 20, patient);
	ASSERT_TRUE(sent.ok());
	ASSERT_EQ(sent.post(), 0);
	ASSERT_TRUE(sent.ended());
	EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
	EXPECT_GE(watch.seen.load_acquire(), 3u);
}

/* A busy reply is ignored while retries remain, and is the final reply after that. */
void mgmt_03_request_is_retried_after_a_busy_reply(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	pair.server.busy = 2;
	Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 20, patient);
	ASSERT_TRUE(sent.ok());
	ASSERT_EQ(sent.post(), 0);
	ASSERT_TRUE(sent.ended());
	EXPECT_EQ(sent.status(), IB_WC_SUCCESS);
	EXPECT_EQ(pair.client.answers.load_acquire(), 1u);
	EXPECT_GE(pair.server.received.load_acquire(), 3u);
}

void mgmt_03_pending_send_can_be_cancelled_or_get_a_new_timeout(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Watch watch(pair.a.device(), ~0ul);
	Sent cancelled(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 600'000, 0);
	Sent shortened(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 600'000, 0);
	ASSERT_TRUE(cancelled.ok() && shortened.ok());
	EXPECT_EQ(ib_modify_mad(cancelled.buf(), 10), -EINVAL);
	ASSERT_EQ(cancelled.post(), 0);
	EXPECT_EQ(cancelled.post(), -EINVAL);
	ASSERT_EQ(shortened.post(), 0);
	ASSERT_EQ(ib_modify_mad(shortened.buf(), 20), 0);
	ASSERT_TRUE(shortened.ended());
	EXPECT_EQ(shortened.status(), IB_WC_RESP_TIMEOUT_ERR);
	EXPECT_EQ(cancelled.completions(), 0u);
	ib_cancel_mad(cancelled.buf());
	ASSERT_TRUE(cancelled.ended());
	EXPECT_EQ(cancelled.status(), IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(ib_modify_mad(cancelled.buf(), 10), -EINVAL);
	EXPECT_EQ(cancelled.completions(), 1u);
}

/*
 * More sends than the send queue holds, none of them answered: each completes once when the agent
 * is unregistered.
 */
void mgmt_03_agent_unregistration_completes_each_send_once(Test &test)
{
	constexpr std::size_t count = 200;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Watch watch(pair.a.device(), ~0ul);
	auto sends = make_requests(count, pair.client, 2, 600'000, 3);
	ASSERT_EQ(sends.size(), count);
	for (auto &sent : sends)
		ASSERT_EQ(sent->post(), 0);
	pair.client.close();
	for (auto &sent : sends) {
		EXPECT_EQ(sent->completions(), 1u);
		EXPECT_EQ(sent->status(), IB_WC_WR_FLUSH_ERR);
	}
}

/* A response completes only the earlier of two sends with the same transaction ID. */
void mgmt_03_response_completes_the_older_of_two_sends_with_the_same_tid(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Sent one(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
	Sent other(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
	ASSERT_TRUE(one.ok() && other.ok());
	other.header().tid = one.header().tid;
	ASSERT_EQ(one.post(), 0);
	ASSERT_EQ(other.post(), 0);
	ASSERT_TRUE(one.ended() && other.ended());
	EXPECT_EQ(one.completions(), 1u);
	EXPECT_EQ(other.completions(), 1u);
	EXPECT_EQ(pair.client.answers.load_acquire(), 2u);
}

/*
 * An unsolicited response is delivered to no agent, not even to one that sent the request without
 * waiting for a response.
 */
void mgmt_03_unsolicited_response_is_dropped(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Sent response(pair.server, 1, vendor_class, IB_MGMT_METHOD_GET_RESP, 0, 0);
	Sent marker(pair.server, 1, vendor_class, IB_MGMT_METHOD_SEND, 0, 0);
	Sent unanswered(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 0, 0);
	ASSERT_TRUE(response.ok() && marker.ok() && unanswered.ok());
	response.header().tid = u64{pair.client.agent->hi_tid} << 32 | 0xffff;
	ASSERT_EQ(unanswered.post(), 0);
	ASSERT_TRUE(unanswered.ended());
	EXPECT_EQ(unanswered.status(), IB_WC_SUCCESS);
	ASSERT_EQ(response.post(), 0);
	ASSERT_EQ(marker.post(), 0);
	ASSERT_TRUE(response.ended() && marker.ended());
	EXPECT_TRUE(eventually([&] { return pair.client.received.load_acquire() >= 1; }));
	EXPECT_EQ(pair.client.answers.load_acquire(), 0u);
	EXPECT_EQ(pair.client.received.load_acquire(), 1u);
}

/*
 * A MAD goes to the one agent that registered for its class, version, method and OUI; no other
 * agent can register for it.
 */
void mgmt_03_unsolicited_mad_goes_to_the_agent_of_its_class(Test &test)
{
	constexpr u8 oui_class = vendor_rmpp_class;
	Node a{1}, b{2};
	ASSERT_TRUE(a.ok() && b.ok());
	Agent from{a}, gets{b}, sends{b}, version2{b}, oui7{b}, oui8{b}, late{b};
	ASSERT_EQ(from.open(), 0);
	ASSERT_EQ(gets.open(vendor_class, get), 0);
	ASSERT_EQ(sends.open(vendor_class, send), 0);
	ASSERT_EQ(version2.open(vendor_class, get, 2), 0);
	ASSERT_EQ(oui7.open(oui_class, get, 1, 0, 7), 0);
	ASSERT_EQ(oui8.open(oui_class, get, 1, 0, 8), 0);
	EXPECT_EQ(late.open(vendor_class, get | send), -EINVAL);
	EXPECT_EQ(late.open(oui_class, get, 1, 0, 8), -EINVAL);

	const auto notify = [&](u8 mgmt_class, u8 version, u8 method, u8 oui) {
		Sent sent(from, 2, mgmt_class, method, 0, 0);
		sent.header().class_version = version;
		static_cast<ib_vendor_mad *>(sent.buf()->mad)->oui[2] = oui;
		return sent.ok() && sent.post() == 0 && sent.ended();
	};
	ASSERT_TRUE(notify(vendor_class, 1, IB_MGMT_METHOD_SEND, 0));
	ASSERT_TRUE(notify(vendor_class, 2, IB_MGMT_METHOD_GET, 0));
	ASSERT_TRUE(notify(oui_class, 1, IB_MGMT_METHOD_GET, 8));
	ASSERT_TRUE(notify(vendor_class, 3, IB_MGMT_METHOD_SEND, 0));
	ASSERT_TRUE(notify(oui_class, 1, IB_MGMT_METHOD_GET, 9));
	ASSERT_TRUE(notify(vendor_class, 1, IB_MGMT_METHOD_GET, 0));
	ASSERT_TRUE(eventually([&] { return gets.received.load_acquire() == 1; }));
	EXPECT_EQ(sends.received.load_acquire(), 1u);
	EXPECT_EQ(version2.received.load_acquire(), 1u);
	EXPECT_EQ(oui7.received.load_acquire(), 0u);
	EXPECT_EQ(oui8.received.load_acquire(), 1u);
}

/*
 * A MAD with a wrong version is dropped. A send with a wrong class or without an address is
 * refused.
 */
void mgmt_03_mad_of_a_wrong_version_is_dropped_and_posting_a_wrong_class_returns_einval(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Sent versioned(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 20, 0);
	Sent smp(pair.client, 2, IB_MGMT_CLASS_SUBN_LID_ROUTED, IB_MGMT_METHOD_GET, 20, 0);
	Sent bare(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 20, 0);
	ASSERT_TRUE(versioned.ok() && smp.ok() && bare.ok());
	versioned.header().base_version = 2;
	ASSERT_EQ(versioned.post(), 0);
	ASSERT_TRUE(versioned.ended());
	EXPECT_EQ(versioned.status(), IB_WC_RESP_TIMEOUT_ERR);
	EXPECT_EQ(pair.server.received.load_acquire(), 0u);
	EXPECT_EQ(smp.post(), -EINVAL);
	ib_ah *ah = std::exchange(bare.buf()->ah, nullptr);
	EXPECT_EQ(bare.post(), -EINVAL);
	bare.buf()->ah = ah;
	EXPECT_EQ(smp.completions() + bare.completions(), 0u);
	bare.buf()->timeout_ms = 0;
	bare.buf()->retries = 1;
	EXPECT_EQ(bare.post(), -EINVAL);
}

/*
 * Two nodes send requests to each other with the same transaction ID, which the requester chooses.
 * Responses to a node's own request are not confused with packets about its response to the other's
 * request, whichever is older.
 */
void mgmt_03_responses_match_requests_despite_equal_tids_of_two_nodes(Test &test)
{
	constexpr u64 low = 0x1234;
	Node a{1}, b{2};
	ASSERT_TRUE(a.ok() && b.ok());
	Agent here{a}, there{b};
	here.answering = there.answering = true;
	here.answer_bytes = there.answer_bytes = 2 * IB_MGMT_VENDOR_DATA;
	for (Agent *agent : {&here, &there})
		ASSERT_EQ(agent->open(vendor_rmpp_class, get, 1, IB_MGMT_RMPP_VERSION), 0);
	const u64 ours = u64{here.agent->hi_tid} << 32 | low,
		  theirs = u64{there.agent->hi_tid} << 32 | low;

	/* A local response that is not acknowledged, older than the local request. */
	Sent dropped(here, 2, vendor_rmpp_class, IB_MGMT_METHOD_GET_RESP, 0, 0,
		     2 * IB_MGMT_VENDOR_DATA);
	Sent question(here, 2, vendor_rmpp_class, IB_MGMT_METHOD_GET, 1000, 0);
	ASSERT_TRUE(dropped.ok() && question.ok());
	dropped.header().tid = question.header().tid = ours;
	ASSERT_EQ(dropped.post(), 0);
	ASSERT_EQ(question.post(), 0);
	ASSERT_TRUE(question.ended());
	EXPECT_EQ(question.status(), IB_WC_SUCCESS);
	EXPECT_EQ(here.answers.load_acquire(), 1u);

	/*
	 * A local request that is not answered, older than the local response; ACKs still belong to
	 * the response.
	 */
	Sent unanswered(here, 99, vendor_rmpp_class, IB_MGMT_METHOD_GET, 600'000, 0);
	Sent asked(there, 1, vendor_rmpp_class, IB_MGMT_METHOD_GET, 1000, 0);
	ASSERT_TRUE(unanswered.ok() && asked.ok());
	unanswered.header().tid = asked.header().tid = theirs;
	ASSERT_EQ(unanswered.post(), 0);
	ASSERT_EQ(asked.post(), 0);
	ASSERT_TRUE(asked.ended());
	EXPECT_EQ(asked.status(), IB_WC_SUCCESS);
	EXPECT_TRUE(eventually([&] { return here.answers_sent.load_acquire() == 1; }));
	EXPECT_EQ(unanswered.completions(), 0u);
	EXPECT_EQ(here.answers_failed.load_acquire(), 0u);
}

/*
 * The upper half of the transaction ID differs between the agents of a special QP and, except by
 * chance, between nodes.
 */
void mgmt_03_mad_agents_get_different_hi_tids(Test &test)
{
	Node a{1}, b{2}, c{3};
	ASSERT_TRUE(a.ok() && b.ok() && c.ok());
	Agent agents[] = {Agent{a}, Agent{a}, Agent{b}, Agent{c}};
	for (Agent &agent : agents) {
		ASSERT_EQ(agent.open(), 0);
		EXPECT_NE(agent.agent->hi_tid, 0u);
	}
	EXPECT_NE(agents[0].agent->hi_tid, agents[1].agent->hi_tid);
	/* Three equal values by chance are expected once in 2^62 runs. */
	EXPECT_FALSE(agents[0].agent->hi_tid == agents[2].agent->hi_tid &&
		     agents[0].agent->hi_tid == agents[3].agent->hi_tid);
}

struct Snooped {
	kern::Atomic<unsigned int> sends{}, receives{};
	ib_mad_agent *agent;

	explicit Snooped(ib_device *device)
	{
		agent = ib_register_mad_snoop(
			device, 1, IB_QPT_GSI, IB_MAD_SNOOP_SEND_COMPLETIONS | IB_MAD_SNOOP_RECVS,
			[](ib_mad_agent *self, ib_mad_send_buf *, ib_mad_send_wc *) {
				static_cast<Snooped *>(self->context)->sends.fetch_add(1);
			},
			[](ib_mad_agent *self, ib_mad_send_buf *, ib_mad_recv_wc *) {
				static_cast<Snooped *>(self->context)->receives.fetch_add(1);
			},
			this);
	}
	~Snooped()
	{
		if (!rdma::is_err(agent))
			ib_unregister_mad_agent(agent);
	}
};

void mgmt_03_each_snoop_agent_sees_sends_and_receives(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	Snooped one(pair.a.device()), other(pair.a.device());
	ASSERT_FALSE(rdma::is_err(one.agent) || rdma::is_err(other.agent));
	Sent sent(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 5000, 0);
	ASSERT_TRUE(sent.ok());
	ASSERT_EQ(sent.post(), 0);
	ASSERT_TRUE(sent.ended());
	for (const Snooped *snooped : {&one, &other}) {
		EXPECT_EQ(snooped->sends.load_acquire(), 1u);
		EXPECT_EQ(snooped->receives.load_acquire(), 1u);
	}
	EXPECT_EQ(sent.completions(), 1u);
}

/*
 * An error stops the send queue (IBA 10.3.1). An invalid request is posted between MADs while the
 * fabric is stopped. The MADs after it are flushed, and are sent when the queue has recovered.
 */
void mgmt_03_mads_flushed_by_a_send_queue_error_are_sent_after_recovery(Test &test)
{
	struct Gate {
		kern::Completion reached, open;
		kern::Atomic<unsigned int> seen{};
	} gate;
	BadRequest bad;
	Pair pair;
	ASSERT_TRUE(pair.ok());
	soft_watch(
		pair.a.device(),
		[](void *context, const void *, size_t) {
			auto &at = *static_cast<Gate *>(context);
			if (at.seen.fetch_add(1) == 0) {
				at.reached.complete();
				at.open.wait();
			}
			return false;
		},
		&gate);

	Sent first(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 60'000, 0);
	Sent second(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 60'000, 0);
	Sent third(pair.client, 2, vendor_class, IB_MGMT_METHOD_GET, 60'000, 0);
	ASSERT_TRUE(first.ok() && second.ok() && third.ok());
	const int posted = first.post();
	gate.reached.wait();

	const int posted_bad = bad.post(pair.client.agent->qp, first.buf()->ah);
	const int posted_second = second.post(), posted_third = third.post();
	gate.open.complete();
	ASSERT_EQ(posted, 0);
	ASSERT_EQ(posted_bad, 0);
	ASSERT_EQ(posted_second, 0);
	ASSERT_EQ(posted_third, 0);
	bad.ended.wait();
	EXPECT_NE(bad.status, IB_WC_SUCCESS);
	for (Sent *sent : {&first, &second, &third}) {
		EXPECT_TRUE(sent->ended());
		EXPECT_EQ(sent->status(), IB_WC_SUCCESS);
		EXPECT_EQ(sent->completions(), 1u);
	}
	soft_watch(pair.a.device(), nullptr, nullptr);
}

} // namespace

SOFT_SUITES(
	mad_agent, KUNIT_CASE(mgmt_01_management_class_selects_qp0_or_qp1_and_qp1_checks_the_qkey),
	KUNIT_CASE(mgmt_03_each_request_completes_once_and_gets_its_response),
	KUNIT_CASE(notify_09_mad_that_arrives_between_poll_and_arm_is_received),
	KUNIT_CASE(mgmt_07_received_mad_reports_lid_and_qp_of_the_sender),
	KUNIT_CASE(mgmt_03_unanswered_send_times_out_with_back_off),
	KUNIT_CASE(mgmt_03_request_succeeds_after_two_lost_transmissions),
	KUNIT_CASE(mgmt_03_request_is_retried_after_a_busy_reply),
	KUNIT_CASE(mgmt_03_pending_send_can_be_cancelled_or_get_a_new_timeout),
	KUNIT_CASE(mgmt_03_agent_unregistration_completes_each_send_once),
	KUNIT_CASE(mgmt_03_response_completes_the_older_of_two_sends_with_the_same_tid),
	KUNIT_CASE(mgmt_03_responses_match_requests_despite_equal_tids_of_two_nodes),
	KUNIT_CASE(mgmt_03_mad_agents_get_different_hi_tids),
	KUNIT_CASE(mgmt_03_unsolicited_response_is_dropped),
	KUNIT_CASE(mgmt_03_unsolicited_mad_goes_to_the_agent_of_its_class),
	KUNIT_CASE(
		mgmt_03_mad_of_a_wrong_version_is_dropped_and_posting_a_wrong_class_returns_einval),
	KUNIT_CASE(mgmt_03_each_snoop_agent_sees_sends_and_receives),
	KUNIT_CASE(mgmt_03_mads_flushed_by_a_send_queue_error_are_sent_after_recovery));
