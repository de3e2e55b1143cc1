// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests every verbs function that allocates memory, with its first allocation failing, then its
// second, and so on until none fails.
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

/* Registration allocates the cache, the tables, and the state in the registry. */
void device_registration_returns_enomem_if_any_allocation_fails(Test &test)
{
	fail_each(test, [] { return outcome(soft_create(&plain), soft_destroy); });
}

void object_creation_returns_enomem_if_any_allocation_fails(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto owner = rdma::Pd::create(device);
	auto queue = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_TRUE(owner.ok() && queue.ok());
	ib_pd *pd = owner.value()->get();
	ib_cq *cq = queue.value()->get();
	const ib_cq_init_attr cq_attr = {.cqe = 8, .comp_vector = 0, .flags = 0};

	fail_each(test, [&] { return outcome(ib_alloc_pd(device, 0), ib_dealloc_pd); });
	fail_each(test, [&] { return outcome(ib_alloc_xrcd(device), ib_dealloc_xrcd); });
	fail_each(test, [&] {
		return outcome(ib_create_cq(device, nullptr, nullptr, nullptr, &cq_attr),
			       ib_destroy_cq);
	});
	for (ib_poll_context context : {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_DIRECT})
		fail_each(test, [&] {
			return outcome(ib_alloc_cq(device, nullptr, 8, 0, context), ib_free_cq);
		});
	fail_each(test, [&] {
		ib_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
		return outcome(ib_create_srq(pd, &attr), ib_destroy_srq);
	});
	for (ib_qp_type type :
	     {IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_SMI, IB_QPT_GSI, IB_QPT_XRC_INI})
		fail_each(test, [&] {
			ib_qp_init_attr attr = qp_attr(type);
			attr.send_cq = cq;
			attr.recv_cq = type == IB_QPT_XRC_INI ? nullptr : cq;
			return outcome(ib_create_qp(pd, &attr), ib_destroy_qp);
		});
	fail_each(test, [&] { return outcome(ib_get_dma_mr(pd, 0), ib_dereg_mr); });
	fail_each(test,
		  [&] { return outcome(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 8), ib_dereg_mr); });
	for (ib_mw_type type : {IB_MW_TYPE_1, IB_MW_TYPE_2})
		fail_each(test, [&] { return outcome(ib_alloc_mw(pd, type), ib_dealloc_mw); });
	for (u32 flags : {0u, u32{RDMA_CREATE_AH_SLEEPABLE}})
		fail_each(test, [&] {
			rdma_ah_attr attr = {.port_num = 1};
			rdma_ah_set_dlid(&attr, 1);
			return outcome(rdma_create_ah(pd, &attr, flags),
				       [](ib_ah *ah) { rdma_destroy_ah(ah, 0); });
		});
	fail_each(test, [&] {
		ib_wc wc = {};
		wc.slid = 1;
		return outcome(ib_create_ah_from_wc(pd, &wc, nullptr, 1),
			       [](ib_ah *ah) { rdma_destroy_ah(ah, 0); });
	});
	EXPECT_EQ(pd->usecnt, 0);
	EXPECT_EQ(cq->usecnt, 0);
}

/* Objects that belong to an XRC domain. */
void xrc_functions_return_enomem_if_any_allocation_fails(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto owner = rdma::Pd::create(device);
	auto queue = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ib_xrcd *xrcd = ib_alloc_xrcd(device);
	ASSERT_TRUE(owner.ok() && queue.ok() && !rdma::is_err(xrcd));
	ib_pd *pd = owner.value()->get();
	fail_each(test, [&] {
		ib_srq_init_attr attr = {
			.attr = {.max_wr = 8, .max_sge = 1},
			.srq_type = IB_SRQT_XRC,
			.ext = {.cq = queue.value()->get(), .xrc = {.xrcd = xrcd}}};
		return outcome(ib_create_srq(pd, &attr), ib_destroy_srq);
	});
	fail_each(test, [&] {
		ib_qp_init_attr attr = qp_attr(IB_QPT_XRC_TGT);
		attr.xrcd = xrcd;
		return outcome(ib_create_qp(pd, &attr), ib_destroy_qp);
	});
	EXPECT_EQ(pd->usecnt, 0);
	EXPECT_EQ(queue.value()->get()->usecnt, 0);
	EXPECT_EQ(ib_dealloc_xrcd(xrcd), 0);
}

