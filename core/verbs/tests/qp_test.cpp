// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the state machine of queue pairs, and the validation of arguments.
#include <rdma/driver.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

constexpr ib_qp_type types[] = {IB_QPT_SMI, IB_QPT_GSI,     IB_QPT_RC,     IB_QPT_UC,
				IB_QPT_UD,  IB_QPT_XRC_INI, IB_QPT_XRC_TGT};
constexpr int state_count = IB_QPS_ERR + 1;

/*
 * RESET and ERR can be reached from every state without attributes. No other transition skips a
 * state.
 */
void qp_transitions_match_the_specification(Test &test)
{
	/*
	 * Rows: from; columns: to. x: never; o: all types; s: all types except RC and XRC, which
	 * have no SQE.
	 */
	constexpr const char *table[state_count] = {
		"ooxxxxo" /* RESET */, "oooxxxo" /* INIT */, "oxxoxxo" /* RTR */,
		"oxxooxo" /* RTS */,   "oxxooxo" /* SQD */,  "oxxsxxo" /* SQE */,
		"oxxxxxo" /* ERR */,
	};
	/* Every possible transition requires one of these sets of attributes. */
	constexpr int peer = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	constexpr int masks[] = {
		0,
		IB_QP_PKEY_INDEX | IB_QP_QKEY,
		IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY,
		IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
		peer,
		peer | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
		IB_QP_SQ_PSN,
		IB_QP_SQ_PSN | IB_QP_TIMEOUT,
		IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC,
	};
	for (ib_qp_type type : types) {
		const bool reliable =
			type == IB_QPT_RC || type == IB_QPT_XRC_INI || type == IB_QPT_XRC_TGT;
		for (int from = 0; from < state_count; from++) {
			for (int to = 0; to < state_count; to++) {
				const char entry = table[from][to];
				const bool expected = entry == 'o' || (entry == 's' && !reliable);
				/*
				 * Some set of attributes makes the transition possible, or none
				 * does.
				 */
				bool possible = false;
				for (int mask : masks)
					possible |= ib_modify_qp_is_ok(
						static_cast<ib_qp_state>(from),
						static_cast<ib_qp_state>(to), type,
						static_cast<ib_qp_attr_mask>(IB_QP_STATE | mask));
				EXPECT_EQ(possible, expected);
				if (possible != expected)
					kern_kunit_note(test.native(), "type %d, %d to %d", type,
							from, to);
			}
		}
	}
}

/*
 * Required attributes must be present, and attributes that are neither required nor optional are
 * refused.
 */
