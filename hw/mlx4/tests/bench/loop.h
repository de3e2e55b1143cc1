/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connects a QP to itself with the verbs only, for benchmarks. It is compiled twice, because both
 * stacks export the same names: against weft's rdma/ib_verbs.h, and, in reference/, against the
 * kernel's.
 */
#pragma once
#include <rdma/ib_verbs.h>

enum { LOOP_DEPTH = 64, LOOP_QKEY = 0x1234 };

struct loop {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_qp *qp;
	struct ib_ah *ah;
	/* The data to send, followed by as many bytes for receives. */
	unsigned char *memory;
	u64 address;
	unsigned long size;
	/* The number of completion events of both CQs. */
	volatile unsigned int events;
};

/*
 * Returns 0 or a negative errno; in both cases loop_close() must be called. Waits until the port is
 * ACTIVE. May sleep.
 */
int loop_open(struct loop *loop, struct ib_device *device, enum ib_qp_type type,
	      unsigned long size);
void loop_close(struct loop *loop);

/* A request that sends `size` bytes, in the form that the loop's QP type requires. */
struct loop_wr {
	struct ib_rdma_wr rdma;
	struct ib_ud_wr ud;
	struct ib_sge sge;
};
/* Returns the request in `wr` that is to be posted. */
struct ib_send_wr *loop_request(struct loop *loop, struct loop_wr *wr, enum ib_wr_opcode opcode,
				unsigned int size);

/* The instructions of each verb, and the time that data takes. 0 or a negative errno. */
int card_counts(struct ib_device *device);
int card_times(struct ib_device *device);
/* Measures only the time from a doorbell to an interrupt. */
int card_doorbell(struct ib_device *device);
/* Sends a stream of small messages, whose processing the card measures. */
int card_stream(struct ib_device *device);
