// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends from a QP to itself with each verb that is measured (see loop.h).
#include <kern/errno.h>
#include "loop.h"
#include "../../../../core/kern/bench/bench.h"
#include "../../../../core/kern/bench/environment.h"

enum { TIMEOUT_MS = 60000, STEP_US = 20000 };

static bool failed(const void *pointer)
{
	return (unsigned long)pointer >= (unsigned long)-4095;
}

static void on_completion(struct ib_cq *cq, void *context)
{
	struct loop *loop = context;

	loop->events++;
}

/* Returns `made`, or sets `error` and returns NULL if it is an error pointer. */
static void *taken(void *made, int *error)
{
	if (!failed(made))
		return made;
	*error = (int)(long)made;
	return (void *)0;
}

static int wait_active(struct ib_device *device, struct ib_port_attr *port)
{
	int error;

	for (int waited = 0; waited < TIMEOUT_MS; waited += STEP_US / 1000) {
		error = ib_query_port(device, 1, port);
		if (error)
			return error;
		if (port->state == IB_PORT_ACTIVE)
			return 0;
		bench_spin(STEP_US);
	}
	return -ETIMEDOUT;
}

static int connect(struct loop *loop, enum ib_qp_type type, u32 lid)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = LOOP_QKEY,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
		.path_mtu = IB_MTU_2048,
		.dest_qp_num = loop->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	const bool datagrams = type == IB_QPT_UD;
	int error;

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.ah_attr.port_num = 1;
	rdma_ah_set_dlid(&attr.ah_attr, lid);
	error = ib_modify_qp(loop->qp, &attr,
			     IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				     (datagrams ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
	if (error)
		return error;
	attr.qp_state = IB_QPS_RTR;
	error = ib_modify_qp(loop->qp, &attr,
			     datagrams ? IB_QP_STATE
				       : IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
						 IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
						 IB_QP_MIN_RNR_TIMER);
	if (error)
		return error;
	if (datagrams)
		loop->ah = taken(rdma_create_ah(loop->pd, &attr.ah_attr, RDMA_CREATE_AH_SLEEPABLE),
				 &error);
	if (error)
		return error;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(loop->qp, &attr,
			    datagrams
				    ? IB_QP_STATE | IB_QP_SQ_PSN
				    : IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					      IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

int loop_open(struct loop *loop, struct ib_device *device, enum ib_qp_type type, unsigned long size)
{
	const struct ib_cq_init_attr cq = {.cqe = 2 * LOOP_DEPTH};
	struct ib_qp_init_attr init = {
		.cap = {.max_send_wr = LOOP_DEPTH,
			.max_recv_wr = LOOP_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = type,
	};
	struct ib_port_attr port;
	int error;

	*loop = (struct loop){.device = device, .size = size};
	error = wait_active(device, &port);
	if (error)
		return error;
	loop->memory = bench_dma_alloc(device->dma_device, 2 * size, &loop->address);
	if (!loop->memory)
		return -ENOMEM;
	loop->pd = taken(ib_alloc_pd(device, IB_PD_UNSAFE_GLOBAL_RKEY), &error);
	if (loop->pd)
		loop->send_cq =
			taken(ib_create_cq(device, on_completion, (void *)0, loop, &cq), &error);
	if (loop->send_cq)
		loop->recv_cq =
			taken(ib_create_cq(device, on_completion, (void *)0, loop, &cq), &error);
	if (loop->recv_cq) {
		init.send_cq = loop->send_cq;
		init.recv_cq = loop->recv_cq;
		loop->qp = taken(ib_create_qp(loop->pd, &init), &error);
	}
	return error ? error : connect(loop, type, port.lid);
}

void loop_close(struct loop *loop)
{
	if (loop->ah)
		rdma_destroy_ah(loop->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (loop->qp)
		bench_ignore(ib_destroy_qp(loop->qp));
	if (loop->recv_cq)
		ib_destroy_cq(loop->recv_cq);
	if (loop->send_cq)
		ib_destroy_cq(loop->send_cq);
	if (loop->pd)
		ib_dealloc_pd(loop->pd);
	if (loop->memory)
		bench_dma_free(loop->device->dma_device, 2 * loop->size, loop->memory,
			       loop->address);
}

struct ib_send_wr *loop_request(struct loop *loop, struct loop_wr *wr, enum ib_wr_opcode opcode,
				unsigned int size)
{
	struct ib_send_wr *posted = loop->ah ? &wr->ud.wr : &wr->rdma.wr;

	*wr = (struct loop_wr){.sge = {loop->address, size, loop->pd->local_dma_lkey}};
	if (loop->ah) {
		wr->ud.ah = loop->ah;
		wr->ud.remote_qpn = loop->qp->qp_num;
		wr->ud.remote_qkey = LOOP_QKEY;
	} else {
		wr->rdma.remote_addr = loop->address + loop->size;
		wr->rdma.rkey = loop->pd->unsafe_global_rkey;
	}
	posted->opcode = opcode;
	posted->sg_list = &wr->sge;
	posted->num_sge = 1;
	posted->send_flags = IB_SEND_SIGNALED;
	return posted;
}
