/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the objects of the verbs. A driver's object begins with one of these structures. The
 * midlayer allocates it, zeroed, with the size in ib_device_ops, and frees it. All code may read
 * the members; only the midlayer writes them, except where a comment says that the driver's create
 * method fills them in.
 */
#pragma once
#include <rdma/verbs/qp.h>
#include <rdma/verbs/work.h>

struct ib_cq_poller;
struct ib_qp_core;

/**
 * struct ib_resource - the midlayer's record of an object
 * @links: links in the device's list of live objects
 * @owner: name of the module that created the object, for reports (LOCK-10)
 * @user: whether the object belongs to a program
 */
struct ib_resource {
	struct ib_list_head links;
	const char *owner;
	bool user;
};

enum ib_pd_flags {
	/*
	 * Creates a region of all memory with remote access; its key is unsafe_global_rkey. For
	 * trusted peers only.
	 */
	IB_PD_UNSAFE_GLOBAL_RKEY = 1 << 0,
};

/**
 * struct ib_pd - protection domain
 * @device: the device
 * @local_dma_lkey: key for any DMA address, for local access
 * @unsafe_global_rkey: see IB_PD_UNSAFE_GLOBAL_RKEY
 * @flags: enum ib_pd_flags
 * @usecnt: number of objects created in it
 * @internal_mr: the region of the two keys, if the device has no key of its own; else NULL
 * @res: for the midlayer
 */
struct ib_pd {
	struct ib_device *device;
	u32 local_dma_lkey;
	u32 unsafe_global_rkey;
	u32 flags;
	int usecnt;
	struct ib_mr *internal_mr;
	struct ib_resource res;
};

/**
 * struct ib_xrcd - XRC domain (IBA annex A14)
 * @device: the device
 * @usecnt: number of SRQs and target QPs in it
 * @target_qps: for the midlayer
 * @res: for the midlayer
 */
struct ib_xrcd {
	struct ib_device *device;
	int usecnt;
	struct ib_list_head target_qps;
	struct ib_resource res;
};

/**
 * struct ib_ah - address handle (IBA 11.2.2)
 * @device: the device
 * @pd: the protection domain
 * @type: enum rdma_ah_attr_type
 * @res: for the midlayer
 */
struct ib_ah {
	struct ib_device *device;
	struct ib_pd *pd;
	enum rdma_ah_attr_type type;
	struct ib_resource res;
};

/**
 * ib_comp_handler - called on a completion event of a CQ (IBA 11.5)
 * @cq: the CQ
 * @cq_context: the argument with which the CQ was created
 *
 * Called once for each event, never two at a time for one CQ (LOCK-06), and never from inside a
 * method of the driver that the consumer has called (LOCK-05).
 *
 * Context: any; it must not sleep (LOCK-07).
 */
typedef void (*ib_comp_handler)(struct ib_cq *cq, void *cq_context);

enum ib_cq_notify_flags {
	IB_CQ_SOLICITED = 1 << 0,
	IB_CQ_NEXT_COMP = 1 << 1,
	IB_CQ_SOLICITED_MASK = IB_CQ_SOLICITED | IB_CQ_NEXT_COMP,
	IB_CQ_REPORT_MISSED_EVENTS = 1 << 2,
};

/* The context in which the midlayer polls a CQ from ib_alloc_cq() and runs done functions. */
enum ib_poll_context {
	IB_POLL_SOFTIRQ,
	IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
	/* The consumer polls with ib_process_cq_direct(). */
	IB_POLL_DIRECT,
};

/**
 * struct ib_cq_init_attr - attributes of a new CQ (IBA 11.2)
 * @cqe: completions that it must hold, 1 to max_cqe of the device
 * @comp_vector: completion vector, less than num_comp_vectors of the device
 * @flags: must be 0
 */
struct ib_cq_init_attr {
	unsigned int cqe;
	u32 comp_vector;
	u32 flags;
};

/**
 * struct ib_cq - completion queue
 * @device: the device
 * @comp_handler: the driver calls it on a completion event: once for each event, in any context,
 * never two at a time for one CQ (LOCK-06), never from inside post_send, post_recv, poll_cq or
 * req_notify_cq (LOCK-05)
 * @cq_context: argument of both handlers
 * @event_handler: called with IB_EVENT_CQ_ERR, in any context; may be NULL
 * @cqe: completions that it holds; the driver's create_cq and resize_cq fill it in
 * @usecnt: number of QPs and SRQs that complete to it
 * @comp_vector: the vector of its events
 * @poll_ctx: IB_POLL_DIRECT for a CQ from ib_create_cq()
 * @poller: for the midlayer; NULL for a CQ from ib_create_cq()
 * @res: for the midlayer
 * @checked_handler: debug builds: the consumer's handler, which @comp_handler calls with checks
 * @in_handler: debug builds: the context that runs the handler now
 */
struct ib_cq {
	struct ib_device *device;
	ib_comp_handler comp_handler;
	void *cq_context;
	void (*event_handler)(struct ib_event *event, void *cq_context);
	int cqe;
	int usecnt;
	unsigned int comp_vector;
	enum ib_poll_context poll_ctx;
	struct ib_cq_poller *poller;
	struct ib_resource res;
#ifdef CONFIG_WEFT_DEBUG
	ib_comp_handler checked_handler;
	const void *in_handler;
#endif
};

enum ib_srq_type {
	IB_SRQT_BASIC,
	IB_SRQT_XRC,
	IB_SRQT_TM,
};

enum ib_srq_attr_mask {
	IB_SRQ_MAX_WR = 1 << 0,
	IB_SRQ_LIMIT = 1 << 1,
};

