// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* What a stream and a single request take by the clock; the consumer polls. */
#include <kern/errno.h>
#include "loop.h"
#include "../../../../core/kern/bench/world.h"

enum { SINGLES = 2000, BATCH = 16, MESSAGES = 20000 };

static const u64 patience_ns = 60ull * 1000000000;

static struct loop_wr requests[BATCH];
static struct ib_wc wcs[BATCH];

/* Polls `count` good completions of the send queue. */
static int reap(struct loop *loop, int count)
{
	const u64 limit = bench_now() + patience_ns;

	while (count > 0) {
		const int got = ib_poll_cq(loop->send_cq, count < BATCH ? count : BATCH, wcs);

		for (int i = 0; i < got; i++)
			if (wcs[i].status != IB_WC_SUCCESS)
				return -EIO;
		if (got < 0 || (got == 0 && bench_now() > limit))
			return -EIO;
		count -= got;
	}
	return 0;
}

/* Bytes a microsecond of RDMA writes, `inflight` at a time. */
static int bandwidth(struct loop *loop, const char *name, unsigned int size, int inflight,
		     int count)
{
	struct ib_send_wr *request = loop_request(loop, &requests[0], IB_WR_RDMA_WRITE, size);
	const u64 begin = bench_now();
	int posted = 0;
	int error = 0;

	for (; posted < inflight && !error; posted++)
		error = ib_post_send(loop->qp, request, (void *)0);
	for (; posted < count && !error; posted++) {
		error = reap(loop, 1);
		if (!error)
			error = ib_post_send(loop->qp, request, (void *)0);
	}
	if (!error)
		error = reap(loop, inflight);
	if (!error)
		bench_print(name, (long)((u64)count * size * 1000 / (bench_now() - begin)));
	return error;
}

/* Nanoseconds from a post to its completion. */
static int latency(struct loop *loop)
{
	struct ib_send_wr *request = loop_request(loop, &requests[0], IB_WR_RDMA_WRITE, 8);
	const u64 begin = bench_now();
	int error = 0;

	for (int i = 0; i < SINGLES && !error; i++) {
		error = ib_post_send(loop->qp, request, (void *)0);
		if (!error)
			error = reap(loop, 1);
	}
	if (!error)
		bench_print("driver.write-latency", (long)((bench_now() - begin) / SINGLES));
	return error;
}

/* Small messages in chains of 16, of which the last asks for a completion, two chains at a time:
 * messages a second. */
static int message_rate(struct loop *loop)
{
	struct ib_send_wr *first = (void *)0;
	int error = 0;
	u64 begin;

	for (int i = BATCH; i-- > 0;) {
		struct ib_send_wr *request = loop_request(loop, &requests[i], IB_WR_RDMA_WRITE, 32);

		if (first)
			request->send_flags = 0;
		request->next = first;
		first = request;
	}
	begin = bench_now();
	error = ib_post_send(loop->qp, first, (void *)0);
	for (int sent = BATCH; sent < MESSAGES && !error; sent += BATCH) {
		error = ib_post_send(loop->qp, first, (void *)0);
		if (!error)
			error = reap(loop, 1);
	}
	if (!error)
		error = reap(loop, 1);
	if (!error)
		bench_print("driver.message-rate",
			    (long)(MESSAGES * 1000000000ull / (bench_now() - begin)));
	return error;
}

int card_times(struct ib_device *device)
{
	static struct loop loop;
	int error = loop_open(&loop, device, IB_QPT_RC, 1 << 20);

	if (!error)
		error = latency(&loop);
	if (!error)
		error = message_rate(&loop);
	if (!error)
		error = bandwidth(&loop, "driver.write-bandwidth-64k", 64 << 10, 16, 4000);
	if (!error)
		error = bandwidth(&loop, "driver.write-bandwidth-1m", 1 << 20, 8, 400);
	loop_close(&loop);
	return error;
}
