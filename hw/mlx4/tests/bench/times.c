// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Measures request times with the clock, with a polling consumer. Each figure is the first decile
 * of its samples, because slower samples include other load on the host.
 */
#include <kern/errno.h>
#include "loop.h"
#include "../../../../core/kern/bench/environment.h"

enum { SAMPLES = 2000, BATCH = 16 };

static const u64 timeout_ns = 60ull * 1000000000;

static struct loop_wr requests[BATCH];
static struct ib_wc wcs[BATCH];
static u64 samples[SAMPLES];

static u64 lowest_tenth(int count)
{
	for (int gap = count / 2; gap > 0; gap /= 2)
		for (int i = gap; i < count; i++)
			for (int j = i - gap; j >= 0 && samples[j] > samples[j + gap]; j -= gap) {
				const u64 greater = samples[j];

				samples[j] = samples[j + gap];
				samples[j + gap] = greater;
			}
	return samples[count / 10];
}

/*
 * Takes `count` samples of the function `once`. Returns the lowest tenth, or 0 with the function's
 * error in `error`.
 */
static u64 measure(struct loop *loop, int (*once)(struct loop *loop), int count, int *error)
{
	for (int i = 0; i < count && !*error; i++) {
		const u64 begin = bench_now();

		*error = once(loop);
		samples[i] = bench_now() - begin;
	}
	return *error ? 0 : lowest_tenth(count);
}

/* Polls `count` successful completions of the send queue. */
static int reap(struct loop *loop, int count)
{
	const u64 limit = bench_now() + timeout_ns;

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

/* Keeps `inflight` writes of `size` bytes posted until `count` of them have completed. */
static int write(struct loop *loop, unsigned int size, int inflight, int count)
{
	struct ib_send_wr *request = loop_request(loop, &requests[0], IB_WR_RDMA_WRITE, size);
	int error = 0;

	for (int posted = 0; posted < count && !error; posted++) {
		if (posted >= inflight)
			error = reap(loop, 1);
		if (!error)
			error = ib_post_send(loop->qp, request, (void *)0);
	}
	return error ? error : reap(loop, inflight < count ? inflight : count);
}

static int write_8(struct loop *loop)
{
	return write(loop, 8, 1, 1);
}

static int write_64k(struct loop *loop)
{
	return write(loop, 64 << 10, 16, 200);
}

static int write_1m(struct loop *loop)
{
	return write(loop, 1 << 20, 8, 30);
}

/*
 * Measures the time from a doorbell to its interrupt, with as little work between them as possible:
 * a CQ is armed that probably contains a completion for which no event was raised.
 */
static int interrupt(struct loop *loop)
{
	const unsigned int seen = loop->events;
	const int error = ib_req_notify_cq(loop->send_cq, IB_CQ_NEXT_COMP);
	const u64 limit = bench_now() + timeout_ns;

	while (!error && loop->events == seen)
		if (bench_now() > limit)
			return -ETIMEDOUT;
	return error;
}

/*
 * Sends 320 small messages in chains of 16, two chains at a time. The last message of a chain
 * requests a completion.
 */
static int messages(struct loop *loop)
{
	int error = 0;

	for (int chain = 0; chain < 20 && !error; chain++) {
		if (chain >= 2)
			error = reap(loop, 1);
		if (!error)
			error = ib_post_send(loop->qp, &requests[0].rdma.wr, (void *)0);
	}
	return error ? error : reap(loop, 2);
}

static int time_interrupt(struct loop *loop)
{
	struct ib_send_wr *request = loop_request(loop, &requests[0], IB_WR_RDMA_WRITE, 8);
	int error = 0;

	for (int i = 0; i < SAMPLES && !error; i++) {
		u64 begin;

		error = ib_post_send(loop->qp, request, (void *)0);
		bench_spin(100);
		begin = bench_now();
		if (!error)
			error = interrupt(loop);
		samples[i] = bench_now() - begin;
		if (!error)
			error = reap(loop, 1);
	}
	if (!error)
		bench_print("driver.doorbell-to-interrupt", (long)lowest_tenth(SAMPLES));
	return error;
}

static int time_messages(struct loop *loop)
{
	int error = 0;
	u64 ns;

	for (int i = 0; i < BATCH; i++) {
		struct ib_send_wr *request = loop_request(loop, &requests[i], IB_WR_RDMA_WRITE, 32);

		request->send_flags = i == BATCH - 1 ? IB_SEND_SIGNALED : 0;
		request->next = i == BATCH - 1 ? (void *)0 : &requests[i + 1].rdma.wr;
	}
	ns = measure(loop, messages, SAMPLES / 10, &error);
	if (!error)
		bench_print("driver.message-rate", (long)(320 * 1000000000ull / ns));
	return error;
}

int card_doorbell(struct ib_device *device)
{
	static struct loop loop;
	int error = loop_open(&loop, device, IB_QPT_RC, 4096);

	if (!error)
		error = time_interrupt(&loop);
	loop_close(&loop);
	return error;
}

int card_times(struct ib_device *device)
{
	static struct loop loop;
	int error = loop_open(&loop, device, IB_QPT_RC, 1 << 20);
	u64 ns = 0;

	if (!error)
		ns = measure(&loop, write_8, SAMPLES, &error);
	if (!error)
		bench_print("driver.write-latency", (long)ns);
	if (!error)
		error = time_interrupt(&loop);
	if (!error)
		error = time_messages(&loop);
	if (!error)
		ns = measure(&loop, write_64k, 40, &error);
	if (!error)
		bench_print("driver.write-bandwidth-64k", (long)((200ull << 16) * 1000 / ns));
	if (!error)
		ns = measure(&loop, write_1m, 20, &error);
	if (!error)
		bench_print("driver.write-bandwidth-1m", (long)((30ull << 20) * 1000 / ns));
	loop_close(&loop);
	return error;
}
