// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Dispatches affiliated events: calls the handler of the CQ, QP or SRQ in the context in which the
// driver reports the event.
#include <kern/trace.hpp>
#include "checks.hpp"
#include "qp.hpp"
#include "verbs.hpp"

using namespace verbs;

namespace
{

/*
 * number: the QP number or port number of the event; 0 for other objects, which have no public
 * number.
 */
void report(const ib_event &event, u32 number)
{
	kern_trace_async_event(event.device->name, event.event, ib_event_msg(event.event), number);
}

/* An event of an XRC target QP is reported to all handles on it. */
void notify_handles(const ib_event &event)
{
	ib_qp_core &core = *event.element.qp->core;

	kern::Guard guard(core.handles_lock);
	ring_any_of<ib_qp, &ib_qp::links>(core.handles, [&](ib_qp &handle) {
		if (handle.event_handler) {
			ib_event copy = event;
			copy.element.qp = &handle;
			handle.event_handler(&copy, handle.qp_context);
		}
		return false;
	});
}

} // namespace

bool verbs::dispatch_affiliated(const ib_event &event)
{
	ib_event copy = event;
	HandlerSection section;

	switch (event.event) {
	case IB_EVENT_CQ_ERR: {
		ib_cq *cq = event.element.cq;
		check_callback(cq->device, "runs the event handler of a CQ");
		report(event, 0);
		if (cq->event_handler)
			cq->event_handler(&copy, cq->cq_context);
		return true;
	}
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_COMM_EST:
	case IB_EVENT_SQ_DRAINED:
	case IB_EVENT_PATH_MIG:
	case IB_EVENT_PATH_MIG_ERR:
	case IB_EVENT_QP_LAST_WQE_REACHED: {
		ib_qp *qp = event.element.qp;
		check_callback(qp->device, "runs the event handler of a QP");
		report(event, qp->qp_num);
		if (qp->event_handler)
			qp->event_handler(&copy, qp->qp_context);
		if (qp->qp_type == IB_QPT_XRC_TGT)
			notify_handles(event);
		return true;
	}
	case IB_EVENT_SRQ_ERR:
	case IB_EVENT_SRQ_LIMIT_REACHED: {
		ib_srq *srq = event.element.srq;
		check_callback(srq->device, "runs the event handler of a SRQ");
		report(event, 0);
		if (srq->event_handler)
			srq->event_handler(&copy, srq->srq_context);
		return true;
	}
	default:
		report(event, event.element.port_num);
		return false;
	}
}
