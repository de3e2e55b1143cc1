// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface between a CQ and its poller. The poller follows the driver's part of the CQ
// in the same allocation.
#pragma once
#include <kern/result.hpp>
#include <rdma/ib_verbs.h>

namespace verbs
{

struct CqSetup {
	ib_comp_handler comp_handler;
	void (*event_handler)(ib_event *event, void *cq_context);
	void *cq_context;
	ib_poll_context poll_ctx;
	bool has_poller;
	size_t poller_size;
	ib_udata *udata;
};

/* Returns a CQ or an error pointer. */
ib_cq *create_cq(ib_device &device, const ib_cq_init_attr &attr, const CqSetup &setup,
		 const char *caller);
/* Errors: EBUSY, and those of the driver. */
int destroy_cq(ib_cq &cq);

ib_cq_poller *construct_poller(void *memory, ib_cq *cq);
/*
 * Stops the poller: it no longer polls or arms the CQ, but may still be scheduled. Has no effect on
 * a CQ without a poller.
 */
void stop_poller(ib_cq &cq);
/*
 * Returns when the done functions of all completions that are now in the queue have returned
 * (MGMT-09). Has no effect on a CQ without a poller. Context: process, not a done function of this
 * CQ.
 */
void flush_cq(ib_cq &cq);
/*
 * Destroys the poller, which must not be scheduled any more. Has no effect on a CQ without a
 * poller.
 */
void destroy_poller(ib_cq &cq);

kern::Result<> init_pollers();
void exit_pollers();

} // namespace verbs
