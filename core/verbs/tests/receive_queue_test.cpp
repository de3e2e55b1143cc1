// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// MGMT-12: receive queues refill themselves.
#include <rdma/receive_queue.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

using Verdict = rdma::ReceiveQueue::Verdict;

constexpr soft_options plain = {.lid = 1};
constexpr unsigned int depth = 8, bytes = 64;

struct Consumer {
	Verdict verdict = Verdict::again;
	unsigned int seen = 0;
	u32 sum = 0;

	static Verdict handle(void *context, ib_wc &, void *memory)
	{
		auto *self = static_cast<Consumer *>(context);
		self->seen++;
		self->sum += *static_cast<const u32 *>(memory);
		if (self->verdict == Verdict::kept)
			kern_free(memory);
		return self->verdict;
	}
};

/* Two connected QPs; what the second receives, a queue keeps up. Its CQ is polled here, in this task. */
struct Stage {
	explicit Stage(ib_device *device)
	{
		auto made_pd = rdma::Pd::create(device);
		auto made_cq = rdma::CompletionQueue::create(device, nullptr, 64, 0, IB_POLL_DIRECT);
		auto made_send = rdma::CompletionQueue::create(device, nullptr, nullptr, 64);
		if (!made_pd.ok() || !made_cq.ok() || !made_send.ok())
			return;
		pd = made_pd.take();
		cq = made_cq.take();
		send_cq = made_send.take();
		auto made_queue = rdma::ReceiveQueue::create(pd->get(), depth, bytes, Consumer::handle, &consumer);
		auto attr = qp_attr(IB_QPT_RC);
		auto made_a = rdma::QueuePair::create(pd, send_cq, send_cq, attr);
		auto made_b = rdma::QueuePair::create(pd, cq, cq, attr);
		if (!made_queue.ok() || !made_a.ok() || !made_b.ok())
			return;
		queue = made_queue.take();
		a = made_a.take();
		b = made_b.take();
		ok = connect(a.get(), b.number(), 1) == 0 && connect(b.get(), a.number(), 1) == 0 &&
		     queue->fill(b.get()) == 0;
	}
	/* Sends a number, and sees it arrive. */
	bool send(u32 number)
	{
		ib_sge sge = sge_of(pd, &number, sizeof(number));
		ib_send_wr wr = {};
		wr.opcode = IB_WR_SEND;
		wr.send_flags = IB_SEND_INLINE;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		if (a.post_send(&wr))
			return false;
		ib_wc wc;
		const unsigned int before = consumer.seen;
		return next(send_cq, wc) && wc.status == IB_WC_SUCCESS &&
		       eventually([&] { return cq->process_direct(-1) > 0 || consumer.seen > before; });
	}

	bool ok = false;
	Consumer consumer;
	PdRef pd;
	CqRef cq, send_cq;
	kern::Owned<rdma::ReceiveQueue> queue;
	rdma::QueuePair a, b;
};

/* Many times the depth is received, whether the consumer keeps the memory or not, and the queue stays full. */
void mgmt_12_refills(Test &test)
{
	for (Verdict verdict : {Verdict::again, Verdict::kept}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		Stage stage(device);
		ASSERT_TRUE(stage.ok);
		stage.consumer.verdict = verdict;
		u32 sum = 0;
		for (u32 i = 1; i <= depth * 5; i++) {
			ASSERT_TRUE(stage.send(i));
			sum += i;
			EXPECT_EQ(stage.queue->shortfall(), 0u);
		}
		EXPECT_EQ(stage.consumer.seen, depth * 5);
		EXPECT_EQ(stage.consumer.sum, sum);
		EXPECT_EQ(stage.queue->shortages(), 0ul);
		stage.queue->stop();
		ib_drain_rq(stage.b.get());
	}
}

/* Without memory the queue is one short, says so, and makes up for it later. */
void mgmt_12_makes_up_for_a_shortage(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Stage stage(device);
	ASSERT_TRUE(stage.ok);
	stage.consumer.verdict = Verdict::kept;
	u32 number = 7;
	ib_sge sge = sge_of(stage.pd, &number, sizeof(number));
	ib_send_wr wr = {};
	wr.opcode = IB_WR_SEND;
	wr.send_flags = IB_SEND_INLINE;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	ASSERT_EQ(stage.a.post_send(&wr), 0);
	ib_wc wc;
	ASSERT_TRUE(next(stage.send_cq, wc));
	kern_fail_allocation(1);
	EXPECT_EQ(stage.cq->process_direct(-1), 1);
	EXPECT_TRUE(kern_allocation_failed());
	kern_fail_allocation(0);
	EXPECT_EQ(stage.queue->shortages(), 1ul);
	EXPECT_TRUE(eventually([&] { return stage.queue->shortfall() == 0; }));
	/* The same where the QP refuses. */
	soft_fail(device, SOFT_POST_RECV, 2, -ENOMEM);
	ASSERT_TRUE(stage.send(8));
	EXPECT_GE(stage.queue->shortages(), 2ul);
	EXPECT_TRUE(eventually([&] { return stage.queue->shortfall() == 0; }));
	stage.queue->stop();
	ib_drain_rq(stage.b.get());
}

} // namespace

SOFT_SUITES(verbs_receive_queue, KUNIT_CASE(mgmt_12_refills), KUNIT_CASE(mgmt_12_makes_up_for_a_shortage));
