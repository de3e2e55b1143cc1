// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Drains a queue. In state ERR, all posted requests complete in order with a flush error (IBA
 * 10.3.1.5; MGMT-09). So when a marker request that was posted last has completed, all others have
 * completed.
 */
#include <kern/completion.hpp>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include "checks.hpp"
#include "device.hpp"

using namespace verbs;

namespace
{

struct Marker {
	ib_cqe cqe{.done = done};
	kern::Completion reached{};

	static void done(ib_cq *, ib_wc *wc)
	{
		reinterpret_cast<Marker *>(wc->wr_cqe)->reached.complete();
	}
	void wait(ib_cq *cq)
	{
		if (cq->poll_ctx != IB_POLL_DIRECT) {
			reached.wait();
			return;
		}
		while (!reached.done())
			if (ib_process_cq_direct(cq, -1) <= 0)
				kern::sleep_ms(1);
	}
};
static_assert(__builtin_offsetof(Marker, cqe) == 0);

/* Moves the QP to ERR. Returns false, after reporting it, if the queue cannot be drained. */
bool begin(ib_qp *qp, const ib_cq *cq, const char *what)
{
	if (KERN_WARN_ON(!cq || !cq->poller))
		return false;
	ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
	if (int error = ib_modify_qp(qp, &attr, IB_QP_STATE)) {
		kern_error("%s: QP %#x: cannot drain %s: %d\n", qp->device->name, qp->qp_num, what,
			   error);
		return false;
	}
	return true;
}

} // namespace

extern "C" {

void ib_drain_sq(struct ib_qp *qp)
{
	may_sleep(qp->device, "ib_drain_sq");
	if (qp->device->ops.drain_sq) {
		qp->device->ops.drain_sq(qp);
		return;
	}
	if (!begin(qp, qp->send_cq, "its send queue"))
		return;
	Marker marker;
	/* A request without data, in a union with enough space for the request of any QP type. */
	union {
		ib_ud_wr ud;
		ib_xrc_wr xrc;
	} request;
	__builtin_memset(&request, 0, sizeof(request));
	request.ud.wr.wr_cqe = &marker.cqe;
	request.ud.wr.opcode =
		qp->qp_type == IB_QPT_UD || qp->qp_type == IB_QPT_GSI || qp->qp_type == IB_QPT_SMI
			? IB_WR_SEND
			: IB_WR_RDMA_WRITE;
	request.ud.wr.send_flags = IB_SEND_SIGNALED;
	if (int error = ib_post_send(qp, &request.ud.wr, nullptr)) {
		kern_error("%s: QP %#x: cannot drain its send queue: %d\n", qp->device->name,
			   qp->qp_num, error);
		return;
	}
	marker.wait(qp->send_cq);
}

void ib_drain_rq(struct ib_qp *qp)
{
	may_sleep(qp->device, "ib_drain_rq");
	if (qp->device->ops.drain_rq) {
		qp->device->ops.drain_rq(qp);
		return;
	}
	if (!begin(qp, qp->recv_cq, "its receive queue"))
		return;
	Marker marker;
	ib_recv_wr request = {};
	request.wr_cqe = &marker.cqe;
	if (int error = ib_post_recv(qp, &request, nullptr)) {
		kern_error("%s: QP %#x: cannot drain its receive queue: %d\n", qp->device->name,
			   qp->qp_num, error);
		return;
	}
	marker.wait(qp->recv_cq);
}

void ib_drain_qp(struct ib_qp *qp)
{
	ib_drain_sq(qp);
	if (!qp->srq)
		ib_drain_rq(qp);
}
}