void qp_transitions_reject_missing_and_unexpected_attributes(Test &test)
{
	struct Row {
		ib_qp_type type;
		ib_qp_state from, to;
		int required, optional;
	};
	constexpr Row rows[] = {
		{IB_QPT_UD, IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY,
		 0},
		{IB_QPT_GSI, IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_QKEY, 0},
		{IB_QPT_RC, IB_QPS_INIT, IB_QPS_RTR,
		 IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
		 IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
		{IB_QPT_UC, IB_QPS_INIT, IB_QPS_RTR,
		 IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN,
		 IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
		{IB_QPT_RC, IB_QPS_RTR, IB_QPS_RTS,
		 IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			 IB_QP_MAX_QP_RD_ATOMIC,
		 IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
			 IB_QP_PATH_MIG_STATE},
		{IB_QPT_XRC_TGT, IB_QPS_RTR, IB_QPS_RTS, IB_QP_TIMEOUT | IB_QP_SQ_PSN,
		 IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
			 IB_QP_PATH_MIG_STATE},
		{IB_QPT_UD, IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
		{IB_QPT_RC, IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
		{IB_QPT_UD, IB_QPS_SQE, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
		{IB_QPT_UD, IB_QPS_RTS, IB_QPS_ERR, 0, IB_QP_CUR_STATE},
	};
	for (const Row &row : rows) {
		const auto ok = [&](int mask) {
			return ib_modify_qp_is_ok(row.from, row.to, row.type,
						  static_cast<ib_qp_attr_mask>(mask | IB_QP_STATE));
		};
		EXPECT_TRUE(ok(row.required));
		EXPECT_TRUE(ok(row.required | row.optional));
		for (int bit = 1; bit <= IB_QP_DEST_QPN; bit <<= 1) {
			if (bit == IB_QP_STATE)
				continue;
			if (row.required & bit)
				EXPECT_FALSE(ok(row.required & ~bit));
			else
				EXPECT_EQ(ok(row.required | bit), (row.optional & bit) != 0);
		}
	}
}

/* The midlayer rejects an invalid mask without calling the driver. */
void qp_modify_rejects_invalid_attribute_masks(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	const unsigned long calls = soft_calls(device, SOFT_MODIFY_QP);
	ib_qp_attr attr = {};
	attr.qp_state = IB_QPS_INIT;
	EXPECT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE), -EINVAL);
	EXPECT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, 1 << 22), -EINVAL);
	attr.qp_state = IB_QPS_RTS;
	EXPECT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE | IB_QP_QKEY), -EINVAL);
	/* The QP cannot have come to this state. */
	attr.cur_qp_state = IB_QPS_RTR;
	EXPECT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE | IB_QP_CUR_STATE), -EINVAL);
	EXPECT_EQ(soft_calls(device, SOFT_MODIFY_QP), calls);
	attr.cur_qp_state = IB_QPS_RTS;
	EXPECT_EQ(ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE | IB_QP_CUR_STATE), 0);
}

/* Values out of range, one by one, on the way to RTR and RTS. */
void qp_modify_rejects_out_of_range_attribute_values(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_TRUE(pd.ok() && cq.ok());
	auto init = qp_attr(IB_QPT_RC);
	auto qp = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), init);
	ASSERT_OK(qp);
	ib_qp *raw = qp.value().get();
	const auto expect_refused = [&](const ib_qp_attr &good, int mask, auto spoil) {
		ib_qp_attr attr = good;
		spoil(attr);
		EXPECT_EQ(ib_modify_qp(raw, &attr, mask), -EINVAL);
	};

	ib_qp_attr attr = {};
	attr.qp_state = IB_QPS_INIT;
	attr.port_num = 1;
	int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.port_num = 0; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.port_num = 2; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.pkey_index = 8; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.qp_access_flags = 1 << 9; });
	ASSERT_EQ(ib_modify_qp(raw, &attr, mask), 0);

	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = IB_MTU_1024;
	attr.dest_qp_num = 5;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, 1);
	mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
	       IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.path_mtu = static_cast<ib_mtu>(6); });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.dest_qp_num = 1 << 24; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.rq_psn = 1 << 24; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.max_dest_rd_atomic = 17; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.min_rnr_timer = 32; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.ah_attr.port_num = 2; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.ah_attr.sl = 16; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.ah_attr.static_rate = 1; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.ah_attr.ib.dlid = 0; });
	expect_refused(attr, mask,
		       [](ib_qp_attr &a) { rdma_ah_set_grh(&a.ah_attr, nullptr, 0, 8, 1, 0); });
	ASSERT_EQ(ib_modify_qp(raw, &attr, mask), 0);

	attr.qp_state = IB_QPS_RTS;
	mask = IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
	       IB_QP_MAX_QP_RD_ATOMIC;
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.timeout = 32; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.retry_cnt = 8; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.rnr_retry = 8; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.sq_psn = 1 << 24; });
	expect_refused(attr, mask, [](ib_qp_attr &a) { a.max_rd_atomic = 17; });
	ASSERT_EQ(ib_modify_qp(raw, &attr, mask), 0);
	ib_qp_init_attr queried;
	ASSERT_EQ(ib_query_qp(raw, &attr, IB_QP_STATE, &queried), 0);
	EXPECT_EQ(attr.qp_state, IB_QPS_RTS);
	EXPECT_EQ(queried.qp_type, IB_QPT_RC);
}

