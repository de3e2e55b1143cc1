/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The objects of the verbs. A driver's own object begins with one of these; the midlayer allocates
 * it zeroed in the size that the driver states in ib_device_ops and frees it. Members are read by
 * all and written by the midlayer, except where a comment says that the driver's create method
 * fills them in.
 */
#pragma once
#include <rdma/verbs/qp.h>
#include <rdma/verbs/work.h>

struct ib_cq_poller;
struct ib_qp_core;

/*
 * Where an object stands in its device's list of live objects, who made it (LOCK-10), and whether
 * for a program.
 */
struct ib_resource {
	struct ib_links links;
	const char *owner;
	bool user;
};

enum ib_pd_flags {
	/*
	 * Make a region of all memory with remote access; its key is unsafe_global_rkey. For
	 * trusted peers only.
	 */
	IB_PD_UNSAFE_GLOBAL_RKEY = 1 << 0,
};

/**
 * struct ib_pd - protection domain
 * @device: whose
 * @local_dma_lkey: key for any DMA address, for local access
 * @unsafe_global_rkey: see IB_PD_UNSAFE_GLOBAL_RKEY
 * @flags: enum ib_pd_flags
 * @usecnt: objects made in it
 * @internal_mr: the region behind the two keys, where the device has no key of its own
 * @res: the midlayer's
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
 * struct ib_xrcd - XRC domain
 * @device: whose
 * @usecnt: SRQs and target QPs in it
 * @target_qps: the midlayer's
 * @res: the midlayer's
 */
struct ib_xrcd {
	struct ib_device *device;
	int usecnt;
	struct ib_links target_qps;
	struct ib_resource res;
};

/**
 * struct ib_ah - address handle
 * @device: whose
 * @pd: the protection domain
 * @type: enum rdma_ah_attr_type
 * @res: the midlayer's
 */
struct ib_ah {
	struct ib_device *device;
	struct ib_pd *pd;
	enum rdma_ah_attr_type type;
	struct ib_resource res;
};

typedef void (*ib_comp_handler)(struct ib_cq *cq, void *cq_context);

enum ib_cq_notify_flags {
	IB_CQ_SOLICITED = 1 << 0,
	IB_CQ_NEXT_COMP = 1 << 1,
	IB_CQ_SOLICITED_MASK = IB_CQ_SOLICITED | IB_CQ_NEXT_COMP,
	IB_CQ_REPORT_MISSED_EVENTS = 1 << 2,
};

/* Who polls a CQ from ib_alloc_cq(). */
enum ib_poll_context {
	IB_POLL_SOFTIRQ,
	IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
	/* Nobody but ib_process_cq_direct(). */
	IB_POLL_DIRECT,
};

/**
 * struct ib_cq_init_attr - what a CQ is created with
 * @cqe: completions it must hold
 * @comp_vector: less than the device's num_comp_vectors
 * @flags: none defined for kernel consumers; must be 0
 */
struct ib_cq_init_attr {
	unsigned int cqe;
	u32 comp_vector;
	u32 flags;
};

/**
 * struct ib_cq - completion queue
 * @device: whose
 * @comp_handler: what the driver calls on a completion event, once per event, in any context, never
 * two at a time on
 *	one CQ (LOCK-06), never from inside post_send, post_recv, poll_cq or req_notify_cq (LOCK-05)
 * @event_handler: gets IB_EVENT_CQ_ERR; may be NULL
 * @cq_context: handed to both
 * @cqe: completions it holds; the driver's create and resize fill it in
 * @usecnt: QPs and SRQs that complete to it
 * @comp_vector: the vector its events use
 * @poll_ctx: IB_POLL_DIRECT for a CQ from ib_create_cq()
 * @poller: the midlayer's, NULL for a CQ from ib_create_cq()
 * @res: the midlayer's
 * @checked_handler: debug builds: the consumer's handler, @comp_handler being the checks around it
 * @in_handler: debug builds: where the handler runs now
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
 * struct ib_srq_attr - sizes of an SRQ
 * @max_wr: receive requests it holds
 * @max_sge: segments of each
 * @srq_limit: IB_EVENT_SRQ_LIMIT_REACHED comes once when fewer than this many are left; 0 for never
 */
struct ib_srq_attr {
	u32 max_wr;
	u32 max_sge;
	u32 srq_limit;
};

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
 * @device: whose
 * @pd: the protection domain
 * @event_handler: gets its affiliated events; may be NULL
 * @srq_context: handed to it
 * @srq_type: enum ib_srq_type
 * @usecnt: QPs that receive from it
 * @ext: XRC only: the CQ, the domain, and the number by which peers name it (the driver's create
 * fills that in)
 * @res: the midlayer's
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
 * @device: whose
 * @pd: the protection domain; NULL for XRC_TGT
 * @send_cq: completions of sends
 * @recv_cq: completions of receives
 * @srq: where receives come from, if shared
 * @xrcd: XRC_TGT: the domain
 * @real_qp: the QP itself; another one for a handle from ib_open_qp()
 * @event_handler: gets its affiliated events; may be NULL
 * @qp_context: handed to it
 * @qp_num: the number by which peers name it; the driver's create fills it in. 0 and 1 for SMI and
 * GSI, whatever the
 *	hardware's own number is (MGMT-02).
 * @port: the port it was last tied to, 0 if none
 * @qp_type: enum ib_qp_type
 * @state: the state that ib_modify_qp() last put it into; the hardware may have gone on to SQE or ERR
 * @sq_sig_type: as created
 * @usecnt: multicast groups it is attached to, and handles opened on it
 * @core: the midlayer's
 * @links: the midlayer's
 * @res: the midlayer's
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
	struct ib_links links;
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
 * struct ib_mr - memory region
 * @device: whose
 * @pd: the protection domain
 * @lkey: local key; the driver's create fills it in
 * @rkey: remote key; the same
 * @iova: address of its first byte, in its own terms
 * @length: bytes
 * @page_size: of a fast-registration region, by the last ib_map_mr_sg()
 * @type: enum ib_mr_type
 * @need_inval: for consumers that keep pools of regions
 * @usecnt: memory windows known to be bound to it
 * @res: the midlayer's
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
 * struct ib_mw - memory window
 * @device: whose
 * @pd: the protection domain
 * @rkey: remote key; the driver's create fills it in
 * @type: enum ib_mw_type
 * @res: the midlayer's
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
