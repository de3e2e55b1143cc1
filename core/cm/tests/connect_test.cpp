// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests a connection between two nodes from REQ to the end of timewait, and the events that each
// side receives.
#include "fixture.hpp"

using namespace cm_fixture;

namespace
{

void cm_03_both_ends_connect_disconnect_and_leave_timewait(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	EXPECT_EQ(pair->active.state(), IB_CM_IDLE);
	EXPECT_EQ(pair->listener.state(), IB_CM_LISTEN);
	ASSERT_TRUE(pair->request());
	EXPECT_EQ(pair->active.state(), IB_CM_REQ_SENT);
	EXPECT_EQ(pair->passive.state(), IB_CM_REQ_RCVD);
	ASSERT_EQ(pair->passive.reply(), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED));
	EXPECT_EQ(pair->passive.state(), IB_CM_REP_SENT);
	EXPECT_EQ(pair->active.state(), IB_CM_REP_RCVD);
	ASSERT_EQ(ib_send_cm_rtu(pair->active.id, "go", 3), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_RTU_RECEIVED));
	EXPECT_EQ(__builtin_memcmp(pair->passive.data, "go", 3), 0);
	EXPECT_EQ(pair->active.state(), IB_CM_ESTABLISHED);
	EXPECT_EQ(pair->passive.state(), IB_CM_ESTABLISHED);
	EXPECT_EQ(pair->active.id->remote_id, pair->passive.id->local_id.value());
	EXPECT_EQ(pair->passive.id->remote_id, pair->active.id->local_id.value());

	ASSERT_EQ(ib_send_cm_dreq(pair->active.id, "bye", 4), 0);
	EXPECT_EQ(pair->active.state(), IB_CM_DREQ_SENT);
	ASSERT_TRUE(pair->passive.receives(IB_CM_DREQ_RECEIVED));
	EXPECT_EQ(__builtin_memcmp(pair->passive.data, "bye", 4), 0);
	ASSERT_EQ(ib_send_cm_drep(pair->passive.id, nullptr, 0), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_DREP_RECEIVED));
	EXPECT_TRUE(pair->active.receives(IB_CM_TIMEWAIT_EXIT));
	EXPECT_TRUE(pair->passive.receives(IB_CM_TIMEWAIT_EXIT));
	EXPECT_EQ(pair->active.state(), IB_CM_IDLE);
	EXPECT_EQ(pair->passive.state(), IB_CM_IDLE);
	EXPECT_EQ(pair->active.all(), 3u);
	EXPECT_EQ(pair->passive.all(), 4u);
	EXPECT_EQ(pair->listener.all(), 0u);
}

/* The listener's event has the contents of the REQ, from the passive side's point of view. */
void cm_03_fields_of_req_and_rep_are_reported_in_the_peers_event(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->request());
	const auto &req = pair->passive.last.param.req_rcvd;
	EXPECT_TRUE(req.listen_id == pair->listener.id);
	EXPECT_EQ(req.port, 1u);
	EXPECT_EQ(req.bth_pkey, IB_DEFAULT_PKEY_FULL);
	EXPECT_EQ(req.remote_ca_guid, pair->a.guid());
	EXPECT_EQ(req.remote_qpn, some_qpn);
	EXPECT_EQ(req.qp_type, IB_QPT_RC);
	EXPECT_EQ(req.starting_psn, 0x111111u);
	/* Responder resources of one side limit the initiator depth of the other. */
	EXPECT_EQ(req.responder_resources, 3);
	EXPECT_EQ(req.initiator_depth, 4);
	EXPECT_EQ(req.retry_count, 7);
	EXPECT_EQ(req.rnr_retry_count, 6);
	EXPECT_EQ(pair->passive.last.private_data_len, IB_CM_REQ_PRIVATE_DATA_SIZE);
	EXPECT_EQ(__builtin_memcmp(pair->passive.data, "request", 8), 0);
	EXPECT_EQ(pair->passive.data[IB_CM_REQ_PRIVATE_DATA_SIZE - 1], 0);
	const sa_path_rec &path = pair->passive.path;
	EXPECT_TRUE(path.sgid == pair->b.gid());
	EXPECT_TRUE(path.dgid == pair->a.gid());
	EXPECT_EQ(path.ib.dlid, 1u);
	EXPECT_EQ(path.ib.slid, 2u);
	EXPECT_EQ(path.mtu, IB_MTU_2048);
	EXPECT_EQ(path.service_id, service);

	ASSERT_EQ(pair->passive.reply(), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED));
	const auto &rep = pair->active.last.param.rep_rcvd;
	EXPECT_EQ(rep.remote_ca_guid, pair->b.guid());
	EXPECT_EQ(rep.remote_qpn, other_qpn);
	EXPECT_EQ(rep.starting_psn, 0x222222u);
	EXPECT_EQ(rep.responder_resources, 4);
	EXPECT_EQ(rep.initiator_depth, 3);
	EXPECT_EQ(rep.rnr_retry_count, 5);
	EXPECT_EQ(__builtin_memcmp(pair->active.data, "reply", 6), 0);
}

