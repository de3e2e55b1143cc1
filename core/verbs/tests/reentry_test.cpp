// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule LOCK-04: the midlayer does not serialise calls, not even on the same object.
#include <kern/atomic.hpp>
#include <kern/thread.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

/*
 * Two callers are inside the driver at the same time: the first waits until the second arrives,
 * which never happens if the midlayer holds a lock around the method.
 */
class Meeting
{
public:
	explicit Meeting(ib_device *device) : device_(device) {}

	template<class Body>
	bool takes_place(soft_method method, Body body)
	{
		struct Caller {
			Body &body;
			kern::Completion left;
			int run()
			{
				body();
				left.complete();
				return 0;
			}
		} other{.body = body, .left = {}};

		inside_.store_relaxed(0);
		met_.store_relaxed(false);
		soft_interpose(
			device_, method,
			[](void *context) { static_cast<Meeting *>(context)->enter(); }, this);
		{
			auto thread = kern::Thread::create("weft-lock-04",
							   kern::method<&Caller::run>, &other);
			if (thread.ok()) {
				body();
				other.left.wait();
			}
		}
		soft_interpose(device_, method, nullptr, nullptr);
		return met_.load_relaxed();
	}

private:
	/*
	 * Methods of the data path may not sleep, so this spins, and the second caller needs a CPU
	 * of its own.
	 */
	void enter()
	{
		if (inside_.fetch_add(1) == 1)
			met_.store_release(true);
		const auto deadline = kern::Deadline::in_ms(15'000);
		while (!met_.load_acquire() && !deadline.passed())
			kern::cpu_relax();
		inside_.fetch_add(-1u);
	}

	ib_device *device_;
	kern::Atomic<unsigned int> inside_{0};
	kern::Atomic<bool> met_{false};
};

void lock_04_data_path_calls_on_the_same_object_can_run_concurrently(Test &test)
{
	if (!test.needs_another_cpu())
		return;
	Device device({.lid = 1});
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	auto attr = qp_attr(IB_QPT_RC);
	ib_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	auto srq = rdma::SharedReceiveQueue::create(pair.pd, srq_attr);
	ASSERT_TRUE(pair.ok && srq.ok());
	Meeting meeting(device);
	EXPECT_TRUE(meeting.takes_place(SOFT_POST_SEND, [&] {
		ib_send_wr wr = {};
		wr.opcode = IB_WR_RDMA_WRITE;
		ib_rdma_wr write = {.wr = wr, .remote_addr = 0, .rkey = 0};
		(void)pair.qp_a.post_send(&write.wr);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_POST_RECV, [&] {
		ib_recv_wr wr = {};
		(void)pair.qp_a.post_recv(&wr);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_POST_SRQ_RECV, [&] {
		ib_recv_wr wr = {};
		(void)srq.value()->post(&wr);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_POLL_CQ, [&] {
		ib_wc wc;
		(void)pair.cq_a->poll(1, &wc);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_REQ_NOTIFY_CQ,
					[&] { pair.cq_a->request_notification(IB_CQ_NEXT_COMP); }));
	rdma_ah_attr address = {.port_num = 1};
	rdma_ah_set_dlid(&address, 5);
	ib_ah *ah = rdma_create_ah(pair.pd->get(), &address, 0);
	ASSERT_FALSE(rdma::is_err(ah));
	EXPECT_TRUE(meeting.takes_place(SOFT_MODIFY_AH, [&] {
		rdma_ah_attr to = address;
		(void)rdma_modify_ah(ah, &to);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_QUERY_AH, [&] {
		rdma_ah_attr is;
		(void)rdma_query_ah(ah, &is);
	}));
	rdma_destroy_ah(ah, 0);
}

void lock_04_control_path_calls_can_run_concurrently(Test &test)
{
	if (!test.needs_another_cpu())
		return;
	Device device({.lid = 1});
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	ib_pd *pd = pair.pd->get();
	Meeting meeting(device);
	EXPECT_TRUE(meeting.takes_place(SOFT_QUERY_PORT, [&] {
		ib_port_attr attr;
		(void)ib_query_port(device, 1, &attr);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_MODIFY_QP, [&] {
		ib_qp_attr attr = {};
		attr.qp_state = IB_QPS_ERR;
		(void)ib_modify_qp(pair.qp_a.get(), &attr, IB_QP_STATE);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_QUERY_QP, [&] {
		ib_qp_attr attr;
		ib_qp_init_attr init;
		(void)ib_query_qp(pair.qp_a.get(), &attr, IB_QP_STATE, &init);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_RESIZE_CQ,
					[&] { (void)ib_resize_cq(pair.cq_a->get(), 64); }));
	EXPECT_TRUE(meeting.takes_place(SOFT_CREATE_AH, [&] {
		rdma_ah_attr attr = {.port_num = 1};
		rdma_ah_set_dlid(&attr, 5);
		ib_ah *ah = rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
		if (!rdma::is_err(ah))
			rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_ALLOC_MR, [&] {
		ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
		if (!rdma::is_err(mr))
			(void)ib_dereg_mr(mr);
	}));
	EXPECT_TRUE(meeting.takes_place(SOFT_ALLOC_PD, [&] {
		ib_pd *fresh = ib_alloc_pd(device, 0);
		if (!rdma::is_err(fresh))
			ib_dealloc_pd(fresh);
	}));
	EXPECT_EQ(pd->usecnt, 2);
}

} // namespace

KUNIT_SUITE_BEFORE(verbs_reentry, ::fixture::on_plain_devices,
		   KUNIT_CASE(lock_04_data_path_calls_on_the_same_object_can_run_concurrently),
		   KUNIT_CASE(lock_04_control_path_calls_can_run_concurrently));
