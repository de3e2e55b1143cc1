/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Defines struct ib_device_ops, the table of the methods that a driver provides. */
#pragma once
#include <rdma/verbs/attributes.h>
#include <rdma/verbs/objects.h>
#include <rdma/verbs/user.h>

struct ib_mad;
struct rdma_hw_counters;

enum ib_process_mad_flags {
	IB_MAD_IGNORE_MKEY = 1 << 0,
	IB_MAD_IGNORE_BKEY = 1 << 1,
	IB_MAD_IGNORE_ALL = IB_MAD_IGNORE_MKEY | IB_MAD_IGNORE_BKEY,
};

enum ib_mad_result {
	IB_MAD_RESULT_FAILURE = 0,
	IB_MAD_RESULT_SUCCESS = 1 << 0,
	IB_MAD_RESULT_REPLY = 1 << 1,
	IB_MAD_RESULT_CONSUMED = 1 << 2,
};

/*
 * The user of a multicast group. A driver may reserve a part of its table for groups of the kernel.
 */
enum ib_mcast_owner {
	IB_MCAST_KERNEL,
	IB_MCAST_USER,
};

/**
 * struct ib_device_ops - the methods of a driver
 * @driver_id: enum rdma_driver_id, by which a program's library identifies the driver
 * @uverbs_abi_ver: version of the layout of udata between the library and the driver
 * @size_ib_ah: bytes of the driver's address handle, which begins with its struct ib_ah; likewise
 * for the other objects. At least the size of that structure, if the driver has the method that
 * creates the object
 * @size_ib_cq: bytes of its completion queue
 * @size_ib_mr: bytes of its memory region
 * @size_ib_mw: bytes of its memory window
 * @size_ib_pd: bytes of its protection domain
 * @size_ib_qp: bytes of its queue pair
 * @size_ib_srq: bytes of its shared receive queue
 * @size_ib_ucontext: bytes of its user context
 * @size_ib_xrcd: bytes of its XRC domain
 *
 * Rules for all methods:
 *
 * All are reentrant, on one object too (LOCK-04). Methods with "Context: any" must not sleep
 * (LOCK-01); the others may (LOCK-02). No method calls a handler of a consumer from within
 * (LOCK-05).
 *
 * A method that creates an object gets it from the midlayer: allocated, zeroed, with its device and
 * its parents filled in. A method that destroys one leaves the freeing to the midlayer, and no
 * handler of the object runs after it has returned. It may fail only if the hardware still uses the
 * object, and then has changed nothing.
 *
 * udata is NULL unless the call is on behalf of a program (struct ib_udata). It is always NULL in a
 * method that destroys an object, because the object may outlive the program; ib_resource.user is
 * true if the object belongs to a program.
 *
 * A method that is NULL makes its ib_* function return -EOPNOTSUPP, unless its description says
 * otherwise. The following methods are mandatory: post_send, post_recv, poll_cq, req_notify_cq,
 * query_port, the methods that create and destroy PDs, CQs and QPs, modify_qp, and on InfiniBand
 * query_gid and query_pkey. A driver that can create another kind of object also has the method
 * that destroys it; a driver with create_srq also has post_srq_recv, and one with alloc_mr also has
 * map_mr_sg. ib_register_device() refuses a driver without them.
 *
 * Linux: differs by objects of all kinds, also regions and windows, that the midlayer allocates.
 */
struct ib_device_ops {
	/* The methods of the data path are first, so that they fit into two cache lines. */