void verbs_operations_return_enomem_if_any_allocation_fails(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device, IB_QPT_RC);
	auto attr = qp_attr(IB_QPT_UD);
	auto ud = rdma::QueuePair::create(pair.pd, pair.cq_a, pair.cq_a, attr);
	ASSERT_OK(ud);
	ib_qp *qp = ud.value().get();
	const ib_gid group = {.raw = {0xff, 0x12}};
	fail_each(test, [&] {
		if (int error = ib_attach_mcast(qp, &group, 0xc001))
			return error;
		return ib_detach_mcast(qp, &group, 0xc001);
	});
	EXPECT_EQ(qp->usecnt, 0);
	fail_each(test, [&] { return ib_resize_cq(pair.cq_b->get(), 128); });
	ib_xrcd *xrcd = ib_alloc_xrcd(device);
	ASSERT_FALSE(rdma::is_err(xrcd));
	attr = qp_attr(IB_QPT_XRC_TGT);
	attr.xrcd = xrcd;
	ib_qp *target = ib_create_qp(pair.pd->get(), &attr);
	ASSERT_FALSE(rdma::is_err(target));
	ib_qp_open_attr open = {.qp_num = target->qp_num, .qp_type = IB_QPT_XRC_TGT};
	fail_each(test, [&] { return outcome(ib_open_qp(xrcd, &open), ib_close_qp); });
	EXPECT_EQ(ib_destroy_qp(target), 0);
	EXPECT_EQ(ib_dealloc_xrcd(xrcd), 0);
}

/* The owning classes: an object is destroyed if there is no memory for its owner. */
void raii_classes_return_enomem_if_any_allocation_fails(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	fail_each(test, [&] { return rdma::Pd::create(device).error(); });
	fail_each(test, [&] {
		return rdma::CompletionQueue::create(device, nullptr, 8, 0, IB_POLL_SOFTIRQ)
			.error();
	});
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	fail_each(test, [&] {
		ib_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
		return rdma::SharedReceiveQueue::create(pd.value(), attr).error();
	});
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_OK(cq);
	fail_each(test, [&] {
		auto attr = qp_attr(IB_QPT_UD);
		return rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr).error();
	});
	EXPECT_EQ(pd.value()->get()->usecnt, 0);
}

/*
 * Each creating method of the driver fails once: the error is returned, and nothing remains in use.
 */
void driver_create_errors_are_returned_and_leave_no_object(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto owner = rdma::Pd::create(device);
	auto queue = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_TRUE(owner.ok() && queue.ok());
	ib_pd *pd = owner.value()->get();
	const auto expect_fails = [&](soft_method method, auto body) {
		soft_fail(device, method, 1, -ENXIO);
		EXPECT_EQ(body(), -ENXIO);
		EXPECT_EQ(body(), 0);
	};
	expect_fails(SOFT_ALLOC_PD, [&] { return outcome(ib_alloc_pd(device, 0), ib_dealloc_pd); });
	expect_fails(SOFT_ALLOC_XRCD,
		     [&] { return outcome(ib_alloc_xrcd(device), ib_dealloc_xrcd); });
	expect_fails(SOFT_CREATE_CQ, [&] {
		return outcome(ib_alloc_cq(device, nullptr, 8, 0, IB_POLL_SOFTIRQ), ib_free_cq);
	});
	expect_fails(SOFT_CREATE_SRQ, [&] {
		ib_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
		return outcome(ib_create_srq(pd, &attr), ib_destroy_srq);
	});
	expect_fails(SOFT_CREATE_QP, [&] {
		ib_qp_init_attr attr = qp_attr(IB_QPT_UD);
		attr.send_cq = attr.recv_cq = queue.value()->get();
		return outcome(ib_create_qp(pd, &attr), ib_destroy_qp);
	});
	expect_fails(SOFT_GET_DMA_MR, [&] { return outcome(ib_get_dma_mr(pd, 0), ib_dereg_mr); });
	expect_fails(SOFT_ALLOC_MR,
		     [&] { return outcome(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 8), ib_dereg_mr); });
	expect_fails(SOFT_ALLOC_MW,
		     [&] { return outcome(ib_alloc_mw(pd, IB_MW_TYPE_1), ib_dealloc_mw); });
	expect_fails(SOFT_CREATE_AH, [&] {
		rdma_ah_attr attr = {.port_num = 1};
		rdma_ah_set_dlid(&attr, 1);
		return outcome(rdma_create_ah(pd, &attr, 0),
			       [](ib_ah *ah) { rdma_destroy_ah(ah, 0); });
	});
	EXPECT_EQ(pd->usecnt, 0);
	EXPECT_EQ(queue.value()->get()->usecnt, 0);
}

/*
 * The error of each method that queries or modifies is returned. An object that could not be
 * destroyed still exists.
 */