/*
 * Creation refuses inconsistent attributes: types, sizes, missing objects, objects of another
 * device.
 */
void qp_create_rejects_invalid_attributes(Test &test)
{
	Device device(plain), other({.lid = 2});
	ASSERT_TRUE(device.ok() && other.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	auto other_cq = rdma::CompletionQueue::create(other, nullptr, nullptr, 8);
	ASSERT_TRUE(pd.ok() && cq.ok() && other_cq.ok());
	ib_cq *good = cq.value()->get(), *foreign = other_cq.value()->get();
	const auto expect_refused = [&](ib_qp_type type, auto spoil) {
		ib_qp_init_attr attr = qp_attr(type);
		attr.send_cq = attr.recv_cq = good;
		spoil(attr);
		EXPECT_EQ(rdma::ptr_err(ib_create_qp(pd.value()->get(), &attr)), -EINVAL);
	};
	expect_refused(IB_QPT_RAW_PACKET, [](ib_qp_init_attr &) {});
	expect_refused(static_cast<ib_qp_type>(77), [](ib_qp_init_attr &) {});
	expect_refused(IB_QPT_RC, [](ib_qp_init_attr &a) { a.send_cq = nullptr; });
	expect_refused(IB_QPT_RC, [](ib_qp_init_attr &a) { a.recv_cq = nullptr; });
	expect_refused(IB_QPT_RC, [&](ib_qp_init_attr &a) { a.send_cq = foreign; });
	expect_refused(IB_QPT_UD, [&](ib_qp_init_attr &a) { a.recv_cq = foreign; });
	expect_refused(IB_QPT_RC, [](ib_qp_init_attr &a) { a.cap.max_send_wr = 1 << 20; });
	expect_refused(IB_QPT_RC, [](ib_qp_init_attr &a) { a.cap.max_recv_wr = 1 << 20; });
	expect_refused(IB_QPT_RC, [](ib_qp_init_attr &a) { a.cap.max_send_sge = 99; });
	expect_refused(IB_QPT_RC, [](ib_qp_init_attr &a) { a.cap.max_recv_sge = 99; });
	expect_refused(IB_QPT_RC,
		       [](ib_qp_init_attr &a) { a.sq_sig_type = static_cast<ib_sig_type>(2); });
	expect_refused(IB_QPT_UD, [](ib_qp_init_attr &a) { a.create_flags = 1 << 20; });
	expect_refused(IB_QPT_GSI, [](ib_qp_init_attr &a) { a.port_num = 0; });
	expect_refused(IB_QPT_SMI, [](ib_qp_init_attr &a) { a.port_num = 2; });
	expect_refused(IB_QPT_XRC_TGT, [](ib_qp_init_attr &) {});
	EXPECT_EQ(soft_calls(device, SOFT_CREATE_QP), 0ul);
}

/* Destroying an object in use returns EBUSY; all others can be destroyed. */
void destroying_an_object_in_use_returns_ebusy(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	ib_pd *pd = ib_alloc_pd(device, 0);
	ASSERT_FALSE(rdma::is_err(pd));
	EXPECT_EQ(rdma::ptr_err(ib_alloc_pd(device, 0x80)), -EINVAL);
	ib_cq *cq = ib_alloc_cq(device, nullptr, 8, 0, IB_POLL_DIRECT);
	ASSERT_FALSE(rdma::is_err(cq));
	auto attr = qp_attr(IB_QPT_UD);
	attr.send_cq = attr.recv_cq = cq;
	ib_qp *qp = ib_create_qp(pd, &attr);
	ASSERT_FALSE(rdma::is_err(qp));
	EXPECT_EQ(pd->usecnt, 1);
	EXPECT_EQ(cq->usecnt, 2);

	/* A QP in a group is not destroyed; attachments are counted, and the driver sees one. */
	ib_gid group = {.raw = {0xff, 0x12, 1}};
	EXPECT_EQ(ib_attach_mcast(qp, &group, 0xbfff), -EINVAL);
	ib_gid unicast = {.raw = {0xfe, 0x80}};
	EXPECT_EQ(ib_attach_mcast(qp, &unicast, 0xc001), -EINVAL);
	EXPECT_EQ(ib_attach_mcast(qp, &group, 0xc001), 0);
	EXPECT_EQ(ib_attach_mcast(qp, &group, 0xc001), 0);
	EXPECT_EQ(soft_calls(device, SOFT_ATTACH_MCAST), 1ul);
	EXPECT_EQ(ib_destroy_qp(qp), -EBUSY);
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc002), -EINVAL);
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc001), 0);
	EXPECT_EQ(soft_calls(device, SOFT_DETACH_MCAST), 0ul);
	EXPECT_EQ(ib_destroy_qp(qp), -EBUSY);
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc001), 0);
	EXPECT_EQ(soft_calls(device, SOFT_DETACH_MCAST), 1ul);
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc001), -EINVAL);

	/*
	 * A card identifies a group by its GID. If the consumer attaches the QP by two LIDs, the
	 * driver attaches it once.
	 */
	EXPECT_EQ(ib_attach_mcast(qp, &group, 0xc001), 0);
	EXPECT_EQ(ib_attach_mcast(qp, &group, 0xc002), 0);
	EXPECT_EQ(soft_calls(device, SOFT_ATTACH_MCAST), 2ul);
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc001), 0);
	EXPECT_EQ(soft_calls(device, SOFT_DETACH_MCAST), 1ul);
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc002), 0);
	EXPECT_EQ(soft_calls(device, SOFT_DETACH_MCAST), 2ul);
	EXPECT_EQ(ib_destroy_qp(qp), 0);
	EXPECT_EQ(pd->usecnt, 0);
	EXPECT_EQ(cq->usecnt, 0);
	ib_free_cq(cq);
	ib_dealloc_pd(pd);
}

