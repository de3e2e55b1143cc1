// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Counts the instructions of each verbs call (post, poll, arm) and of the interrupt handler, in a
 * guest whose time-stamp counter advances by one for each instruction (see bench.h). The card runs
 * in parallel with the guest, so the benchmark gives it time to write the expected CQEs, and
 * discards a round with another number of CQEs.
 */
#include <kern/errno.h>
#include "loop.h"
#include "../../../../core/kern/bench/bench.h"
#include "../../../../core/kern/bench/environment.h"

enum { ROUNDS = 40, BATCH = 16, SETTLE_US = 4000, MESSAGE = 32, SHORT = 8, GRH = 40 };

struct counts {
	u64 post_send, post_recv, poll_send, poll_recv, poll_empty, arm, interrupt, interrupt_empty;
};

static struct loop_wr requests[BATCH];
static struct ib_wc wcs[BATCH];

#define COUNT(smallest, expected, call)                                                            \
	({                                                                                         \
		const u64 begin = bench_ticks();                                                   \
		const int got = (call);                                                            \
		const u64 ticks = bench_ticks() - begin;                                           \
		if (got == (expected) && ticks < (smallest))                                       \
			(smallest) = ticks;                                                        \
		got;                                                                               \
	})

static int good(int count)
{
	for (int i = 0; i < count; i++)
		if (wcs[i].status != IB_WC_SUCCESS)
			return -EIO;
	return 0;
}

/* Polls all remaining completions, so that the next round starts with empty CQs. */
static int empty(struct loop *loop)
{
	struct ib_cq *cqs[] = {loop->send_cq, loop->recv_cq};
	int got;

	for (int i = 0; i < 2; i++) {
		while ((got = ib_poll_cq(cqs[i], BATCH, wcs)) > 0)
			if (good(got))
				return -EIO;
		if (got < 0)
			return got;
	}
	return 0;
}

/* A round of `batch` messages, posted in one call for each direction, and polled in one call. */
static int message_round(struct loop *loop, struct counts *counts, enum ib_wr_opcode opcode,
			 int batch, unsigned int size)
{
	struct ib_sge sge = {loop->address + loop->size, MESSAGE + GRH, loop->pd->local_dma_lkey};
	struct ib_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
	struct ib_send_wr *first = (void *)0;

	for (int i = batch; i-- > 0;) {
		struct ib_send_wr *request = loop_request(loop, &requests[i], opcode, size);

		request->next = first;
		first = request;
	}
	if (opcode == IB_WR_SEND)
		for (int i = 0; i < batch; i++)
			COUNT(counts->post_recv, 0, ib_post_recv(loop->qp, &recv, (void *)0));
	if (COUNT(counts->post_send, 0, ib_post_send(loop->qp, first, (void *)0)))
		return -EIO;
	bench_spin(SETTLE_US);
	if (good(COUNT(counts->poll_send, batch, ib_poll_cq(loop->send_cq, batch, wcs))))
		return -EIO;
	if (opcode == IB_WR_SEND &&
	    good(COUNT(counts->poll_recv, batch, ib_poll_cq(loop->recv_cq, batch, wcs))))
		return -EIO;
	COUNT(counts->poll_empty, 0, ib_poll_cq(loop->send_cq, batch, wcs));
	return empty(loop);
}

/* One completion, its event, and a direct call of the interrupt handler for it. */
static int interrupt_round(struct loop *loop, struct counts *counts, int irq)
{
	struct ib_send_wr *request = loop_request(loop, &requests[0], IB_WR_RDMA_WRITE, MESSAGE);
	unsigned int before;
	int error;

	COUNT(counts->arm, 0, ib_req_notify_cq(loop->send_cq, IB_CQ_NEXT_COMP));
	bench_interrupts_off();
	before = loop->events;
	error = ib_post_send(loop->qp, request, (void *)0);
	bench_spin(SETTLE_US);
	COUNT(counts->interrupt, 1, (bench_call_interrupt(irq), (int)(loop->events - before)));
	before = loop->events;
	COUNT(counts->interrupt_empty, 0,
	      (bench_call_interrupt(irq), (int)(loop->events - before)));
	bench_interrupts_on();
	return error ? error : empty(loop);
}

static int count(struct ib_device *device, enum ib_qp_type type, enum ib_wr_opcode opcode,
		 int batch, unsigned int size, int irq, struct counts *counts)
{
	static struct loop loop;
	u64 *fields = (u64 *)counts;
	const u64 nothing = BENCH_SMALLEST((void)0);
	int error = loop_open(&loop, device, type, 4096);

	for (unsigned int i = 0; i < sizeof(*counts) / sizeof(u64); i++)
		fields[i] = ~0ull;
	for (int i = 0; i < ROUNDS && !error; i++) {
		error = message_round(&loop, counts, opcode, batch, size);
		if (!error && irq > 0)
			error = interrupt_round(&loop, counts, irq);
	}
	for (unsigned int i = 0; i < sizeof(*counts) / sizeof(u64); i++)
		fields[i] -= nothing;
	loop_close(&loop);
	return error;
}

int card_counts(struct ib_device *device)
{
	static const char *const interrupts[] = {"weft_mlx4-completion", "mlx4-1@",
						 "weft_mthca-completion", "ib_mthca-comp@",
						 "mlx5_comp0@"};
	struct counts counts;
	int irq = -ENOENT;
	int error;

	for (unsigned int i = 0; irq < 0 && i < sizeof(interrupts) / sizeof(interrupts[0]); i++)
		irq = bench_find_interrupt(interrupts[i]);
	if (irq < 0)
		return irq;
	error = count(device, IB_QPT_RC, IB_WR_SEND, 1, MESSAGE, irq, &counts);
	if (error)
		return error;
	bench_print("driver.post-send-rc", counts.post_send);
	bench_print("driver.post-recv", counts.post_recv);
	bench_print("driver.poll-send", counts.poll_send);
	bench_print("driver.poll-recv", counts.poll_recv);
	bench_print("driver.poll-empty", counts.poll_empty);
	bench_print("driver.req-notify", counts.arm);
	bench_print("driver.interrupt", counts.interrupt);
	bench_print("driver.interrupt-empty", counts.interrupt_empty);
	error = count(device, IB_QPT_RC, IB_WR_RDMA_WRITE, 1, MESSAGE, 0, &counts);
	if (error)
		return error;
	bench_print("driver.post-write-rc", counts.post_send);
	error = count(device, IB_QPT_RC, IB_WR_RDMA_WRITE, 1, SHORT, 0, &counts);
	if (error)
		return error;
	bench_print("driver.post-write-8", counts.post_send);
	bench_print("driver.poll-write-8", counts.poll_send);
	error = count(device, IB_QPT_UD, IB_WR_SEND, 1, MESSAGE, 0, &counts);
	if (error)
		return error;
	bench_print("driver.post-send-ud", counts.post_send);
	bench_print("driver.poll-recv-ud", counts.poll_recv);
	error = count(device, IB_QPT_RC, IB_WR_SEND, BATCH, MESSAGE, 0, &counts);
	if (error)
		return error;
	bench_print("driver.post-send-rc-of-16", counts.post_send);
	bench_print("driver.poll-send-of-16", counts.poll_send);
	bench_print("driver.poll-recv-of-16", counts.poll_recv);
	error = count(device, IB_QPT_UD, IB_WR_SEND, BATCH, MESSAGE, 0, &counts);
	if (error)
		return error;
	bench_print("driver.post-send-ud-of-16", counts.post_send);
	return 0;
}
