// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a driver that does nothing, and the benchmark module that uses it.
// reference/noop_driver.c is its counterpart for the kernel's API.
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/memory.hpp>
#include <rdma/driver.hpp>
#include "figures.h"

extern "C" int weft_verbs_figures_init();
extern "C" void weft_verbs_figures_exit();

namespace
{

struct NoopDevice {
	ib_device ib;
};

int post_send(ib_qp *, const ib_send_wr *wr, const ib_send_wr **)
{
	noop_sent = wr->wr_cqe;
	return 0;
}

int post_recv(ib_qp *, const ib_recv_wr *, const ib_recv_wr **)
{
	return 0;
}

int poll_cq(ib_cq *, int count, ib_wc *wcs)
{
	int polled = 0;

	for (; polled < count && noop_pending > 0; polled++, noop_pending--) {
		wcs[polled].wr_cqe = noop_cqe;
		wcs[polled].status = IB_WC_SUCCESS;
	}
	return polled;
}

int query_device(ib_device *, ib_device_attr *attr, ib_udata *)
{
	attr->max_cqe = attr->max_qp_wr = 1024;
	attr->max_send_sge = attr->max_recv_sge = 1;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	return 0;
}

int query_port(ib_device *, u32, ib_port_attr *attr)
{
	attr->state = IB_PORT_DOWN;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	return 0;
}

constexpr ib_device_ops ops = {
	.post_send = post_send,
	.post_recv = post_recv,
	.poll_cq = poll_cq,
	.req_notify_cq = [](ib_cq *, ib_cq_notify_flags) { return 0; },
	.query_device = query_device,
	.query_port = query_port,
	.query_gid = [](ib_device *, u32, int, ib_gid *) { return 0; },
	.query_pkey = [](ib_device *, u32, u16, u16 *) { return 0; },
	.alloc_pd = [](ib_pd *, ib_udata *) { return 0; },
	.dealloc_pd = [](ib_pd *, ib_udata *) { return 0; },
	.create_cq =
		[](ib_cq *cq, const ib_cq_init_attr *attr, ib_udata *) {
			cq->cqe = static_cast<int>(attr->cqe);
			return 0;
		},
	.destroy_cq = [](ib_cq *, ib_udata *) { return 0; },
	.create_qp = [](ib_qp *, ib_qp_init_attr *, ib_udata *) { return 0; },
	.modify_qp = [](ib_qp *, ib_qp_attr *, int, ib_udata *) { return 0; },
	.destroy_qp = [](ib_qp *, ib_udata *) { return 0; },
	.drain_sq = [](ib_qp *) {},
	.drain_rq = [](ib_qp *) {},
	.size_ib_cq = sizeof(ib_cq),
	.size_ib_pd = sizeof(ib_pd),
	.size_ib_qp = sizeof(ib_qp),
};

constinit kern::Static<kern::BhSpinLock> held;

constexpr figures_environment environment = {
	.print = [](const char *name,
		    long instructions) { kern_info("figure verbs.%s %ld\n", name, instructions); },
	.hold = []() KERN_NO_THREAD_SAFETY_ANALYSIS { (void)held->lock(); },
	.release = []() KERN_NO_THREAD_SAFETY_ANALYSIS { held->unlock({}); },
};

} // namespace

int weft_verbs_figures_init()
{
	held.construct(KERN_LOCK_CLASS("verbs.figures"));
	auto *device = rdma::alloc_device<NoopDevice>();
	if (!device)
		return -ENOMEM;
	device->ib.phys_port_cnt = 1;
	device->ib.num_comp_vectors = 1;
	device->ib.node_type = RDMA_NODE_IB_CA;
	ib_set_device_ops(&device->ib, &ops);
	int error = ib_register_device(&device->ib, "noop%d", nullptr);
	if (!error) {
		error = figures_run(&device->ib, &environment);
		if (!error)
			error = figures_mad(&device->ib, &environment);
		ib_unregister_device(&device->ib);
	}
	rdma::dealloc_device(device);
	return error;
}

void weft_verbs_figures_exit() {}