void driver_query_and_modify_errors_are_returned(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	ib_pd *pd = pair.pd->get();
	ib_cq *cq = pair.cq_a->get();
	auto ud_attr = qp_attr(IB_QPT_UD);
	ud_attr.send_cq = ud_attr.recv_cq = cq;
	rdma_ah_attr address = {.port_num = 1};
	rdma_ah_set_dlid(&address, 1);
	ib_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	ib_qp *qp = ib_create_qp(pd, &ud_attr);
	ib_ah *ah = rdma_create_ah(pd, &address, 0);
	ib_srq *srq = ib_create_srq(pd, &srq_attr);
	ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
	ib_mw *mw = ib_alloc_mw(pd, IB_MW_TYPE_2);
	ib_xrcd *xrcd = ib_alloc_xrcd(device);
	ASSERT_FALSE(rdma::is_err(qp) || rdma::is_err(ah) || rdma::is_err(srq) ||
		     rdma::is_err(mr) || rdma::is_err(mw) || rdma::is_err(xrcd));

	const auto expect_fails = [&](soft_method method, auto body) {
		soft_fail(device, method, 1, -ENXIO);
		EXPECT_EQ(body(), -ENXIO);
		EXPECT_GE(body(), 0);
	};
	const ib_gid group = {.raw = {0xff, 0x12}};
	ib_port_attr port;
	ib_qp_attr attr = {};
	ib_qp_init_attr init;
	ib_srq_attr limit = {.srq_limit = 1};
	ib_send_wr send = {};
	ib_recv_wr recv = {};
	ib_wc wc;
	ib_dma_segment segment = {.addr = 0x1000, .length = 4096};
	u16 pkey;
	attr.qp_state = IB_QPS_RESET;
	send.opcode = IB_WR_SEND;
	expect_fails(SOFT_QUERY_PORT, [&] { return ib_query_port(device, 1, &port); });
	expect_fails(SOFT_QUERY_PKEY, [&] { return ib_query_pkey(device, 1, 0, &pkey); });
	expect_fails(SOFT_MODIFY_QP, [&] { return ib_modify_qp(qp, &attr, IB_QP_STATE); });
	expect_fails(SOFT_QUERY_QP, [&] { return ib_query_qp(qp, &attr, IB_QP_STATE, &init); });
	expect_fails(SOFT_ATTACH_MCAST, [&] { return ib_attach_mcast(qp, &group, 0xc001); });
	/*
	 * The QP was attached twice, of which the first attempt failed, so it can be detached once.
	 */
	expect_fails(SOFT_DETACH_MCAST, [&] { return ib_detach_mcast(qp, &group, 0xc001); });
	EXPECT_EQ(ib_detach_mcast(qp, &group, 0xc001), -EINVAL);
	expect_fails(SOFT_RESIZE_CQ, [&] { return ib_resize_cq(cq, 128); });
	expect_fails(SOFT_MODIFY_CQ, [&] { return rdma_set_cq_moderation(cq, 1, 1); });
	expect_fails(SOFT_PEEK_CQ, [&] { return ib_peek_cq(cq, 1); });
	expect_fails(SOFT_POLL_CQ, [&] { return ib_poll_cq(cq, 1, &wc); });
	expect_fails(SOFT_REQ_NOTIFY_CQ, [&] { return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP); });
	expect_fails(SOFT_MODIFY_SRQ, [&] { return ib_modify_srq(srq, &limit, IB_SRQ_LIMIT); });
	expect_fails(SOFT_QUERY_SRQ, [&] { return ib_query_srq(srq, &limit); });
	expect_fails(SOFT_POST_SRQ_RECV, [&] { return ib_post_srq_recv(srq, &recv, nullptr); });
	expect_fails(SOFT_POST_RECV, [&] { return pair.qp_a.post_recv(&recv); });
	expect_fails(SOFT_POST_SEND, [&] { return pair.qp_a.post_send(&send); });
	expect_fails(SOFT_MODIFY_AH, [&] { return rdma_modify_ah(ah, &address); });
	expect_fails(SOFT_QUERY_AH, [&] { return rdma_query_ah(ah, &address); });
	expect_fails(SOFT_MAP_MR_SG, [&] { return ib_map_mr_sg(mr, &segment, 1, nullptr, 4096); });
	const int uses = pd->usecnt;
	expect_fails(SOFT_DEREG_MR, [&] { return ib_dereg_mr(mr); });
	expect_fails(SOFT_DEALLOC_MW, [&] { return ib_dealloc_mw(mw); });
	expect_fails(SOFT_DESTROY_QP, [&] { return ib_destroy_qp(qp); });
	expect_fails(SOFT_DEALLOC_XRCD, [&] { return ib_dealloc_xrcd(xrcd); });
	EXPECT_EQ(pd->usecnt, uses - 3);
	ib_destroy_srq(srq);
	rdma_destroy_ah(ah, 0);
}

} // namespace

SOFT_SUITES(verbs_allocation,
	    KUNIT_CASE(device_registration_returns_enomem_if_any_allocation_fails),
	    KUNIT_CASE(object_creation_returns_enomem_if_any_allocation_fails),
	    KUNIT_CASE(xrc_functions_return_enomem_if_any_allocation_fails),
	    KUNIT_CASE(verbs_operations_return_enomem_if_any_allocation_fails),
	    KUNIT_CASE(raii_classes_return_enomem_if_any_allocation_fails),
	    KUNIT_CASE(driver_create_errors_are_returned_and_leave_no_object),
	    KUNIT_CASE(driver_query_and_modify_errors_are_returned));
