// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "figures.h"
#include "../../../kern/bench/bench.h"
#include "../../../kern/bench/environment.h"

enum { BATCH = 16, MANY = 10000 };

int noop_pending;
struct ib_cqe *noop_cqe;
struct ib_cqe *noop_sent;

static struct ib_wc wcs[BATCH];
static struct ib_cq *alive[MANY];
static struct ib_qp *alive_qps[MANY];

static void done(struct ib_cq *cq, struct ib_wc *wc) {}

static struct ib_cqe cqe = {.done = done};

static bool failed(const void *pointer)
{
	return (unsigned long)pointer >= (unsigned long)-4095;
}

static struct ib_qp *new_qp(struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(pd, &attr);
}

static void data_path(struct ib_qp *qp, struct ib_cq *cq,
		      const struct figures_environment *environment)
{
	struct ib_send_wr send = {.opcode = IB_WR_SEND};
	struct ib_recv_wr recv = {};

	environment->print("post-send", BENCH(bench_ignore(ib_post_send(qp, &send, (void *)0))));
	environment->print("post-recv", BENCH(bench_ignore(ib_post_recv(qp, &recv, (void *)0))));
	environment->print("poll-cq-of-16", BENCH({
				   noop_pending = BATCH;
				   bench_ignore(ib_poll_cq(cq, BATCH, wcs));
			   }));
	environment->print("req-notify",
			   BENCH(bench_ignore(ib_req_notify_cq(cq, IB_CQ_NEXT_COMP))));
	environment->print("req-notify-report",
			   BENCH(bench_ignore(ib_req_notify_cq(
				   cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS))));
	environment->print("process-direct-of-16", BENCH({
				   noop_pending = BATCH;
				   ib_process_cq_direct(cq, -1);
			   }));
}

static int dispatch(struct ib_device *device, const struct figures_environment *environment)
{
	struct ib_cq *cq = ib_alloc_cq(device, (void *)0, BATCH, 0, IB_POLL_SOFTIRQ);

	if (failed(cq))
		return (int)(long)cq;
	/* From the driver's call to the end of the soft interrupt, with one completion found. */
	environment->print("dispatch-softirq", BENCH({
						       noop_pending = 1;
						       environment->hold();
						       cq->comp_handler(cq, cq->cq_context);
						       environment->release();
					       }) - BENCH({
						       environment->hold();
						       environment->release();
					       }));
	ib_free_cq(cq);
	/* The part of the kernel itself, to be subtracted. */
	environment->print("softirq-alone", BENCH({
						    environment->hold();
						    bench_soft_interrupt();
						    environment->release();
					    }) - BENCH({
						    environment->hold();
						    environment->release();
					    }));
	return 0;
}

static void objects(struct ib_device *device, struct ib_pd *pd, struct ib_cq *cq,
		    const struct figures_environment *environment)
{
	int count;

	environment->print("cq-create-destroy",
			   BENCH(ib_free_cq(ib_alloc_cq(device, (void *)0, 1, 0, IB_POLL_DIRECT))));
	environment->print("qp-create-destroy", BENCH(bench_ignore(ib_destroy_qp(new_qp(pd, cq)))));
	for (count = 0; count < MANY; count++) {
		alive[count] = ib_alloc_cq(device, (void *)0, 1, 0, IB_POLL_DIRECT);
		if (failed(alive[count]))
			break;
	}
	environment->print("cq-create-destroy-among-10000",
			   BENCH(ib_free_cq(ib_alloc_cq(device, (void *)0, 1, 0, IB_POLL_DIRECT))));
	while (count > 0)
		ib_free_cq(alive[--count]);
	for (count = 0; count < MANY; count++) {
		alive_qps[count] = new_qp(pd, cq);
		if (failed(alive_qps[count]))
			break;
	}
	environment->print("qp-create-destroy-among-10000",
			   BENCH(bench_ignore(ib_destroy_qp(new_qp(pd, cq)))));
	while (count > 0)
		bench_ignore(ib_destroy_qp(alive_qps[--count]));
}

int figures_run(struct ib_device *device, const struct figures_environment *environment)
{
	struct ib_pd *pd = ib_alloc_pd(device, 0);
	struct ib_cq *cq;
	struct ib_qp *qp;
	int error;

	noop_cqe = &cqe;
	if (failed(pd))
		return (int)(long)pd;
	cq = ib_alloc_cq(device, (void *)0, BATCH, 0, IB_POLL_DIRECT);
	error = failed(cq) ? (int)(long)cq : 0;
	if (!error) {
		qp = new_qp(pd, cq);
		error = failed(qp) ? (int)(long)qp : 0;
		if (!error) {
			data_path(qp, cq, environment);
			objects(device, pd, cq, environment);
			error = dispatch(device, environment);
			bench_ignore(ib_destroy_qp(qp));
		}
		ib_free_cq(cq);
	}
	ib_dealloc_pd(pd);
	return error;
}