/* The request event has the index of the path's GID in the local port's table. */
void cm_03_req_event_has_the_gid_index_of_the_path(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	sa_path_rec path = pair->a.path_to(pair->b);
	path.dgid.raw[15] ^= 0x5a;
	soft_set_gid(pair->b.device(), 1, 1, &path.dgid);
	ib_event event{};
	event.device = pair->b.device();
	event.event = IB_EVENT_GID_CHANGE;
	event.element.port_num = 1;
	ib_dispatch_event(&event);
	ASSERT_TRUE(eventually([&] {
		u32 port;
		u16 index;
		return ib_find_cached_gid(pair->b.device(), &path.dgid, &port, &index) == 0;
	}));
	const auto param = End::request_of(path);
	ASSERT_EQ(ib_send_cm_req(pair->active.id, &param), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
	EXPECT_EQ(pair->passive.last.param.req_rcvd.sgid_index, 1);
	EXPECT_EQ(pair->passive.last.param.req_rcvd.port, 1u);
}

int attributes(const End &end, ib_qp_state state, ib_qp_attr &attr, int &mask)
{
	attr = {};
	attr.qp_state = state;
	return ib_cm_init_qp_attr(end.id, &attr, &mask);
}

/*
 * IBA 11.2.5.2: the attributes that each QP transition needs, on both sides, and when they are
 * known. A starting PSN is the first PSN that the receiver of the message sends (IBA 12.7,
 * "Starting PSN"): the local QP expects the PSN that this side announced, and starts with the PSN
 * that the peer announced.
 */
void cm_03_ib_cm_init_qp_attr_returns_the_attributes_of_each_qp_transition(Test &test)
{
	Boxed<Pair> pair;
	ib_qp_attr attr;
	int mask = 0;
	ASSERT_TRUE(pair.ok());
	EXPECT_EQ(attributes(pair->active, IB_QPS_INIT, attr, mask), -EINVAL);
	ASSERT_TRUE(pair->request());
	EXPECT_EQ(attributes(pair->active, IB_QPS_INIT, attr, mask), 0);
	EXPECT_EQ(mask, IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT);
	EXPECT_EQ(attr.qp_access_flags,
		  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC);
	EXPECT_EQ(attr.port_num, 1u);
	EXPECT_EQ(attributes(pair->active, IB_QPS_RTR, attr, mask), -EINVAL);
	EXPECT_EQ(attributes(pair->passive, IB_QPS_RTR, attr, mask), 0);
	EXPECT_EQ(attr.dest_qp_num, some_qpn);
	/* The passive QP is set up before the REP is sent, so its values follow from the REQ. */
	EXPECT_EQ(attr.max_dest_rd_atomic, 3);
	EXPECT_EQ(attributes(pair->passive, IB_QPS_INIT, attr, mask), 0);
	EXPECT_EQ(attr.qp_access_flags,
		  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC);
	EXPECT_EQ(attributes(pair->passive, IB_QPS_RTS, attr, mask), 0);
	EXPECT_EQ(attr.max_rd_atomic, 4);
	EXPECT_EQ(attr.sq_psn, 0x111111u);
	ASSERT_EQ(pair->passive.reply(), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED));

	EXPECT_EQ(attributes(pair->active, IB_QPS_RTR, attr, mask), 0);
	EXPECT_EQ(mask, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	EXPECT_EQ(attr.dest_qp_num, other_qpn);
	EXPECT_EQ(attr.rq_psn, 0x111111u);
	EXPECT_EQ(attr.path_mtu, IB_MTU_2048);
	EXPECT_EQ(attr.max_dest_rd_atomic, 4);
	EXPECT_EQ(rdma_ah_get_dlid(&attr.ah_attr), 2u);
	EXPECT_EQ(attributes(pair->active, IB_QPS_RTS, attr, mask), 0);
	EXPECT_EQ(mask, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				IB_QP_MAX_QP_RD_ATOMIC | IB_QP_TIMEOUT);
	EXPECT_EQ(attr.sq_psn, 0x222222u);
	EXPECT_EQ(attr.retry_cnt, 7);
	EXPECT_EQ(attr.rnr_retry, 5);
	EXPECT_EQ(attr.max_rd_atomic, 3);
	/* The timeout is twice the path's packet lifetime of 2^10. */
	EXPECT_EQ(attr.timeout, 11);
	EXPECT_EQ(attributes(pair->active, IB_QPS_SQD, attr, mask), -EINVAL);

	EXPECT_EQ(attributes(pair->passive, IB_QPS_RTR, attr, mask), 0);
	EXPECT_EQ(attr.rq_psn, 0x222222u);
	EXPECT_EQ(attr.max_dest_rd_atomic, 3);
	EXPECT_EQ(rdma_ah_get_dlid(&attr.ah_attr), 1u);
	EXPECT_EQ(attributes(pair->passive, IB_QPS_RTS, attr, mask), 0);
	EXPECT_EQ(attr.sq_psn, 0x111111u);
	EXPECT_EQ(attr.rnr_retry, 6);
	EXPECT_EQ(attr.max_rd_atomic, 4);
	EXPECT_EQ(attr.timeout, 11);
}

/*
 * A REQ that is refused locally leaves no state for the next one, such as an alternate path that
 * the peer has not received.
 */
void cm_03_alternate_path_of_a_refused_ib_send_cm_req_is_not_in_later_qp_attributes(Test &test)
{
	static constexpr u8 too_much[IB_CM_REQ_PRIVATE_DATA_SIZE + 1] = {};
	Boxed<Pair> pair;
	ib_qp_attr attr;
	int mask = 0;
	ASSERT_TRUE(pair.ok());
	const sa_path_rec path = pair->a.path_to(pair->b), alternate = pair->a.path_to(pair->b, 12);
	auto param = End::request_of(path);
	param.alternate_path = &alternate;
	param.private_data = too_much;
	param.private_data_len = sizeof(too_much);
	EXPECT_EQ(ib_send_cm_req(pair->active.id, &param), -EINVAL);
	ASSERT_TRUE(pair->reply());
	EXPECT_EQ(attributes(pair->active, IB_QPS_RTR, attr, mask), 0);
	EXPECT_EQ(mask & IB_QP_ALT_PATH, 0);
	EXPECT_EQ(attributes(pair->active, IB_QPS_RTS, attr, mask), 0);
	EXPECT_EQ(mask & IB_QP_PATH_MIG_STATE, 0);
}

/* The alternate path of a REQ is loaded only if the REP reports that the peer has accepted it. */
void cm_03_alternate_path_is_loaded_only_if_the_peer_accepts_it(Test &test)
{
	for (u8 failover : {0, 1, 2}) {
		Boxed<Pair> pair;
		ib_qp_attr attr;
		int mask = 0;
		ASSERT_TRUE(pair.ok());
		const sa_path_rec path = pair->a.path_to(pair->b);
		sa_path_rec alternate = pair->a.path_to(pair->b, 12);
		auto param = End::request_of(path);
		param.alternate_path = &alternate;
		/* A REQ has one P_Key for both paths; they may differ in the membership. */
		alternate.pkey = u16{0x0123};
		EXPECT_EQ(ib_send_cm_req(pair->active.id, &param), -EINVAL);
		alternate.pkey = u16{ib::pkey_default_limited};
		ASSERT_EQ(ib_send_cm_req(pair->active.id, &param), 0);
		ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
		auto reply = End::reply_of();
		reply.failover_accepted = failover;
		ASSERT_EQ(ib_send_cm_rep(pair->passive.id, &reply), 0);
		ASSERT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED));
		EXPECT_EQ(attributes(pair->active, IB_QPS_RTR, attr, mask), 0);
		EXPECT_EQ((mask & IB_QP_ALT_PATH) != 0, failover == 0);
		EXPECT_EQ(attributes(pair->active, IB_QPS_RTS, attr, mask), 0);
		EXPECT_EQ((mask & IB_QP_PATH_MIG_STATE) != 0, failover == 0);
	}
}

