// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends small messages as an upper-level protocol does, in chains of 16 with one completion each.
 * The consumer polls the CQ until it is empty, arms it, and waits for the event. The card model
 * counts the operations that this takes.
 */
#include <kern/errno.h>
#include "loop.h"
#include "../../../../core/kern/bench/environment.h"

enum { CHAIN = 16, AHEAD = 3, MESSAGES = 48000 };

static const u64 timeout_ns = 60ull * 1000000000;

static struct loop_wr requests[CHAIN];
static struct ib_wc wcs[CHAIN];

/* Waits for at least one completion. Returns their number, or a negative errno. */
static int wait_completions(struct loop *loop)
{
	const u64 limit = bench_now() + timeout_ns;

	for (;;) {
		const unsigned int seen = loop->events;
		int got = ib_poll_cq(loop->send_cq, CHAIN, wcs);

		for (int i = 0; i < got; i++)
			if (wcs[i].status != IB_WC_SUCCESS)
				return -EIO;
		if (got)
			return got;
		got = ib_req_notify_cq(loop->send_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		if (got < 0)
			return got;
		while (got == 0 && loop->events == seen)
			if (bench_now() > limit)
				return -ETIMEDOUT;
	}
}

int card_stream(struct ib_device *device)
{
	static struct loop loop;
	struct ib_send_wr *first = (void *)0;
	int error = loop_open(&loop, device, IB_QPT_RC, 4096);
	int posted = 0;
	int done = 0;

	for (int i = CHAIN; i-- > 0 && !error;) {
		struct ib_send_wr *request =
			loop_request(&loop, &requests[i], IB_WR_RDMA_WRITE, 32);

		if (first)
			request->send_flags = 0;
		request->next = first;
		first = request;
	}
	while (done < MESSAGES && !error) {
		for (; posted < MESSAGES && posted - done < AHEAD * CHAIN && !error;
		     posted += CHAIN)
			error = ib_post_send(loop.qp, first, (void *)0);
		if (!error) {
			const int got = wait_completions(&loop);

			if (got < 0)
				error = got;
			else
				done += got * CHAIN;
		}
	}
	if (!error)
		bench_print("driver.stream", MESSAGES);
	loop_close(&loop);
	return error;
}