	/**
	 * post_send - post a list of requests to a send queue
	 * @qp: the QP
	 * @send_wr: the first request of the list; kept until the method returns
	 * @bad_send_wr: set to the first request that was not posted, on an error; never NULL
	 *
	 * Requests before @bad_send_wr are posted (IBA 11.4).
	 *
	 * Context: any. Return: 0; -EINVAL if the QP's state or the request does not allow it;
	 * -ENOMEM if the queue is full; a negative errno of the device.
	 */
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *send_wr,
			 const struct ib_send_wr **bad_send_wr);
	/**
	 * post_recv - post a list of buffers to a receive queue (IBA 11.4)
	 * @qp: the QP, which has no SRQ
	 * @recv_wr: the first request of the list; kept until the method returns
	 * @bad_recv_wr: set to the first request that was not posted, on an error; never NULL
	 *
	 * Context: any. Return: as post_send.
	 */
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
			 const struct ib_recv_wr **bad_recv_wr);
	/**
	 * poll_cq - take completions from a queue (IBA 11.4)
	 * @cq: the queue
	 * @num_entries: maximum number of completions to take
	 * @wc: array of that many completions, filled in from the first
	 *
	 * A completion that outlives its QP has the ib_wc.qp that rdma::remaining_qp() returns.
	 *
	 * Context: any. Return: number of completions taken; fewer than @num_entries means that the
	 * queue was found empty; a negative errno of the device.
	 */
	int (*poll_cq)(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
	/**
	 * req_notify_cq - arm a completion queue for one event (IBA 11.4)
	 * @cq: the queue
	 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, with or without IB_CQ_REPORT_MISSED_EVENTS
	 *
	 * The rules NOTIFY-01 to NOTIFY-08 apply.
	 *
	 * Context: any. Return: 0 if the queue is armed; a positive number, only with
	 * IB_CQ_REPORT_MISSED_EVENTS, if completions may be waiting that raise no event; -EINVAL
	 * for other flags, and then nothing is armed; a negative errno of the device.
	 */
	int (*req_notify_cq)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	/**
	 * post_srq_recv - post a list of buffers to a shared receive queue (IBA 11.4)
	 * @srq: the queue
	 * @recv_wr: the first request of the list; kept until the method returns
	 * @bad_recv_wr: set to the first request that was not posted, on an error; never NULL
	 *
	 * Context: any. Return: as post_send.
	 */
	int (*post_srq_recv)(struct ib_srq *srq, const struct ib_recv_wr *recv_wr,
			     const struct ib_recv_wr **bad_recv_wr);
	/**
	 * peek_cq - count the completions that wait in a queue
	 * @cq: the queue
	 * @wc_cnt: number at which to stop counting
	 *
	 * Context: any. Return: number of completions, at most @wc_cnt; a negative errno of the
	 * device.
	 */
	int (*peek_cq)(struct ib_cq *cq, int wc_cnt);
	/**
	 * map_mr_sg - set the memory of a fast-registration region
	 * @mr: the region; page_size is set
	 * @sg: the memory
	 * @sg_nents: number of segments, at least 1
	 * @sg_offset: as for ib_map_mr_sg()
	 *
	 * Sets iova and length of @mr. ib_sg_to_pages() walks the segments (IBA 10.6).
	 *
	 * Linux: differs by DMA segments instead of a scatterlist.
	 *
	 * Context: any. Return: number of segments taken whole; a negative errno.
	 */
	int (*map_mr_sg)(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
			 unsigned int *sg_offset);

	/**
	 * create_ah - create an address handle
	 * @ah: the handle
	 * @attr: the address, which is checked already, and the flags; valid during the call
	 * @udata: the command of a program, or NULL
	 *
	 * IBA 11.2.2.
	 *
	 * Context: process if @attr->flags has RDMA_CREATE_AH_SLEEPABLE, else any. Return: 0; a
	 * negative errno, which the consumer gets.
	 */
	int (*create_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
	/**
	 * destroy_ah - destroy an address handle (IBA 11.2.2)
	 * @ah: the handle
	 * @flags: enum rdma_destroy_ah_flags
	 *
	 * May be NULL if there is nothing to do.
	 *
	 * Context: process if @flags has RDMA_DESTROY_AH_SLEEPABLE, else any. Return: 0. An error
	 * is logged, and the memory of the handle is leaked.
	 */
	int (*destroy_ah)(struct ib_ah *ah, u32 flags);
	/**
	 * modify_ah - change the address of a handle (IBA 11.2.2)
	 * @ah: the handle
	 * @ah_attr: the new address, which is checked already
	 *
	 * Context: any. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*modify_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
	/**
	 * query_ah - read the address of a handle (IBA 11.2.2)
	 * @ah: the handle
	 * @ah_attr: filled in
	 *
	 * Context: any. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*query_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);

	/**
	 * query_device - report the limits of the device
	 * @device: the device
	 * @device_attr: filled in. Zeroed before the call at registration; for a program, it
	 * contains the limits from registration
	 * @udata: the command of a program, or NULL at registration
	 *
	 * Called once while the device is registered, and for each query of a program (IBA 11.2.1).
	 * Without it, attrs keeps the values that the driver has set.
	 *
	 * Context: process. Return: 0; a negative errno, which ends the registration or goes to the
	 * program.
	 */
	int (*query_device)(struct ib_device *device, struct ib_device_attr *device_attr,
			    struct ib_udata *udata);
	/**
	 * modify_device - change what a device reports about itself (IBA 11.2.1)
	 * @device: the device
	 * @device_modify_mask: enum ib_device_modify_flags, with no other bits
	 * @device_modify: the values
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*modify_device)(struct ib_device *device, int device_modify_mask,
			     struct ib_device_modify *device_modify);
	/**
	 * get_dev_fw_str - write the firmware's version as text
	 * @device: the device
	 * @str: IB_FW_VERSION_NAME_MAX bytes, an empty string before the call
	 *
	 * Without it, the string stays empty.
	 *
	 * Context: process.
	 */
	void (*get_dev_fw_str)(struct ib_device *device, char *str);

	/**
	 * get_port_immutable - report the constant properties of a port
	 * @device: the device
	 * @port_num: the port
	 * @immutable: filled in; core_cap_flags has one protocol of the node type's transport,
	 * tables have at most 65,535 entries
	 *
	 * Called once for each port while the device is registered; it may call the queries.
	 * Without it, a port has the usual capabilities of its protocol, and tables as long as
	 * query_port reports.
	 *
	 * Context: process. Return: 0; a negative errno, which ends the registration.
	 */
	int (*get_port_immutable)(struct ib_device *device, u32 port_num,
				  struct ib_port_immutable *immutable);
	/**
	 * get_link_layer - report the link layer of a port
	 * @device: the device
	 * @port_num: the port
	 *
	 * Without it, InfiniBand devices have IB_LINK_LAYER_INFINIBAND, and RNICs
	 * IB_LINK_LAYER_ETHERNET.
	 *
	 * Context: any. Return: the link layer.
	 */
	enum rdma_link_layer (*get_link_layer)(struct ib_device *device, u32 port_num);
	/**
	 * query_port - read the present attributes of a port (IBA 11.2.1)
	 * @device: the device
	 * @port_num: the port, which exists
	 * @port_attr: zeroed; filled in. If subnet_prefix stays 0, ib_query_port() takes it from
	 * the first GID
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*query_port)(struct ib_device *device, u32 port_num, struct ib_port_attr *port_attr);
	/**
	 * modify_port - change a port (IBA 11.2.1)
	 * @device: the device
	 * @port_num: the port, which exists
	 * @port_modify_mask: enum ib_port_modify_flags, with no other bits
	 * @port_modify: the values
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*modify_port)(struct ib_device *device, u32 port_num, int port_modify_mask,
			   struct ib_port_modify *port_modify);
	/**
	 * query_gid - read an entry of a port's GID table (IBA 11.2.1)
	 * @device: the device
	 * @port_num: the port, which exists
	 * @index: the entry, from 0; less than gid_tbl_len of the port
	 * @gid: filled in; all zero for an entry that is not in use
	 *
	 * Mandatory for a port whose table has entries.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*query_gid)(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);
	/**
	 * query_pkey - read an entry of a port's P_Key table
	 * @device: the device
	 * @port_num: the port, which exists
	 * @index: the entry, from 0; less than pkey_tbl_len of the port
	 * @pkey: filled in, host order; the low 15 bits are 0 for an entry that is not in use
	 *
	 * Mandatory for a port whose table has entries (IBA 10.9).
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*query_pkey)(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);

	/**
	 * hw_counters - report the names of the hardware counters
	 * @device: the device
	 * @port_num: a port, or 0 for counters of the whole device
	 *
	 * Called once for 0 and for each port while the device is registered. Used only if the
	 * driver has get_hw_stats, too; without both, there are no counters.
	 *
	 * Linux: differs by these two methods instead of alloc_hw_device_stats and
	 * alloc_hw_port_stats: the midlayer keeps one sample for all readers.
	 *
	 * Context: any. Return: the names, which stay while the device is registered; NULL if
	 * nothing is counted there.
	 */
	const struct rdma_hw_counters *(*hw_counters)(struct ib_device *device, u32 port_num);
	/**
	 * get_hw_stats - read the hardware counters
	 * @device: the device
	 * @port_num: as for hw_counters
	 * @values: filled in, one number for each name of hw_counters, in their order
	 *
	 * One call at a time for each port.
	 *
	 * Context: process. Return: 0; a negative errno, which all readers get until the sample
	 * expires.
	 */
	int (*get_hw_stats)(struct ib_device *device, u32 port_num, u64 *values);

	/**
	 * process_mad - let the agents that are built into the device process a MAD
	 * @device: the device
	 * @process_mad_flags: enum ib_process_mad_flags
	 * @port_num: the port at which the MAD arrived, also on a switch
	 * @in_wc: its completion; NULL if it did not arrive from the wire
	 * @in_grh: its GRH, or NULL
	 * @in_mad: the MAD
	 * @out_mad: zeroed; filled in with the reply
	 * @out_mad_size: size of @out_mad in bytes; set to the size of the reply
	 * @out_mad_pkey_index: index of the P_Key with which the MAD arrived; set to that of the
	 * reply
	 *
	 * NULL if the device has no such agents (MGMT-04).
	 *
	 * Context: process. Return: enum ib_mad_result: without IB_MAD_RESULT_SUCCESS, the device
	 * does not handle the MAD; with IB_MAD_RESULT_REPLY, @out_mad is sent; with
	 * IB_MAD_RESULT_CONSUMED, the MAD has been handled and has no reply.
	 */
	int (*process_mad)(struct ib_device *device, int process_mad_flags, u32 port_num,
			   const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			   const struct ib_mad *in_mad, struct ib_mad *out_mad,
			   size_t *out_mad_size, u16 *out_mad_pkey_index);

	/**
	 * alloc_pd - create a protection domain (IBA 11.2.1)
	 * @pd: the domain
	 * @udata: the command of a program, or NULL
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*alloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	/**
	 * dealloc_pd - destroy a protection domain (IBA 11.2.1)
	 * @pd: the domain; no object is left in it
	 * @udata: NULL
	 *
	 * Context: process. Return: 0; a negative errno, and then nothing has changed.
	 */
	int (*dealloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	/**
	 * alloc_xrcd - create an XRC domain
	 * @xrcd: the domain
	 * @udata: the command of a program, or NULL
	 *
	 * IBA annex A14.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*alloc_xrcd)(struct ib_xrcd *xrcd, struct ib_udata *udata);
	/**
	 * dealloc_xrcd - destroy an XRC domain (IBA annex A14)
	 * @xrcd: the domain; no SRQ and no target QP is left in it
	 * @udata: NULL
	 *
	 * Context: process. Return: 0; a negative errno, and then nothing has changed.
	 */
	int (*dealloc_xrcd)(struct ib_xrcd *xrcd, struct ib_udata *udata);

	/**
	 * create_cq - create a completion queue
	 * @cq: the queue, with its handlers; the method sets cqe to at least @attr->cqe
	 * @attr: the attributes, which are checked against the limits of the device
	 * @udata: the command of a program, or NULL
	 *
	 * Completion events call @cq->comp_handler, by rdma::complete() (IBA 11.2).
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata);
	/**
	 * modify_cq - set the moderation of a completion queue's events
	 * @cq: the queue
	 * @cq_count: maximum number of completions for which an event waits; within the device's
	 * cq_caps
	 * @cq_period: maximum number of microseconds that it waits; within the device's cq_caps
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*modify_cq)(struct ib_cq *cq, u16 cq_count, u16 cq_period);
	/**
	 * resize_cq - change the size of a completion queue (IBA 11.2)
	 * @cq: the queue, which may be in use; the method sets its cqe
	 * @cqe: completions that it must hold, 1 to max_cqe of the device
	 * @udata: the command of a program, or NULL
	 *
	 * Context: process. Return: 0; -EINVAL if more completions are in the queue than fit; a
	 * negative errno, which the consumer gets.
	 */
	int (*resize_cq)(struct ib_cq *cq, int cqe, struct ib_udata *udata);
	/**
	 * destroy_cq - destroy a completion queue (IBA 11.2)
	 * @cq: the queue; no QP and no SRQ uses it
	 * @udata: NULL
	 *
	 * Neither handler of the queue runs after this has returned.
	 *
	 * Context: process. Return: 0; a negative errno, and then nothing has changed.
	 */
	int (*destroy_cq)(struct ib_cq *cq, struct ib_udata *udata);

	/**
	 * create_srq - create a shared receive queue
	 * @srq: the queue; the method sets ext.xrc.srq_num of one of type IB_SRQT_XRC
	 * @srq_init_attr: the attributes, which are checked; the method writes the granted sizes
	 * @udata: the command of a program, or NULL
	 *
	 * IBA 11.2.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*create_srq)(struct ib_srq *srq, struct ib_srq_init_attr *srq_init_attr,
			  struct ib_udata *udata);
	/**
	 * modify_srq - resize a shared receive queue, or arm its limit (IBA 11.2)
	 * @srq: the queue
	 * @srq_attr: the values, which are at most those of the device
	 * @srq_attr_mask: enum ib_srq_attr_mask, with no other bits
	 * @udata: the command of a program, or NULL
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*modify_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
			  enum ib_srq_attr_mask srq_attr_mask, struct ib_udata *udata);
	/**
	 * query_srq - read the sizes and the limit of a shared receive queue (IBA 11.2)
	 * @srq: the queue
	 * @srq_attr: filled in
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*query_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr);
	/**
	 * destroy_srq - destroy a shared receive queue (IBA 11.2)
	 * @srq: the queue; no QP uses it
	 * @udata: NULL
	 *
	 * Context: process. Return: 0; a negative errno, and then nothing has changed.
	 */
	int (*destroy_srq)(struct ib_srq *srq, struct ib_udata *udata);

	/**
	 * create_qp - create a queue pair in state RESET
	 * @qp: the QP; the method sets qp_num. That of IB_QPT_SMI is 0 and that of IB_QPT_GSI is 1,
	 * regardless of the hardware's number (MGMT-02)
	 * @qp_init_attr: the attributes, which are checked; the method writes the granted sizes
	 * @udata: the command of a program, or NULL
	 *
	 * IBA 11.2.5.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *qp_init_attr,
			 struct ib_udata *udata);
	/**
	 * modify_qp - change the state or attributes of a queue pair
	 * @qp: the QP
	 * @qp_attr: the values; each is in its range
	 * @qp_attr_mask: enum ib_qp_attr_mask, as the transition table allows from the state that
	 * the midlayer knows (IBA 11.2.5.2)
	 * @udata: the command of a program, or NULL
	 *
	 * The driver refuses changes that are not permitted in the QP's state as the driver knows
	 * it.
	 *
	 * Context: process. Return: 0; -EINVAL if the QP's real state does not allow the change; a
	 * negative errno, which the consumer gets.
	 */
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
			 struct ib_udata *udata);
	/**
	 * query_qp - read the attributes of a queue pair (IBA 11.2.5)
	 * @qp: the QP
	 * @qp_attr: filled in: at least the attributes in @qp_attr_mask
	 * @qp_attr_mask: enum ib_qp_attr_mask
	 * @qp_init_attr: filled in with the attributes with which the QP was created
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*query_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
			struct ib_qp_init_attr *qp_init_attr);
	/**
	 * destroy_qp - destroy a queue pair, and flush its requests (IBA 11.2.5)
	 * @qp: the QP; it is in no multicast group and has no handles
	 * @udata: NULL
	 *
	 * Requests that have not completed complete with a flush error, in order (MGMT-09).
	 * Completions that stay in CQs must not refer to the QP, because its number and memory are
	 * reused: rdma::remaining_qp() returns their ib_wc.qp. A program's QP leaves nothing in
	 * CQs.
	 *
	 * Context: process. Return: number of completions of the QP that it has left in CQs, 0 for
	 * a program's; a negative errno, and then nothing has changed.
	 */
	int (*destroy_qp)(struct ib_qp *qp, struct ib_udata *udata);
	/**
	 * drain_sq - wait until all sends of a QP have completed
	 * @qp: the QP
	 *
	 * NULL if the midlayer shall post a marker request after all others of a QP in state ERR,
	 * and wait for its completion (IBA 10.3.1.5).
	 *
	 * Context: process.
	 */
	void (*drain_sq)(struct ib_qp *qp);
	/**
	 * drain_rq - wait until all receives of a QP have completed (IBA 10.3.1.5)
	 * @qp: the QP
	 *
	 * NULL if the midlayer shall post a marker request, as for drain_sq.
	 *
	 * Context: process.
	 */
	void (*drain_rq)(struct ib_qp *qp);
	/**
	 * attach_mcast - let a QP receive from a multicast group
	 * @qp: a QP of type IB_QPT_UD
	 * @gid: the group's GID
	 * @lid: the LID of the first attachment, host order
	 * @owner: whether the kernel or a program uses the group: a device may keep a part of its
	 * table for the kernel
	 *
	 * Called once for each GID of a QP, regardless of the number of attachments and of their
	 * LIDs (IBA 11.3). One call at a time for each QP.
	 *
	 * Linux: differs by @owner.
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*attach_mcast)(struct ib_qp *qp, const union ib_gid *gid, u16 lid,
			    enum ib_mcast_owner owner);
	/**
	 * detach_mcast - undo attach_mcast (IBA 11.3)
	 * @qp: the QP
	 * @gid: the group's GID
	 * @lid: the LID of the last attachment, host order
	 *
	 * Context: process. Return: 0; a negative errno, and then nothing has changed.
	 */
	int (*detach_mcast)(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

	/**
	 * get_dma_mr - create a region of all DMA addresses (IBA 10.6)
	 * @mr: the region; the method sets lkey and rkey
	 * @mr_access_flags: enum ib_access_flags, as ib_check_mr_access() allows
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*get_dma_mr)(struct ib_mr *mr, int mr_access_flags);
	/**
	 * reg_user_mr - create a region of the calling process's memory (IBA 10.6)
	 * @mr: the region, with iova and length; the method sets lkey and rkey
	 * @start: address in the process
	 * @length: bytes
	 * @virt_addr: the iova of @start, at the same offset in its page
	 * @mr_access_flags: enum ib_access_flags, as ib_check_mr_access() allows
	 * @udata: the command of a program, or NULL
	 *
	 * Context: process, the program's. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*reg_user_mr)(struct ib_mr *mr, u64 start, u64 length, u64 virt_addr,
			   int mr_access_flags, struct ib_udata *udata);
	/**
	 * alloc_mr - create a region for fast registration (IBA 10.6)
	 * @mr: the region; the method sets lkey and rkey
	 * @mr_type: IB_MR_TYPE_MEM_REG or IB_MR_TYPE_SG_GAPS
	 * @max_num_sg: pages or segments that it must hold, 1 to max_fast_reg_page_list_len of the
	 * device
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*alloc_mr)(struct ib_mr *mr, enum ib_mr_type mr_type, u32 max_num_sg);
	/**
	 * rereg_user_mr - change a region of a program's memory (IBA 10.6)
	 * @mr: the region; no window is bound to it
	 * @flags: enum ib_mr_rereg_flags, at least one
	 * @start: as for ib_rereg_user_mr()
	 * @length: as for ib_rereg_user_mr()
	 * @virt_addr: as for ib_rereg_user_mr()
	 * @mr_access_flags: as for ib_rereg_user_mr()
	 * @pd: as for ib_rereg_user_mr(); a domain of the same device
	 * @udata: the command of a program
	 *
	 * The midlayer has checked the arguments that @flags selects, and changes pd, iova and
	 * length of @mr after the method has succeeded. The method changes the keys.
	 *
	 * Context: process, the program's. Return: 0; a negative errno: the region is unchanged, or
	 * its keys no longer give access to memory.
	 */
	int (*rereg_user_mr)(struct ib_mr *mr, int flags, u64 start, u64 length, u64 virt_addr,
			     int mr_access_flags, struct ib_pd *pd, struct ib_udata *udata);
	/**
	 * dereg_mr - destroy a memory region (IBA 10.6)
	 * @mr: the region
	 * @udata: NULL
	 *
	 * Context: process. Return: 0; -EBUSY if windows are bound to it; a negative errno. After
	 * an error nothing has changed.
	 */
	int (*dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);
	/**
	 * alloc_mw - create a memory window (IBA 10.6)
	 * @mw: the window, with its type; the method sets rkey
	 * @udata: the command of a program, or NULL
	 *
	 * Context: process. Return: 0; a negative errno, which the consumer gets.
	 */
	int (*alloc_mw)(struct ib_mw *mw, struct ib_udata *udata);
	/**
	 * dealloc_mw - destroy a memory window (IBA 10.6)
	 * @mw: the window
	 *
	 * Context: process. Return: 0; a negative errno, and then nothing has changed.
	 */
	int (*dealloc_mw)(struct ib_mw *mw);

	/**
	 * alloc_ucontext - let a program use the device
	 * @context: the program's context
	 * @udata: the command of the program
	 *
	 * If the driver does not have this method, only the kernel can use the device.
	 *
	 * Context: process, the program's. Return: 0; a negative errno, which the program gets.
	 */
	int (*alloc_ucontext)(struct ib_ucontext *context, struct ib_udata *udata);
	/**
	 * dealloc_ucontext - end a program's use of the device
	 * @context: the context; nothing of the device is mapped through it
	 *
	 * Context: process; the program may have exited.
	 */
	void (*dealloc_ucontext)(struct ib_ucontext *context);
	/**
	 * mmap - report which pages of the device a program may map
	 * @context: the program's context
	 * @page_offset: the requested pages, as driver and library have agreed; in pages
	 * @length: bytes
	 * @mapping: zeroed; filled in. The caller creates the mapping
	 *
	 * Without it, ib_mmap_ucontext() returns -EINVAL.
	 *
	 * Linux: differs by the description of the pages instead of a struct vm_area_struct.
	 *
	 * Context: process. Return: 0; -EINVAL if nothing can be mapped at that offset or in that
	 * length.
	 */
	int (*mmap)(struct ib_ucontext *context, u64 page_offset, size_t length,
		    struct ib_user_mapping *mapping);
	unsigned long driver_id;
	unsigned long uverbs_abi_ver;

	size_t size_ib_ah;
	size_t size_ib_cq;
	size_t size_ib_mr;
	size_t size_ib_mw;
	size_t size_ib_pd;
	size_t size_ib_qp;
	size_t size_ib_srq;
	size_t size_ib_ucontext;
	size_t size_ib_xrcd;
};