/*
 * Data that arrives before the RTU establishes the connection. The RTU that follows counts as a
 * duplicate.
 */
void cm_03_data_before_rtu_establishes_the_connection(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair->reply());
	EXPECT_EQ(ib_cm_notify(pair->active.id, IB_EVENT_COMM_EST), -EINVAL);
	ASSERT_EQ(ib_cm_notify(pair->passive.id, IB_EVENT_COMM_EST), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_USER_ESTABLISHED));
	EXPECT_EQ(ib_cm_notify(pair->passive.id, IB_EVENT_COMM_EST), -EISCONN);
	EXPECT_EQ(ib_cm_notify(pair->passive.id, IB_EVENT_SQ_DRAINED), -EINVAL);
	ASSERT_EQ(ib_send_cm_rtu(pair->active.id, nullptr, 0), 0);
	EXPECT_TRUE(
		eventually([&] { return pair->b.counters().duplicates[IB_CM_COUNTER_RTU] == 1; }));
	EXPECT_EQ(pair->passive.delivered(IB_CM_RTU_RECEIVED), 0u);
	EXPECT_EQ(pair->passive.state(), IB_CM_ESTABLISHED);
}

/* Two nodes that connect to each other at the same time get two connections. */
void cm_03_reqs_that_two_nodes_send_simultaneously_make_two_connections(Test &test)
{
	Boxed<Pair> pair;
	Boxed<End> active, listener, passive;
	ASSERT_TRUE(pair.ok());
	listener->fresh = &*passive;
	ASSERT_TRUE(active->open(pair->b) && listener->open(pair->a));
	ASSERT_EQ(ib_cm_listen(listener->id, service, 0), 0);
	ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
	ASSERT_EQ(active->request(pair->b, pair->a, some_qpn + 1), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED) &&
		    passive->receives(IB_CM_REQ_RECEIVED));
	ASSERT_EQ(pair->passive.reply(), 0);
	ASSERT_EQ(passive->reply(), 0);
	ASSERT_TRUE(pair->active.receives(IB_CM_REP_RECEIVED) &&
		    active->receives(IB_CM_REP_RECEIVED));
	EXPECT_NE(pair->active.id->local_id.value(), passive->id->local_id.value());
}

