// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Measures the cost of a MAD from post to completion, in the MAD layer and in the CQ's work queue,
 * with a driver that does nothing.
 */
#include <rdma/ib_mad.h>
#include "figures.h"
#include "../../../kern/bench/bench.h"
#include "../../../kern/bench/environment.h"

enum { ROUNDS = 200 };

/* Only the driver interprets the address. */
static struct ib_ah address;
static u64 completed_at;
static int bad_status;

static void on_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	completed_at = bench_ticks();
	bad_status |= wc->status;
	bench_wake();
}

static bool failed(const void *pointer)
{
	return (unsigned long)pointer >= (unsigned long)-4095;
}

static struct ib_mad_send_buf *new_mad(struct ib_mad_agent *agent)
{
	struct ib_mad_send_buf *mad =
		ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
				   bench_gfp_kernel(), IB_MGMT_BASE_VERSION);
	struct ib_mad_hdr *header;

	if (failed(mad))
		return mad;
	mad->ah = &address;
	header = mad->mad;
	header->base_version = IB_MGMT_BASE_VERSION;
	header->mgmt_class = IB_MGMT_CLASS_PERF_MGMT;
	header->class_version = 1;
	header->method = IB_MGMT_METHOD_GET;
	return mad;
}

static u64 work_alone(void)
{
	u64 smallest = ~0ull;

	for (int round = 0; round < ROUNDS; round++) {
		const u64 begin = bench_ticks();
		const u64 ticks = bench_work() - begin;

		if (ticks < smallest)
			smallest = ticks;
	}
	return smallest;
}

int figures_mad(struct ib_device *device, const struct figures_environment *environment)
{
	const u64 nothing = BENCH_SMALLEST((void)0);
	u64 post = ~0ull, whole = ~0ull;
	struct ib_mad_send_buf *mad;
	struct ib_mad_agent *agent = ib_register_mad_agent(device, 1, IB_QPT_GSI, (void *)0, 0,
							   on_sent, (void *)0, (void *)0, 0);
	int error = 0;

	if (failed(agent))
		return (int)(long)agent;
	mad = new_mad(agent);
	if (failed(mad)) {
		ib_unregister_mad_agent(agent);
		return (int)(long)mad;
	}
	for (int round = 0; round < ROUNDS && !error; round++) {
		const u64 begin = bench_ticks();
		u64 posted;

		error = ib_post_send_mad(mad, (void *)0);
		posted = bench_ticks();
		if (error)
			break;
		noop_cqe = noop_sent;
		noop_pending = 1;
		agent->qp->send_cq->comp_handler(agent->qp->send_cq,
						 agent->qp->send_cq->cq_context);
		bench_wait();
		if (posted - begin < post)
			post = posted - begin;
		if (completed_at - begin < whole)
			whole = completed_at - begin;
	}
	environment->print("mad-post", (long)(post - nothing));
	environment->print("mad-send-to-completion", (long)(whole - nothing));
	/*
	 * The part of the kernel itself: queueing work, and switching to the thread that runs it.
	 */
	environment->print("work-alone", (long)(work_alone() - nothing));
	environment->print("mad-create-free", BENCH(ib_free_send_mad(new_mad(agent))));
	ib_free_send_mad(mad);
	ib_unregister_mad_agent(agent);
	return error ? error : bad_status;
}
