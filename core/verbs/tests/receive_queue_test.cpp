// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-12: receive queues refill themselves.
#include <rdma/receive_queue.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};
constexpr int depth = 8;

struct Buffer : ib_cqe {
	kern::ListNode node;
	u64 dma_addr;
	u32 number;
	static constexpr u32 dma_bytes = sizeof(number);

	void *dma_memory() { return &number; }
	static kern::Result<kern::Owned<Buffer>> create()
	{
		return kern::make<Buffer>(kern::Gfp::atomic | kern::Gfp::no_warn);
	}
};

/* A consumer that adds up the received numbers, and may keep their buffers. */
struct Consumer {
	using Queue = rdma::ReceiveQueue<Buffer>;

	explicit Consumer(ib_pd *pd) : queue(pd, depth, done, kern::method<&Consumer::wake>, this)
	{
	}

	bool keeps = false;
	u32 sum = 0;
	unsigned int seen = 0;
	unsigned int lost = 0;
	kern::Atomic<unsigned int> woken{0};
	Queue queue;

	void wake() { woken.add_relaxed(1); }
	void receive(ib_wc *wc)
	{
		auto buffer = queue.take_back(static_cast<Buffer *>(wc->wr_cqe));
		if (wc->status != IB_WC_SUCCESS)
			return;
		const u32 number = buffer->number;
		if (keeps)
			buffer = queue.replace(std::move(buffer));
		else
			queue.post_again(std::move(buffer));
		if (keeps && !buffer) {
			lost++;
			return;
		}
		sum += number;
		seen++;
	}
	static void done(ib_cq *cq, ib_wc *wc)
	{
		static_cast<Consumer *>(cq->cq_context)->receive(wc);
	}
};

/*
 * Two connected QPs. A receive queue keeps the second one supplied, and its CQ is polled in this
 * task.
 */
struct Stage {
	explicit Stage(ib_device *device)
	{
		auto made_pd = rdma::Pd::create(device);
		auto made_send = rdma::CompletionQueue::create(device, nullptr, nullptr, 64);
		if (!made_pd.ok() || !made_send.ok())
			return;
		pd = made_pd.take();
		send_cq = made_send.take();
		auto made_consumer = kern::make<Consumer>(kern::Gfp::kernel, pd->get());
		if (!made_consumer.ok())
			return;
		consumer = made_consumer.take();
		auto made_cq = rdma::CompletionQueue::create(device, consumer.get(), 64, 0,
							     IB_POLL_DIRECT);
		if (!made_cq.ok())
			return;
		cq = made_cq.take();
		auto attr = qp_attr(IB_QPT_RC);
		auto made_a = rdma::QueuePair::create(pd, send_cq, send_cq, attr);
		auto made_b = rdma::QueuePair::create(pd, cq, cq, attr);
		if (!made_a.ok() || !made_b.ok())
			return;
		a = made_a.take();
		b = made_b.take();
		consumer->queue.open(b.get());
		ok = connect(a.get(), b.number(), 1) == 0 && connect(b.get(), a.number(), 1) == 0 &&
		     consumer->queue.fill().ok();
	}
	~Stage()
	{
		if (!consumer)
			return;
		consumer->queue.stop();
		a = {};
		b = {};
		/* Process completions flushed by the QP's destruction. */
		if (cq)
			cq->process_direct(-1);
		consumer->queue.close();
	}
	/* Sends a number. */
	bool post(u32 number)
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
		return next(send_cq, wc) && wc.status == IB_WC_SUCCESS;
	}
	/* Sends a number, and waits until it has been polled. */
	bool send(u32 number)
	{
		return post(number) && eventually([&] { return cq->process_direct(-1) > 0; });
	}

	bool ok = false;
	PdRef pd;
	CqRef send_cq;
	kern::Owned<Consumer> consumer;
	CqRef cq;
	rdma::QueuePair a, b;
};

/*
 * Many times the queue's depth is received, whether the consumer keeps the memory or not, and the
 * queue stays full.
 */
void mgmt_12_receive_queue_is_full_again_after_each_received_message(Test &test)
{
	for (bool keeps : {false, true}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		Stage stage(device);
		ASSERT_TRUE(stage.ok);
		stage.consumer->keeps = keeps;
		u32 sum = 0;
		for (u32 i = 1; i <= depth * 5; i++) {
			ASSERT_TRUE(stage.send(i));
			sum += i;
			EXPECT_TRUE(stage.consumer->queue.full());
		}
		EXPECT_EQ(stage.consumer->seen, depth * 5u);
		EXPECT_EQ(stage.consumer->sum, sum);
		EXPECT_EQ(soft_posted_receives(stage.b.get()), static_cast<unsigned int>(depth));
		EXPECT_EQ(stage.consumer->woken.load_relaxed(), 0u);
	}
}

/*
 * If there is no memory for a replacement, the message is dropped and the queue stays full.
 * Receives that the QP refuses are posted again later.
 */
void mgmt_12_receive_queue_is_refilled_after_failed_posts(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Stage stage(device);
	ASSERT_TRUE(stage.ok);
	Consumer &consumer = *stage.consumer;
	consumer.keeps = true;
	ASSERT_TRUE(stage.post(7));
	kern_fail_allocation(1);
	EXPECT_EQ(stage.cq->process_direct(-1), 1);
	EXPECT_TRUE(kern_allocation_failed());
	kern_fail_allocation(0);
	EXPECT_EQ(consumer.lost, 1u);
	EXPECT_EQ(consumer.seen, 0u);
	EXPECT_TRUE(consumer.queue.full());

	consumer.keeps = false;
	soft_fail(device, SOFT_POST_RECV, 2, -ENOMEM);
	ASSERT_TRUE(stage.send(8));
	EXPECT_EQ(consumer.seen, 1u);
	EXPECT_EQ(consumer.queue.missing(), 1);
	/* This attempt fails too. After that, the queue itself requests the next one. */
	consumer.queue.make_up();
	EXPECT_EQ(consumer.queue.missing(), 1);
	EXPECT_TRUE(eventually([&] { return consumer.woken.load_relaxed() == 1; }));
	consumer.queue.make_up();
	EXPECT_TRUE(consumer.queue.full());
	EXPECT_EQ(soft_posted_receives(stage.b.get()), static_cast<unsigned int>(depth));
	ASSERT_TRUE(stage.send(9));
	EXPECT_EQ(consumer.seen, 2u);
}

} // namespace

SOFT_SUITES(verbs_receive_queue,
	    KUNIT_CASE(mgmt_12_receive_queue_is_full_again_after_each_received_message),
	    KUNIT_CASE(mgmt_12_receive_queue_is_refilled_after_failed_posts));