/**
 * struct ib_srq_attr - sizes and limit of an SRQ
 * @max_wr: receive requests that it holds, 1 to max_srq_wr of the device
 * @max_sge: segments of each, at most max_srq_sge of the device
 * @srq_limit: IB_EVENT_SRQ_LIMIT_REACHED is reported once when fewer requests than this are left; 0
 * to disarm
 */
struct ib_srq_attr {
	u32 max_wr;
	u32 max_sge;
	u32 srq_limit;
};

/**
 * struct ib_srq_init_attr - attributes of a new SRQ (IBA 11.2)
 * @event_handler: called with its affiliated events, in any context; may be NULL
 * @srq_context: argument of the handler
 * @attr: the sizes; the granted ones are written back
 * @srq_type: IB_SRQT_BASIC or IB_SRQT_XRC
 * @ext.cq: XRC only: the CQ to which receives complete
 * @ext.xrc.xrcd: XRC only: the domain
 */
struct ib_srq_init_attr {
	void (*event_handler)(struct ib_event *event, void *srq_context);
	void *srq_context;
	struct ib_srq_attr attr;
	enum ib_srq_type srq_type;
	struct {
		struct ib_cq *cq;
		struct {
			struct ib_xrcd *xrcd;
		} xrc;
	} ext;
};

/**
 * struct ib_srq - shared receive queue
 * @device: the device
 * @pd: the protection domain
 * @event_handler: called with its affiliated events, in any context; may be NULL
 * @srq_context: argument of the handler
 * @srq_type: enum ib_srq_type
 * @usecnt: number of QPs that receive from it
 * @ext.cq: XRC only: the CQ to which receives complete
 * @ext.xrc.xrcd: XRC only: the domain
 * @ext.xrc.srq_num: XRC only: the number by which peers address it (IBA annex A14); the driver's
 * create_srq fills it in
 * @res: for the midlayer
 */
struct ib_srq {
	struct ib_device *device;
	struct ib_pd *pd;
	void (*event_handler)(struct ib_event *event, void *srq_context);
	void *srq_context;
	enum ib_srq_type srq_type;
	int usecnt;
	struct {
		struct ib_cq *cq;
		struct {
			struct ib_xrcd *xrcd;
			u32 srq_num;
		} xrc;
	} ext;
	struct ib_resource res;
};

/**
 * struct ib_qp - queue pair
 * @device: the device
 * @pd: the protection domain; NULL for XRC_TGT
 * @send_cq: the CQ of sends; NULL for XRC_TGT
 * @recv_cq: the CQ of receives; NULL for XRC_INI and XRC_TGT
 * @srq: the SRQ from which it takes receives, or NULL
 * @xrcd: XRC_TGT only: the domain
 * @real_qp: the QP itself; of a handle from ib_open_qp() the QP that was opened
 * @event_handler: called with its affiliated events, in any context; may be NULL
 * @qp_context: argument of the handler
 * @qp_num: the number by which peers address it, 24 bits; the driver's create_qp fills it in. 0 for
 * SMI and 1 for GSI, regardless of the hardware's number (MGMT-02)
 * @port: the port to which it was last assigned, 0 if none
 * @qp_type: enum ib_qp_type
 * @state: the state that ib_modify_qp() set last; the hardware may have moved it to SQE or ERR
 * since
 * @sq_sig_type: as it was created
 * @usecnt: number of multicast groups to which it is attached, and of handles opened on it
 * @core: for the midlayer
 * @links: for the midlayer
 * @res: for the midlayer
 */
struct ib_qp {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_srq *srq;
	struct ib_xrcd *xrcd;
	struct ib_qp *real_qp;
	void (*event_handler)(struct ib_event *event, void *qp_context);
	void *qp_context;
	u32 qp_num;
	u32 port;
	enum ib_qp_type qp_type;
	enum ib_qp_state state;
	enum ib_sig_type sq_sig_type;
	int usecnt;
	struct ib_qp_core *core;
	struct ib_list_head links;
	struct ib_resource res;
};

enum ib_mr_type {
	IB_MR_TYPE_MEM_REG,
	IB_MR_TYPE_SG_GAPS,
	IB_MR_TYPE_DM,
	IB_MR_TYPE_USER,
	IB_MR_TYPE_DMA,
	IB_MR_TYPE_INTEGRITY,
};

/**
 * struct ib_mr - memory region (IBA 10.6)
 * @device: the device
 * @pd: the protection domain
 * @lkey: local key; the driver fills it in
 * @rkey: remote key; the driver fills it in
 * @iova: address of its first byte in work requests
 * @length: bytes
 * @page_size: fast registration: bytes of a page, from the last ib_map_mr_sg()
 * @type: enum ib_mr_type
 * @need_inval: for consumers that keep pools of regions; the midlayer does not use it
 * @usecnt: number of memory windows known to be bound to it
 * @res: for the midlayer
 */
struct ib_mr {
	struct ib_device *device;
	struct ib_pd *pd;
	u32 lkey;
	u32 rkey;
	u64 iova;
	u64 length;
	unsigned int page_size;
	enum ib_mr_type type;
	bool need_inval;
	int usecnt;
	struct ib_resource res;
};

enum ib_mw_type {
	IB_MW_TYPE_1 = 1,
	IB_MW_TYPE_2 = 2,
};

/**
 * struct ib_mw - memory window (IBA 10.6)
 * @device: the device
 * @pd: the protection domain
 * @rkey: remote key; the driver's alloc_mw fills it in
 * @type: enum ib_mw_type
 * @res: for the midlayer
 */
struct ib_mw {
	struct ib_device *device;
	struct ib_pd *pd;
	u32 rkey;
	enum ib_mw_type type;
	struct ib_resource res;
};

RDMA_FLAGS(ib_cq_notify_flags);
RDMA_FLAGS(ib_srq_attr_mask);
