// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests ib_drain_qp() and ib_destroy_qp() on the device with outstanding requests. ib_drain_qp()
// needs CQs that the midlayer polls, so an Endpoint's CQs cannot be used.
#include "drain.hpp"
#include <kern/atomic.hpp>
#include <kern/time.hpp>

namespace traffic
{

namespace
{

/* The requests of one queue. All must be flushed in order. */
struct Queue {
	struct Entry {
		ib_cqe cqe;
		Queue *queue;
		u32 number;
	};
	kern::OwnedArray<Entry> entries;
	kern::Atomic<u32> flushed{0};
	kern::Atomic<u32> disorder{0};

	kern::Result<> prepare(u32 count)
	{
		entries = KERN_TRY(kern::make_array<Entry>(kern::Gfp::kernel, count));
		for (u32 i = 0; i < count; i++)
			entries[i] = {{done}, this, i};
		return {};
	}
	static void done(ib_cq *, ib_wc *wc)
	{
		// Runs in a worker, slowly, so that a drain that does not wait returns before.
		kern::sleep_us(500, 1000);
		count(wc);
	}
	static void count(ib_wc *wc)
	{
		static_assert(__builtin_offsetof(Entry, cqe) == 0);
		const Entry &entry = *reinterpret_cast<Entry *>(wc->wr_cqe);
		Queue &queue = *entry.queue;
		if (wc->status == IB_WC_SUCCESS || entry.number != queue.flushed.load_acquire())
			queue.disorder.fetch_add(1);
		queue.flushed.fetch_add(1);
	}
};

struct Drained {
	~Drained()
	{
		if (qp)
			(void)ib_destroy_qp(qp);
		if (cq)
			cq->poller ? ib_free_cq(cq) : ib_destroy_cq(cq);
		if (pd)
			ib_dealloc_pd(pd);
	}
	ib_pd *pd = nullptr;
	ib_cq *cq = nullptr;
	ib_qp *qp = nullptr;
	Queue sends, receives;
};

/*
 * Destroys the QP, and polls the completions that it has left in a CQ that the midlayer does not
 * poll. These completions have no QP.
 */
int destroy(Drained &drained, bool polled)
{
	ib_wc wc;
	const int status = ib_destroy_qp(std::exchange(drained.qp, nullptr));
	while (polled && ib_poll_cq(drained.cq, 1, &wc) == 1) {
		Queue::count(&wc);
		if (wc.qp)
			drained.sends.disorder.fetch_add(1);
	}
	return status;
}

} // namespace

kern::Result<> drain(ib_device *device, const Arguments &arguments, Answer &answer)
{
	const u32 count = static_cast<u32>(arguments.number("count", 16));
	const bool xrc = arguments.is("type", "xrc");
	const bool polled = arguments.is("how", "poll");
	auto drained = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Drained));
	KERN_TRY(drained->sends.prepare(count));
	KERN_TRY(drained->receives.prepare(count));
	drained->pd = KERN_TRY(checked(ib_alloc_pd(device, 0)));
	const ib_cq_init_attr cq_attr{.cqe = 2 * count + 2, .comp_vector = 0, .flags = 0};
	drained->cq = KERN_TRY(
		checked(polled ? ib_create_cq(device, nullptr, nullptr, nullptr, &cq_attr)
			       : ib_alloc_cq(device, nullptr, static_cast<int>(cq_attr.cqe), 0,
					     IB_POLL_WORKQUEUE)));
	ib_qp_init_attr init{};
	init.send_cq = drained->cq;
	init.recv_cq = xrc ? nullptr : drained->cq;
	// The queues need one more entry, for the marker of the drain.
	init.cap = {.max_send_wr = count + 1,
		    .max_recv_wr = xrc ? 0 : count + 1,
		    .max_send_sge = 1,
		    .max_recv_sge = xrc ? 0u : 1u,
		    .max_inline_data = 0};
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = xrc ? IB_QPT_XRC_INI : IB_QPT_RC;
	drained->qp = KERN_TRY(checked(ib_create_qp(drained->pd, &init)));
	KERN_TRY(connect_qp(drained->qp, 1,
			    static_cast<u32>(arguments.number(xrc ? "target" : "qpn")), arguments));
	for (u32 i = 0; i < count; i++) {
		ib_xrc_wr send{};
		send.wr.wr_cqe = &drained->sends.entries[i].cqe;
		send.wr.opcode = IB_WR_SEND;
		// Unsignaled requests are reported as well if they are flushed.
		send.wr.send_flags = i % 2 ? 0 : IB_SEND_SIGNALED;
		send.remote_srqn = static_cast<u32>(arguments.number("srqn"));
		const ib_send_wr *bad_send;
		KERN_TRY_ERRNO(ib_post_send(drained->qp, &send.wr, &bad_send));
		if (xrc)
			continue;
		ib_recv_wr receive{};
		receive.wr_cqe = &drained->receives.entries[i].cqe;
		const ib_recv_wr *bad_receive;
		KERN_TRY_ERRNO(ib_post_recv(drained->qp, &receive, &bad_receive));
	}
	if (polled || arguments.is("how", "destroy"))
		KERN_TRY_ERRNO(destroy(*drained, polled));
	else if (xrc)
		ib_drain_sq(drained->qp);
	else
		ib_drain_qp(drained->qp);
	answer.add("sends=%u receives=%u disorder=%u", drained->sends.flushed.load_acquire(),
		   drained->receives.flushed.load_acquire(),
		   drained->sends.disorder.load_acquire() +
			   drained->receives.disorder.load_acquire());
	return {};
}

} // namespace traffic
