// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Each entry point that allocates, with its first allocation failing, then its second, and so on until none is left.
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

/*
 * `body` tries the entry point and undoes it if it succeeded; it returns the error. Every error is ENOMEM, the first run
 * that has no allocation left to fail succeeds, and at least one failed on the way.
 */
template <class Body>
void fail_each(Test &test, Body body)
{
	for (unsigned int nth = 1; nth < 100; nth++) {
		kern_fail_allocation(nth);
		const int error = body();
		const bool failed = kern_allocation_failed();
		kern_fail_allocation(0);
		if (!failed) {
			EXPECT_EQ(error, 0);
			EXPECT_GT(nth, 1u);
			return;
		}
		EXPECT_EQ(error, -ENOMEM);
	}
	EXPECT_TRUE(false);
}

template <class T, class End>
int outcome(T *object, End end)
{
	if (rdma::is_err(object))
		return rdma::ptr_err(object);
	end(object);
	return 0;
}

/* A device that registers: the cache, the tables, the registry's state. */
void allocation_device(Test &test)
{
	fail_each(test, [] { return outcome(soft_create(&plain), soft_destroy); });
}

void allocation_objects(Test &test)
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
		return outcome(ib_create_cq(device, nullptr, nullptr, nullptr, &cq_attr), ib_destroy_cq);
	});
	for (ib_poll_context context : {IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_DIRECT})
		fail_each(test, [&] { return outcome(ib_alloc_cq(device, nullptr, 8, 0, context), ib_free_cq); });
	fail_each(test, [&] {
		ib_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
		return outcome(ib_create_srq(pd, &attr), ib_destroy_srq);
	});
	for (ib_qp_type type : {IB_QPT_RC, IB_QPT_UD, IB_QPT_GSI})
		fail_each(test, [&] {
			ib_qp_init_attr attr = qp_attr(type);
			attr.send_cq = attr.recv_cq = cq;
			return outcome(ib_create_qp(pd, &attr), ib_destroy_qp);
		});
	fail_each(test, [&] { return outcome(ib_get_dma_mr(pd, 0), ib_dereg_mr); });
	fail_each(test, [&] { return outcome(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 8), ib_dereg_mr); });
	fail_each(test, [&] { return outcome(ib_alloc_mw(pd, IB_MW_TYPE_2), ib_dealloc_mw); });
	for (u32 flags : {0u, u32{RDMA_CREATE_AH_SLEEPABLE}})
		fail_each(test, [&] {
			rdma_ah_attr attr = {.port_num = 1};
			rdma_ah_set_dlid(&attr, 1);
			return outcome(rdma_create_ah(pd, &attr, flags), [](ib_ah *ah) { rdma_destroy_ah(ah, 0); });
		});
	EXPECT_EQ(pd->usecnt, 0);
	EXPECT_EQ(cq->usecnt, 0);
}

void allocation_on_objects(Test &test)
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

/* The owners: what has been made is unmade where there is no memory to own it. */
void allocation_owners(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	fail_each(test, [&] { return rdma::Pd::create(device).error(); });
	fail_each(test, [&] { return rdma::CompletionQueue::create(device, nullptr, 8, 0, IB_POLL_SOFTIRQ).error(); });
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	fail_each(test, [&] {
		ib_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
		return rdma::SharedReceiveQueue::create(pd.value(), attr).error();
	});
	EXPECT_EQ(pd.value()->get()->usecnt, 0);
}

/* Each method of the driver that creates something fails once: the error comes through, nothing is left in use. */
void failing_driver(Test &test)
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
	expect_fails(SOFT_ALLOC_XRCD, [&] { return outcome(ib_alloc_xrcd(device), ib_dealloc_xrcd); });
	expect_fails(SOFT_CREATE_CQ,
		     [&] { return outcome(ib_alloc_cq(device, nullptr, 8, 0, IB_POLL_SOFTIRQ), ib_free_cq); });
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
	expect_fails(SOFT_ALLOC_MR, [&] { return outcome(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 8), ib_dereg_mr); });
	expect_fails(SOFT_ALLOC_MW, [&] { return outcome(ib_alloc_mw(pd, IB_MW_TYPE_1), ib_dealloc_mw); });
	expect_fails(SOFT_CREATE_AH, [&] {
		rdma_ah_attr attr = {.port_num = 1};
		rdma_ah_set_dlid(&attr, 1);
		return outcome(rdma_create_ah(pd, &attr, 0), [](ib_ah *ah) { rdma_destroy_ah(ah, 0); });
	});
	EXPECT_EQ(pd->usecnt, 0);
	EXPECT_EQ(queue.value()->get()->usecnt, 0);
}

} // namespace

KUNIT_SUITE(verbs_allocation, KUNIT_CASE(allocation_device), KUNIT_CASE(allocation_objects),
	    KUNIT_CASE(allocation_on_objects), KUNIT_CASE(allocation_owners), KUNIT_CASE(failing_driver));
