/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Measures the costs of the verbs layer over a driver that does nothing. figures.c is compiled
 * twice, because both stacks export the same names: against weft's rdma/ib_verbs.h, and, in
 * reference/, against the kernel's.
 */
#pragma once
#include <rdma/ib_verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that figures.c needs from its environment. */
struct figures_environment {
	void (*print)(const char *name, long instructions);
	/* hold() delays soft interrupts, and release() runs them. */
	void (*hold)(void);
	void (*release)(void);
};

/*
 * Measures all figures on a registered device of the no-op driver. Returns 0 or a negative errno.
 */
int figures_run(struct ib_device *device, const struct figures_environment *environment);

/* Measures the figures of a MAD. The device has registered with the MAD layer. */
int figures_mad(struct ib_device *device, const struct figures_environment *environment);

/* The CQE of the last send that was posted. */
extern struct ib_cqe *noop_sent;

/* The number of completions that poll_cq of the no-op driver still returns, and their wr_cqe. */
extern int noop_pending;
extern struct ib_cqe *noop_cqe;

#ifdef __cplusplus
}
#endif