/* MGMT-02: QP0 and QP1 have these numbers on every port, and a port has one of each. */
void mgmt_02_port_has_one_qp0_and_one_qp1(Test &test)
{
	Device device({.ports = 2, .lid = 1});
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_TRUE(pd.ok() && cq.ok());
	for (ib_qp_type type : {IB_QPT_SMI, IB_QPT_GSI}) {
		auto attr = qp_attr(type);
		auto first = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
		attr.port_num = 2;
		auto second = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
		ASSERT_TRUE(first.ok() && second.ok());
		EXPECT_EQ(first.value().number(), type == IB_QPT_SMI ? 0u : 1u);
		EXPECT_EQ(second.value().number(), first.value().number());
		EXPECT_ERROR(rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr),
			     -EBUSY);
	}
}

/*
 * An XRC target QP is found by number, its events are delivered to every handle, and it is
 * destroyed with the last one.
 */
void xrc_target_qp_is_destroyed_with_its_last_handle(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	static constinit kern::Atomic<unsigned int> recorder{0};
	recorder.store_relaxed(0);
	constexpr auto listen = [](ib_event *, void *) { recorder.add_relaxed(1); };
	ib_xrcd *xrcd = ib_alloc_xrcd(device);
	ASSERT_FALSE(rdma::is_err(xrcd));
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	auto attr = qp_attr(IB_QPT_XRC_TGT);
	attr.xrcd = xrcd;
	attr.event_handler = listen;
	ib_qp *qp = ib_create_qp(pd.value()->get(), &attr);
	ASSERT_FALSE(rdma::is_err(qp));
	EXPECT_EQ(ib_dealloc_xrcd(xrcd), -EBUSY);

	ib_qp_open_attr open = {
		.event_handler = listen, .qp_num = qp->qp_num + 1, .qp_type = IB_QPT_XRC_TGT};
	EXPECT_EQ(rdma::ptr_err(ib_open_qp(xrcd, &open)), -EINVAL);
	open.qp_num = qp->qp_num;
	open.qp_type = IB_QPT_RC;
	EXPECT_EQ(rdma::ptr_err(ib_open_qp(xrcd, &open)), -EINVAL);
	open.qp_type = IB_QPT_XRC_TGT;
	ib_qp *handle = ib_open_qp(xrcd, &open);
	ASSERT_FALSE(rdma::is_err(handle));
	rdma::dispatch(IB_EVENT_COMM_EST, qp);
	EXPECT_EQ(recorder.load_relaxed(), 2u);
	EXPECT_EQ(ib_destroy_qp(qp), -EBUSY);
	EXPECT_EQ(ib_close_qp(qp), -EINVAL);
	EXPECT_EQ(ib_destroy_qp(handle), 0);
	EXPECT_EQ(ib_destroy_qp(qp), 0);
	EXPECT_EQ(ib_dealloc_xrcd(xrcd), 0);
}

