// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a driver that does nothing for the kernel's ib_core, like ../noop_driver.cpp for weft.
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include "../figures.h"

struct noop_device {
	struct ib_device ib;
};

static int noop_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	noop_sent = wr->wr_cqe;
	return 0;
}

static int noop_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	return 0;
}

static int noop_poll_cq(struct ib_cq *cq, int count, struct ib_wc *wcs)
{
	int polled = 0;

	for (; polled < count && noop_pending > 0; polled++, noop_pending--) {
		wcs[polled].wr_cqe = noop_cqe;
		wcs[polled].status = IB_WC_SUCCESS;
	}
	return polled;
}

static int noop_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

static int noop_query_device(struct ib_device *device, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->max_cqe = attr->max_qp_wr = 1024;
	attr->max_send_sge = attr->max_recv_sge = 1;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	return 0;
}

static int noop_query_port(struct ib_device *device, u32 port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_DOWN;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	return 0;
}

static int noop_port_immutable(struct ib_device *device, u32 port,
			       struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->pkey_tbl_len = 1;
	/* Flags that the MAD layer needs for a GSI; no other part of the stack above is loaded. */
	immutable->core_cap_flags =
		RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_CM;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static int noop_query_gid(struct ib_device *device, u32 port, int index, union ib_gid *gid)
{
	return 0;
}

static int noop_query_pkey(struct ib_device *device, u32 port, u16 index, u16 *pkey)
{
	return 0;
}

static int noop_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int noop_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			  struct ib_udata *udata)
{
	cq->cqe = attr->cqe;
	return 0;
}

static int noop_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

static int noop_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	return 0;
}

static int noop_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	return 0;
}

static int noop_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

/*
 * No memory region is ever created, but a driver must have these methods to be usable by kernel
 * consumers.
 */
static struct ib_mr *noop_get_dma_mr(struct ib_pd *pd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static struct ib_mr *noop_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address,
				      int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int noop_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	return 0;
}

static void noop_drain(struct ib_qp *qp) {}

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.post_send = noop_post_send,
	.post_recv = noop_post_recv,
	.poll_cq = noop_poll_cq,
	.req_notify_cq = noop_req_notify_cq,
	.query_device = noop_query_device,
	.query_port = noop_query_port,
	.get_port_immutable = noop_port_immutable,
	.query_gid = noop_query_gid,
	.query_pkey = noop_query_pkey,
	.alloc_pd = noop_pd,
	.dealloc_pd = noop_pd,
	.create_cq = noop_create_cq,
	.destroy_cq = noop_destroy_cq,
	.create_qp = noop_create_qp,
	.modify_qp = noop_modify_qp,
	.destroy_qp = noop_destroy_qp,
	.get_dma_mr = noop_get_dma_mr,
	.reg_user_mr = noop_reg_user_mr,
	.dereg_mr = noop_dereg_mr,
	.drain_rq = noop_drain,
	.drain_sq = noop_drain,
	.size_ib_cq = sizeof(struct ib_cq),
	.size_ib_pd = sizeof(struct ib_pd),
	.size_ib_qp = sizeof(struct ib_qp),
};

static DEFINE_SPINLOCK(held);

static void hold(void)
{
	spin_lock_bh(&held);
}

static void release(void)
{
	spin_unlock_bh(&held);
}

static void print(const char *name, long instructions)
{
	pr_info("verbs_reference: figure verbs.%s %ld\n", name, instructions);
}

static const struct figures_environment environment = {
	.print = print, .hold = hold, .release = release};

static int __init noop_init(void)
{
	struct noop_device *device = ib_alloc_device(noop_device, ib);
	int error;

	if (!device)
		return -ENOMEM;
	device->ib.phys_port_cnt = 1;
	device->ib.num_comp_vectors = 1;
	device->ib.node_type = RDMA_NODE_IB_CA;
	ib_set_device_ops(&device->ib, &ops);
	error = ib_register_device(&device->ib, "noop%d", NULL);
	if (!error) {
		error = figures_run(&device->ib, &environment);
		if (!error)
			error = figures_mad(&device->ib, &environment);
		ib_unregister_device(&device->ib);
	}
	ib_dealloc_device(&device->ib);
	return error;
}
module_init(noop_init);

static void __exit noop_exit(void) {}
module_exit(noop_exit);

MODULE_DESCRIPTION("What the verbs of the kernel's ib_core cost, counted");
MODULE_AUTHOR("weft developers");
MODULE_LICENSE("Dual BSD/GPL");
