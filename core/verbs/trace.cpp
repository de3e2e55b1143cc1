// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "trace.hpp"
#include <kern/atomic.hpp>
#include "device.hpp"

namespace verbs
{

DeviceTrace::Drivers::Drivers(ib_device &of)
    : device(of), post_send(of.ops.post_send), poll_cq(of.ops.poll_cq)
{
}

DeviceTrace::Drivers::~Drivers()
{
	device.ops.post_send = post_send;
	device.ops.poll_cq = poll_cq;
}

/* A call that is in progress continues with the previous method. */
void DeviceTrace::watch_sends(bool watched)
{
	kern::write_once(drivers_.device.ops.post_send, watched ? post_send : drivers_.post_send);
}

void DeviceTrace::watch_completions(bool watched)
{
	kern::write_once(drivers_.device.ops.poll_cq, watched ? poll_cq : drivers_.poll_cq);
}

int DeviceTrace::post_send(ib_qp *qp, const ib_send_wr *wr, const ib_send_wr **bad_wr)
{
	for (const ib_send_wr *each = wr; each; each = each->next) {
		u32 bytes = 0;
		for (int i = 0; i < each->num_sge; i++)
			bytes += each->sg_list[i].length;
		kern_trace_post_send(qp->device->name, qp->qp_num, static_cast<u32>(each->opcode),
				     bytes);
	}
	return qp->device->verbs->trace->drivers_.post_send(qp, wr, bad_wr);
}

int DeviceTrace::poll_cq(ib_cq *cq, int count, ib_wc *wcs)
{
	const int got = cq->device->verbs->trace->drivers_.poll_cq(cq, count, wcs);

	for (int i = 0; i < got; i++) {
		const ib_wc &wc = wcs[i];
		/*
		 * wc.qp is nullptr if the QP has been destroyed. Only a successful completion has
		 * more valid members than its status.
		 */
		const bool good = wc.status == IB_WC_SUCCESS;
		kern_trace_completion(cq->device->name, wc.qp ? wc.qp->qp_num : 0,
				      good ? static_cast<u32>(wc.opcode) : 0,
				      static_cast<u32>(wc.status), good ? wc.byte_len : 0);
	}
	return got;
}

} // namespace verbs