/* Affiliated events reach the handler of their object, of every kind. */
void event_01_affiliated_events_report_their_object(Test &test)
{
	struct Recorder {
		ib_event_type type;
		const void *object;
	};
	static Recorder last;
	constexpr auto listen = [](ib_event *event, void *) {
		last = {event->event, event->element.qp};
	};
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	const ib_cq_init_attr cq_attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
	ib_cq *cq = ib_create_cq(device, nullptr, listen, nullptr, &cq_attr);
	ib_srq_init_attr srq_attr = {.event_handler = listen, .attr = {.max_wr = 4, .max_sge = 1}};
	ib_srq *srq = ib_create_srq(pd.value()->get(), &srq_attr);
	auto attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	attr.event_handler = listen;
	ib_qp *qp = ib_create_qp(pd.value()->get(), &attr);
	ASSERT_FALSE(rdma::is_err(cq) || rdma::is_err(srq) || rdma::is_err(qp));
	for (ib_event_type type : {IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR,
				   IB_EVENT_COMM_EST, IB_EVENT_SQ_DRAINED, IB_EVENT_PATH_MIG,
				   IB_EVENT_PATH_MIG_ERR, IB_EVENT_QP_LAST_WQE_REACHED}) {
		rdma::dispatch(type, qp);
		EXPECT_EQ(last.type, type);
		EXPECT_EQ(last.object, static_cast<const void *>(qp));
	}
	for (ib_event_type type : {IB_EVENT_SRQ_ERR, IB_EVENT_SRQ_LIMIT_REACHED}) {
		rdma::dispatch(type, srq);
		EXPECT_EQ(last.type, type);
		EXPECT_EQ(last.object, static_cast<const void *>(srq));
	}
	rdma::dispatch(IB_EVENT_CQ_ERR, cq);
	EXPECT_EQ(last.type, IB_EVENT_CQ_ERR);
	EXPECT_EQ(last.object, static_cast<const void *>(cq));
	EXPECT_EQ(ib_destroy_qp(qp), 0);
	ib_destroy_srq(srq);
	ib_destroy_cq(cq);
}

} // namespace

SOFT_SUITES(verbs_qp, KUNIT_CASE(qp_transitions_match_the_specification),
	    KUNIT_CASE(qp_transitions_reject_missing_and_unexpected_attributes),
	    KUNIT_CASE(qp_modify_rejects_invalid_attribute_masks),
	    KUNIT_CASE(qp_modify_rejects_out_of_range_attribute_values),
	    KUNIT_CASE(qp_create_rejects_invalid_attributes),
	    KUNIT_CASE(destroying_an_object_in_use_returns_ebusy),
	    KUNIT_CASE(mgmt_02_port_has_one_qp0_and_one_qp1),
	    KUNIT_CASE(xrc_target_qp_is_destroyed_with_its_last_handle),
	    KUNIT_CASE(event_01_affiliated_events_report_their_object));