/* Both sides of the connection are on one device (loopback). Each side receives its own events. */
void cm_03_two_ids_on_the_same_port_can_connect_to_each_other(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	Boxed<End> active;
	ASSERT_TRUE(active->open(pair->b));
	ASSERT_EQ(active->request(pair->b, pair->b), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
	ASSERT_EQ(pair->passive.reply(), 0);
	ASSERT_TRUE(active->receives(IB_CM_REP_RECEIVED));
	ASSERT_EQ(ib_send_cm_rtu(active->id, nullptr, 0), 0);
	ASSERT_TRUE(pair->passive.receives(IB_CM_RTU_RECEIVED));
	ASSERT_EQ(ib_send_cm_dreq(pair->passive.id, nullptr, 0), 0);
	ASSERT_TRUE(active->receives(IB_CM_DREQ_RECEIVED));
	ASSERT_EQ(ib_send_cm_drep(active->id, nullptr, 0), 0);
	EXPECT_TRUE(pair->passive.receives(IB_CM_DREP_RECEIVED));
}

/* An ID can be used for another connection, with a number that the peer has not seen. */
void cm_03_id_whose_req_was_rejected_sends_its_next_req_with_a_new_communication_id(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	u32 last = 0;
	for (int round = 0; round < 3; round++) {
		ASSERT_EQ(pair->active.request(pair->a, pair->b), 0);
		EXPECT_NE(pair->active.id->local_id.value(), last);
		last = pair->active.id->local_id.value();
		ASSERT_TRUE(pair->passive.receives(IB_CM_REQ_RECEIVED));
		ASSERT_EQ(ib_send_cm_rej(pair->passive.id, IB_CM_REJ_NO_QP, nullptr, 0, nullptr, 0),
			  0);
		ASSERT_TRUE(pair->active.receives(IB_CM_REJ_RECEIVED,
						  static_cast<unsigned>(round) + 1));
		EXPECT_EQ(pair->active.state(), IB_CM_IDLE);
		pair->passive.close();
		pair->listener.fresh = &pair->passive;
	}
}

/* Invalid arguments are refused, and nothing is sent. */
void cm_03_req_with_invalid_arguments_is_not_sent(Test &test)
{
	Boxed<Pair> pair;
	ASSERT_TRUE(pair.ok());
	const sa_path_rec path = pair->a.path_to(pair->b);
	struct {
		void (*wrong)(ib_cm_req_param &param);
	} const wrongs[] = {
		{[](ib_cm_req_param &param) { param.primary_path = nullptr; }},
		{[](ib_cm_req_param &param) { param.qp_num = 0; }},
		{[](ib_cm_req_param &param) { param.qp_num = 0x1000000; }},
		{[](ib_cm_req_param &param) { param.qp_type = IB_QPT_UD; }},
		{[](ib_cm_req_param &param) { param.starting_psn = 0x1000000; }},
		{[](ib_cm_req_param &param) {
			param.private_data_len = IB_CM_REQ_PRIVATE_DATA_SIZE + 1;
		}},
		{[](ib_cm_req_param &param) { param.private_data = nullptr; }},
		{[](ib_cm_req_param &param) { param.peer_to_peer = 1; }},
		{[](ib_cm_req_param &param) { param.remote_cm_response_timeout = 32; }},
		{[](ib_cm_req_param &param) { param.local_cm_response_timeout = 32; }},
		{[](ib_cm_req_param &param) { param.retry_count = 8; }},
		{[](ib_cm_req_param &param) { param.rnr_retry_count = 8; }},
		{[](ib_cm_req_param &param) { param.max_cm_retries = 16; }},
	};
	for (const auto &one : wrongs) {
		auto param = End::request_of(path);
		one.wrong(param);
		EXPECT_EQ(ib_send_cm_req(pair->active.id, &param), -EINVAL);
	}
	sa_path_rec strange = path;
	auto param = End::request_of(strange);
	strange.sgid.raw[15] ^= 0x40;
	EXPECT_EQ(ib_send_cm_req(pair->active.id, &param), -ENOENT);
	strange = path;
	strange.pkey = u16{0x1234};
	EXPECT_EQ(ib_send_cm_req(pair->active.id, &param), -ENOENT);
	EXPECT_EQ(rdma::ptr_err(ib_create_cm_id(pair->a.device(), nullptr, nullptr)), -EINVAL);
	EXPECT_EQ(pair->a.counters().sent[IB_CM_COUNTER_REQ], 0u);
	EXPECT_EQ(pair->active.state(), IB_CM_IDLE);
}

} // namespace

SOFT_SUITES(
	cm_connect, KUNIT_CASE(cm_03_both_ends_connect_disconnect_and_leave_timewait),
	KUNIT_CASE(cm_03_fields_of_req_and_rep_are_reported_in_the_peers_event),
	KUNIT_CASE(cm_03_req_event_has_the_gid_index_of_the_path),
	KUNIT_CASE(cm_03_ib_cm_init_qp_attr_returns_the_attributes_of_each_qp_transition),
	KUNIT_CASE(cm_03_alternate_path_of_a_refused_ib_send_cm_req_is_not_in_later_qp_attributes),
	KUNIT_CASE(cm_03_alternate_path_is_loaded_only_if_the_peer_accepts_it),
	KUNIT_CASE(cm_03_data_before_rtu_establishes_the_connection),
	KUNIT_CASE(cm_03_reqs_that_two_nodes_send_simultaneously_make_two_connections),
	KUNIT_CASE(cm_03_two_ids_on_the_same_port_can_connect_to_each_other),
	KUNIT_CASE(cm_03_id_whose_req_was_rejected_sends_its_next_req_with_a_new_communication_id),
	KUNIT_CASE(cm_03_req_with_invalid_arguments_is_not_sent));
