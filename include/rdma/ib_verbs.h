/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The verbs: what consumers call. Valid in C and C++. Names, values and meaning are Linux's;
 * rdma/types.h says what stands for kernel types. The rules that hold beyond a single call are
 * numbered in Documentation/rules.rst.
 *
 * A function that returns a pointer returns an error pointer on failure, never NULL. "-EOPNOTSUPP"
 * is what every function returns whose method the driver does not have, and is not repeated. In
 * every function that creates, objects that belong together must be of one device, and what is
 * created in must be there (neither NULL nor an error pointer), else -EINVAL. The calls of the data
 * path look at neither.
 */
#pragma once
#include <kern/errno.h>
#include <rdma/types.h>
#include <rdma/verbs/address.h>
#include <rdma/verbs/attributes.h>
#include <rdma/verbs/device.h>
#include <rdma/verbs/event.h>
#include <rdma/verbs/link.h>
#include <rdma/verbs/objects.h>
#include <rdma/verbs/qp.h>
#include <rdma/verbs/user.h>
#include <rdma/verbs/work.h>

/* Ports. */

static inline bool rdma_cap_ib_switch(const struct ib_device *device)
{
	return device->is_switch;
}

static inline u32 rdma_start_port(const struct ib_device *device)
{
	return rdma_cap_ib_switch(device) ? 0 : 1;
}

static inline u32 rdma_end_port(const struct ib_device *device)
{
	return rdma_cap_ib_switch(device) ? 0 : device->phys_port_cnt;
}

static inline bool rdma_is_port_valid(const struct ib_device *device, u32 port)
{
	return port >= rdma_start_port(device) && port <= rdma_end_port(device);
}

#define rdma_for_each_port(device, iter)                                                           \
	for ((iter) = rdma_start_port(device); (iter) <= rdma_end_port(device); (iter)++)

/* What a port can do; for valid ports of registered devices. */
static inline bool rdma_port_has(const struct ib_device *device, u32 port_num, u32 core_cap_flags)
{
	return (device->port_immutable[port_num].core_cap_flags & core_cap_flags) != 0;
}

static inline bool rdma_protocol_ib(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_PROT_IB);
}

static inline bool rdma_cap_ib_mad(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_MAD);
}

static inline bool rdma_cap_ib_smi(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_SMI);
}

static inline bool rdma_cap_ib_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_CM);
}

static inline bool rdma_cap_ib_sa(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_SA);
}

static inline bool rdma_cap_ib_mcast(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_ib_sa(device, port_num);
}

static inline bool rdma_is_grh_required(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_PORT_IB_GRH_REQUIRED);
}

static inline size_t rdma_max_mad_size(const struct ib_device *device, u32 port_num)
{
	return device->port_immutable[port_num].max_mad_size;
}

/* Keys of fast-registration regions: the consumer owns the low eight bits (IBA 10.6.3.8). */
static inline u32 ib_inc_rkey(u32 rkey)
{
	return (rkey & 0xffffff00u) | ((rkey + 1) & 0xffu);
}

static inline void ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
	mr->lkey = (mr->lkey & 0xffffff00u) | newkey;
	mr->rkey = (mr->rkey & 0xffffff00u) | newkey;
}

static inline bool ib_access_writable(int access_flags)
{
	return (access_flags & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)) != 0;
}

static inline bool ib_srq_has_cq(enum ib_srq_type srq_type)
{
	return srq_type == IB_SRQT_XRC || srq_type == IB_SRQT_TM;
}

RDMA_C_BEGIN

/* The device and its ports. */

/**
 * ib_query_port - a port as it is now
 * @device: the device
 * @port_num: the port
 * @port_attr: filled in
 *
 * Asks the device; ib_cache.h has what is needed often. Context: process.
 * Return: 0; -EINVAL for a bad port; the driver's errors.
 */
RDMA_MUST_CHECK int ib_query_port(struct ib_device *device, u32 port_num,
				  struct ib_port_attr *port_attr);

/**
 * ib_query_pkey - an entry of a port's P_Key table, from the device
 * @device: the device
 * @port_num: the port
 * @index: the entry
 * @pkey: filled in, host order
 *
 * Context: process. Return: 0; -EINVAL for a bad port or index; the driver's errors.
 */
RDMA_MUST_CHECK int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);

/**
 * ib_find_gid - the port and index of a GID, from the device
 * @device: the device
 * @gid: what to look for
 * @port_num: filled in
 * @index: filled in; may be NULL
 *
 * Context: process. Return: 0; -ENOENT; the driver's errors.
 */
RDMA_MUST_CHECK int ib_find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num,
				u16 *index);

/**
 * ib_find_pkey - the index of a P_Key, from the device
 * @device: the device
 * @port_num: the port
 * @pkey: what to look for, the membership bit aside
 * @index: filled in
 *
 * Context: process. Return: 0; -EINVAL for a bad port; -ENOENT; the driver's errors.
 */
RDMA_MUST_CHECK int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index);

/**
 * ib_modify_device - change what a device says of itself
 * @device: the device
 * @device_modify_mask: enum ib_device_modify_flags
 * @device_modify: the values
 *
 * Context: process. Return: 0; -EINVAL for an unknown flag; the driver's errors.
 */
RDMA_MUST_CHECK int ib_modify_device(struct ib_device *device, int device_modify_mask,
				     struct ib_device_modify *device_modify);

/**
 * ib_modify_port - change a port
 * @device: the device
 * @port_num: the port
 * @port_modify_mask: enum ib_port_modify_flags
 * @port_modify: the values
 *
 * Context: process. Return: 0; -EINVAL for a bad port or an unknown flag; the driver's errors.
 */
RDMA_MUST_CHECK int ib_modify_port(struct ib_device *device, u32 port_num, int port_modify_mask,
				   struct ib_port_modify *port_modify);

/**
 * ib_get_device_fw_str - a device's firmware version
 * @device: the device
 * @str: IB_FW_VERSION_NAME_MAX bytes; empty if the driver does not say
 *
 * Context: process.
 */
void ib_get_device_fw_str(struct ib_device *device, char *str);

/**
 * rdma_port_get_link_layer - what a port is connected to
 * @device: the device
 * @port_num: the port
 *
 * Context: any. Return: IB_LINK_LAYER_INFINIBAND unless the driver says otherwise.
 */
enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device, u32 port_num);

/* Protection domains and XRC domains. */

/*
 * Each function with two underscores is the one behind two: for the kernel, with udata NULL, and,
 * in the name that ends in _user, for a program. Context of the latter: process, the program's.
 */

RDMA_MUST_CHECK struct ib_pd *__ib_alloc_pd(struct ib_device *device, unsigned int flags,
					    struct ib_udata *udata, const char *caller);

/**
 * ib_alloc_pd - make a protection domain
 * @device: the device
 * @flags: enum ib_pd_flags
 *
 * Context: process. Return: the domain; -EINVAL for an unknown flag; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_pd *ib_alloc_pd(struct ib_device *device,
							unsigned int flags)
{
	return __ib_alloc_pd(device, flags, (struct ib_udata *)0, RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_pd *ib_alloc_pd_user(struct ib_device *device,
							     struct ib_udata *udata)
{
	return __ib_alloc_pd(device, 0, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_pd - undo ib_alloc_pd()
 * @pd: nothing is left in it; otherwise that is reported and the domain stays
 *
 * Context: process.
 */
void ib_dealloc_pd(struct ib_pd *pd);

RDMA_MUST_CHECK struct ib_xrcd *__ib_alloc_xrcd(struct ib_device *device, struct ib_udata *udata,
						const char *caller);

/**
 * ib_alloc_xrcd - make an XRC domain
 * @device: the device
 *
 * Context: process. Return: the domain; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_xrcd *ib_alloc_xrcd(struct ib_device *device)
{
	return __ib_alloc_xrcd(device, (struct ib_udata *)0, RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_xrcd *ib_alloc_xrcd_user(struct ib_device *device,
								 struct ib_udata *udata)
{
	return __ib_alloc_xrcd(device, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_xrcd - undo ib_alloc_xrcd()
 * @xrcd: the domain
 *
 * Context: process. Return: 0; -EBUSY if something is left in it; the driver's errors.
 */
RDMA_MUST_CHECK int ib_dealloc_xrcd(struct ib_xrcd *xrcd);

/* Address handles. */

RDMA_MUST_CHECK struct ib_ah *__rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
					       u32 flags, struct ib_udata *udata,
					       const char *caller);

/**
 * rdma_create_ah - make an address handle
 * @pd: the protection domain
 * @ah_attr: the address; may be on the stack
 * @flags: enum rdma_create_ah_flags
 *
 * Context: any without RDMA_CREATE_AH_SLEEPABLE, process with it.
 * Return: the handle; -EINVAL for a bad port, service level, GID index, a unicast LID of 0 or a
 * missing GRH where the port or the destination needs one; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_ah *rdma_create_ah(struct ib_pd *pd,
							   struct rdma_ah_attr *ah_attr, u32 flags)
{
	return __rdma_create_ah(pd, ah_attr, flags, (struct ib_udata *)0, RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_ah *
ib_create_ah_user(struct ib_pd *pd, struct rdma_ah_attr *ah_attr, struct ib_udata *udata)
{
	return __rdma_create_ah(pd, ah_attr, RDMA_CREATE_AH_SLEEPABLE, udata, RDMA_CALLER);
}

/**
 * ib_init_ah_attr_from_wc - the address to answer a datagram at
 * @device: the device
 * @port_num: the port it came in by
 * @wc: its completion
 * @grh: its GRH, the first 40 bytes of the buffer; looked at if @wc says IB_WC_GRH
 * @ah_attr: filled in
 *
 * Context: any.
 * Return: 0, without a static rate; -EINVAL for a bad port; -EPROTO for a GRH that is none, or a
 * source that is a group; -ENOENT if the GRH's destination is a unicast GID that the port does not
 * have.
 */
RDMA_MUST_CHECK int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num,
					    const struct ib_wc *wc, const struct ib_grh *grh,
					    struct rdma_ah_attr *ah_attr);

RDMA_MUST_CHECK struct ib_ah *__ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
						     const struct ib_grh *grh, u32 port_num,
						     const char *caller);

/**
 * ib_create_ah_from_wc - an address handle to answer a datagram with
 * @pd: the protection domain
 * @wc: its completion
 * @grh: its GRH, as above
 * @port_num: the port it came in by
 *
 * Context: any. Return: the handle; the errors of ib_init_ah_attr_from_wc() and rdma_create_ah().
 */
RDMA_MUST_CHECK static inline struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd,
								 const struct ib_wc *wc,
								 const struct ib_grh *grh,
								 u32 port_num)
{
	return __ib_create_ah_from_wc(pd, wc, grh, port_num, RDMA_CALLER);
}

/**
 * rdma_modify_ah - change the address of a handle
 * @ah: the handle; requests posted with it and not completed use the old or the new address
 * @ah_attr: the address
 *
 * Context: any. Return: 0; -EINVAL as for rdma_create_ah(); the driver's errors.
 */
RDMA_MUST_CHECK int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);

/**
 * rdma_query_ah - the address of a handle
 * @ah: the handle
 * @ah_attr: filled in
 *
 * Context: any. Return: 0 or the driver's errors.
 */
RDMA_MUST_CHECK int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);

/**
 * rdma_destroy_ah - undo rdma_create_ah()
 * @ah: no request with it is outstanding
 * @flags: enum rdma_destroy_ah_flags
 *
 * Context: any without RDMA_DESTROY_AH_SLEEPABLE, process with it.
 */
void rdma_destroy_ah(struct ib_ah *ah, u32 flags);

/* Completion queues. */

RDMA_MUST_CHECK struct ib_cq *
__ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
	       void (*event_handler)(struct ib_event *event, void *cq_context), void *cq_context,
	       const struct ib_cq_init_attr *cq_attr, struct ib_udata *udata, const char *caller);

/**
 * ib_create_cq - make a completion queue that the consumer polls
 * @device: the device
 * @comp_handler: called on a completion event, in any context; it must not sleep (LOCK-07). May be
 * NULL.
 * @event_handler: called on IB_EVENT_CQ_ERR, in any context; may be NULL
 * @cq_context: handed to both
 * @cq_attr: size, vector
 *
 * Context: process.
 * Return: the queue; -EINVAL for no or too many entries, a bad vector or flags; -ENOMEM; the
 * driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_cq *
ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
	     void (*event_handler)(struct ib_event *event, void *cq_context), void *cq_context,
	     const struct ib_cq_init_attr *cq_attr)
{
	return __ib_create_cq(device, comp_handler, event_handler, cq_context, cq_attr,
			      (struct ib_udata *)0, RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_cq *
ib_create_cq_user(struct ib_device *device, ib_comp_handler comp_handler,
		  void (*event_handler)(struct ib_event *event, void *cq_context), void *cq_context,
		  const struct ib_cq_init_attr *cq_attr, struct ib_udata *udata)
{
	return __ib_create_cq(device, comp_handler, event_handler, cq_context, cq_attr, udata,
			      RDMA_CALLER);
}

/**
 * ib_destroy_cq - undo ib_create_cq()
 * @cq: no QP or SRQ uses it; otherwise that is reported and the queue stays
 *
 * When this has returned, neither handler runs. Context: process.
 */
void ib_destroy_cq(struct ib_cq *cq);

/**
 * ib_resize_cq - change the size of a CQ
 * @cq: the queue
 * @cqe: completions it must hold
 *
 * Context: process. Return: 0; -EINVAL for no or too many entries, or fewer than are now in it;
 * -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK int ib_resize_cq(struct ib_cq *cq, int cqe);

/**
 * rdma_set_cq_moderation - let events wait for more completions
 * @cq: the queue
 * @cq_count: completions that an event waits for at most
 * @cq_period: microseconds that it waits at most
 *
 * Context: process. Return: 0; -EINVAL beyond the limits in the device's cq_caps; the driver's
 * errors.
 */
RDMA_MUST_CHECK int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period);

RDMA_MUST_CHECK struct ib_cq *__ib_alloc_cq(struct ib_device *device, void *private_data,
					    int nr_cqe, int comp_vector,
					    enum ib_poll_context poll_ctx, const char *caller);

/**
 * ib_alloc_cq - make a completion queue that the midlayer polls
 * @device: the device
 * @private_data: becomes cq_context
 * @nr_cqe: completions it must hold
 * @comp_vector: its vector
 * @poll_ctx: where the done functions of the requests (struct ib_cqe) run
 *
 * Every request that completes here must have a wr_cqe. Context: process.
 * Return: as ib_create_cq(); -EINVAL for an unknown @poll_ctx.
 */
RDMA_MUST_CHECK static inline struct ib_cq *ib_alloc_cq(struct ib_device *device,
							void *private_data, int nr_cqe,
							int comp_vector,
							enum ib_poll_context poll_ctx)
{
	return __ib_alloc_cq(device, private_data, nr_cqe, comp_vector, poll_ctx, RDMA_CALLER);
}

RDMA_MUST_CHECK struct ib_cq *__ib_alloc_cq_any(struct ib_device *device, void *private_data,
						int nr_cqe, enum ib_poll_context poll_ctx,
						const char *caller);

/**
 * ib_alloc_cq_any - the same, with a vector of the midlayer's choice
 * @device: the device
 * @private_data: becomes cq_context
 * @nr_cqe: completions it must hold
 * @poll_ctx: where the done functions run
 *
 * Vectors are given out in turn. Context: process. Return: as ib_alloc_cq().
 */
RDMA_MUST_CHECK static inline struct ib_cq *ib_alloc_cq_any(struct ib_device *device,
							    void *private_data, int nr_cqe,
							    enum ib_poll_context poll_ctx)
{
	return __ib_alloc_cq_any(device, private_data, nr_cqe, poll_ctx, RDMA_CALLER);
}

/**
 * ib_free_cq - undo ib_alloc_cq()
 * @cq: no QP or SRQ uses it; otherwise that is reported and the queue stays
 *
 * When this has returned, no done function of the queue runs. Context: process.
 */
void ib_free_cq(struct ib_cq *cq);

/**
 * ib_process_cq_direct - poll a CQ of IB_POLL_DIRECT and run the done functions
 * @cq: the queue
 * @budget: completions to stop after, -1 for no limit
 *
 * Context: any that the consumer's done functions can stand.
 * Return: completions processed; if there were none, 0 or the error of ib_poll_cq().
 */
int ib_process_cq_direct(struct ib_cq *cq, int budget);

/* Shared receive queues. */

RDMA_MUST_CHECK struct ib_srq *__ib_create_srq(struct ib_pd *pd,
					       struct ib_srq_init_attr *srq_init_attr,
					       struct ib_udata *udata, const char *caller);

/**
 * ib_create_srq - make a shared receive queue
 * @pd: the protection domain
 * @srq_init_attr: what is wanted; the granted sizes are written back
 *
 * Context: process.
 * Return: the queue; -EINVAL for sizes beyond the device's, a limit above the size, an unknown
 * type, XRC without CQ or domain; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_srq *ib_create_srq(struct ib_pd *pd,
							   struct ib_srq_init_attr *srq_init_attr)
{
	return __ib_create_srq(pd, srq_init_attr, (struct ib_udata *)0, RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_srq *
ib_create_srq_user(struct ib_pd *pd, struct ib_srq_init_attr *srq_init_attr, struct ib_udata *udata)
{
	return __ib_create_srq(pd, srq_init_attr, udata, RDMA_CALLER);
}

/**
 * ib_modify_srq - resize an SRQ or arm its limit event
 * @srq: the queue
 * @srq_attr: the values
 * @srq_attr_mask: which of them: enum ib_srq_attr_mask
 *
 * Context: process. Return: 0; -EINVAL for an unknown flag or a value beyond the device's; the
 * driver's errors.
 */
RDMA_MUST_CHECK int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
				  enum ib_srq_attr_mask srq_attr_mask);

/**
 * ib_query_srq - sizes and limit of an SRQ
 * @srq: the queue
 * @srq_attr: filled in
 *
 * Context: process. Return: 0 or the driver's errors.
 */
RDMA_MUST_CHECK int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr);

/**
 * ib_destroy_srq - undo ib_create_srq()
 * @srq: no QP uses it; otherwise that is reported and the queue stays
 *
 * Context: process.
 */
void ib_destroy_srq(struct ib_srq *srq);

/* Queue pairs. */

RDMA_MUST_CHECK struct ib_qp *__ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr,
					     struct ib_udata *udata, const char *caller);

/**
 * ib_create_qp - make a queue pair, in state RESET
 * @pd: the protection domain; for XRC_TGT it does not matter, and may be NULL
 * @qp_init_attr: what is wanted; the granted sizes are written back
 *
 * Context: process.
 * Return: the QP; -EINVAL for an unknown type, sizes beyond the device's, CQs, SRQ, XRC domain or
 * port missing or not fitting the type or the device; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_qp *ib_create_qp(struct ib_pd *pd,
							 struct ib_qp_init_attr *qp_init_attr)
{
	return __ib_create_qp(pd, qp_init_attr, (struct ib_udata *)0, RDMA_CALLER);
}

/*
 * Of the types that a kernel consumer can make, those of the management agents are not for
 * programs: -EINVAL.
 */
RDMA_MUST_CHECK static inline struct ib_qp *
ib_create_qp_user(struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr, struct ib_udata *udata)
{
	return __ib_create_qp(pd, qp_init_attr, udata, RDMA_CALLER);
}

/**
 * ib_modify_qp_is_ok - may a QP go from one state to another with these attributes (IBA 11.2.5.2,
 * table 98)
 * @cur_state: from
 * @next_state: to
 * @type: the QP's type
 * @mask: the attributes given: every required one, and none that is neither required nor optional
 *
 * Context: any. Return: whether it may.
 */
RDMA_MUST_CHECK bool ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
					enum ib_qp_type type, enum ib_qp_attr_mask mask);

/**
 * ib_modify_qp - change attributes of a QP, or its state
 * @qp: the QP
 * @qp_attr: the values
 * @qp_attr_mask: which of them: enum ib_qp_attr_mask
 *
 * Context: process.
 * Return: 0; -EINVAL for a mask that ib_modify_qp_is_ok() refuses, a value out of range or a
 * cur_qp_state that cannot be; the driver's errors.
 */
RDMA_MUST_CHECK int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask);

/**
 * ib_query_qp - attributes of a QP
 * @qp: the QP
 * @qp_attr: filled in, all that @qp_attr_mask asks for and perhaps more
 * @qp_attr_mask: enum ib_qp_attr_mask
 * @qp_init_attr: filled in with what it was created with
 *
 * Context: process. Return: 0 or the driver's errors.
 */
RDMA_MUST_CHECK int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
				struct ib_qp_init_attr *qp_init_attr);

/**
 * ib_destroy_qp - undo ib_create_qp()
 * @qp: the QP
 *
 * Every request that has not completed does so now, with a flush error, once and in order
 * (MGMT-09): of a CQ from ib_alloc_cq() all done functions have returned when this returns; in one
 * from ib_create_cq() the completions wait to be polled, with an event as for any other, and their
 * ib_wc.qp is NULL, as the QP is no more. Of a QP that has been drained, or is in state RESET,
 * nothing comes. Requests in an SRQ stay there; one that a message had begun to use is flushed.
 * Nothing may be posted meanwhile but from the handlers of the QP's CQs, and what they post may be
 * refused or not complete. Of a device that has failed the driver makes up the flush errors.
 *
 * When this has returned, no handler of the QP runs. Context: process; unless the QP has been
 * drained, not a done function of its CQs, nor under a lock that one of them takes.
 * Return: 0; -EBUSY if it is attached to a multicast group, or open by ib_open_qp(); the driver's
 * errors.
 */
RDMA_MUST_CHECK int ib_destroy_qp(struct ib_qp *qp);

RDMA_MUST_CHECK struct ib_qp *
__ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *qp_open_attr, const char *caller);

/**
 * ib_open_qp - another handle on an XRC target QP
 * @xrcd: its domain
 * @qp_open_attr: which QP
 *
 * Context: process. Return: the handle; -EINVAL for no such QP in the domain or a bad type;
 * -ENOMEM.
 */
RDMA_MUST_CHECK static inline struct ib_qp *ib_open_qp(struct ib_xrcd *xrcd,
						       struct ib_qp_open_attr *qp_open_attr)
{
	return __ib_open_qp(xrcd, qp_open_attr, RDMA_CALLER);
}

/**
 * ib_close_qp - undo ib_open_qp()
 * @qp: the handle
 *
 * Context: process. Return: 0; -EINVAL if @qp is not such a handle.
 */
RDMA_MUST_CHECK int ib_close_qp(struct ib_qp *qp);

/**
 * ib_drain_sq - wait until all sends of a QP have completed
 * @qp: put into state ERR if it is not there; its send CQ is from ib_alloc_cq()
 *
 * No sends may be posted meanwhile. A CQ of IB_POLL_DIRECT is polled here. Context: process.
 */
void ib_drain_sq(struct ib_qp *qp);

/**
 * ib_drain_rq - wait until all receives of a QP have completed
 * @qp: as above; a QP with an SRQ has no receives of its own
 *
 * Context: process.
 */
void ib_drain_rq(struct ib_qp *qp);

/**
 * ib_drain_qp - both
 * @qp: the QP
 *
 * Context: process.
 */
void ib_drain_qp(struct ib_qp *qp);

/**
 * ib_attach_mcast - let a UD QP receive what is sent to a multicast group
 * @qp: the QP
 * @gid: the group's GID
 * @lid: its LID, host order
 *
 * Counted: as many ib_detach_mcast() undo as many attachments. Context: process.
 * Return: 0; -EINVAL for a QP that is not UD, or addresses that are not multicast; -ENOMEM; the
 * driver's errors.
 */
RDMA_MUST_CHECK int ib_attach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/**
 * ib_attach_mcast_for_user - the same for a group that the kernel joins because a program asked for
 * it
 * @qp: the kernel's QP
 * @gid: the group's GID
 * @lid: its LID, host order
 *
 * The group counts as a program's where a device keeps a part of its table for the kernel. Undone
 * by ib_detach_mcast(). Context: process.
 * Return: 0, or the errors of ib_attach_mcast().
 */
RDMA_MUST_CHECK int ib_attach_mcast_for_user(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/**
 * ib_detach_mcast - undo ib_attach_mcast()
 * @qp: the QP
 * @gid: the group's GID
 * @lid: its LID, host order
 *
 * Context: process. Return: 0; -EINVAL if it is not attached; the driver's errors.
 */
RDMA_MUST_CHECK int ib_detach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/* Memory regions and windows. */

/**
 * ib_check_mr_access - are access flags such that a region can have them
 * @device: the device
 * @flags: enum ib_access_flags; remote write and atomic need local write
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_check_mr_access(struct ib_device *device, unsigned int flags);

RDMA_MUST_CHECK struct ib_mr *__ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags,
					      const char *caller);

/**
 * ib_get_dma_mr - a region of all DMA addresses
 * @pd: the protection domain
 * @mr_access_flags: enum ib_access_flags
 *
 * Most consumers want the PD's local_dma_lkey instead. Context: process.
 * Return: the region; -EINVAL for bad flags; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_mr *ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags)
{
	return __ib_get_dma_mr(pd, mr_access_flags, RDMA_CALLER);
}

RDMA_MUST_CHECK struct ib_mr *__ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
					       u64 virt_addr, int mr_access_flags,
					       struct ib_udata *udata, const char *caller);

/**
 * ib_reg_user_mr - a region of the calling process's memory
 * @pd: the protection domain
 * @start: address in the process
 * @length: bytes
 * @virt_addr: the iova that @start gets
 * @mr_access_flags: enum ib_access_flags
 *
 * Context: process. Return: the region; -EINVAL for bad flags, no length, a range that wraps, or an
 * @virt_addr at another offset in its page; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_mr *ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
							   u64 virt_addr, int mr_access_flags)
{
	return __ib_reg_user_mr(pd, start, length, virt_addr, mr_access_flags, (struct ib_udata *)0,
				RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_mr *ib_reg_user_mr_user(struct ib_pd *pd, u64 start,
								u64 length, u64 virt_addr,
								int mr_access_flags,
								struct ib_udata *udata)
{
	return __ib_reg_user_mr(pd, start, length, virt_addr, mr_access_flags, udata, RDMA_CALLER);
}

RDMA_MUST_CHECK struct ib_mr *__ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type,
					    u32 max_num_sg, const char *caller);

/**
 * ib_alloc_mr - a region for fast registration
 * @pd: the protection domain
 * @mr_type: IB_MR_TYPE_MEM_REG or IB_MR_TYPE_SG_GAPS
 * @max_num_sg: pages, or segments, that it can take
 *
 * ib_map_mr_sg() fills it, an IB_WR_REG_MR request makes it valid, an IB_WR_LOCAL_INV invalid
 * again.
 * Context: process. Return: the region; -EINVAL for another type, or no or too many pages; -ENOMEM;
 * the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type,
							u32 max_num_sg)
{
	return __ib_alloc_mr(pd, mr_type, max_num_sg, RDMA_CALLER);
}

/**
 * ib_map_mr_sg - give a region from ib_alloc_mr() its memory
 * @mr: the region, not valid now
 * @sg: the memory
 * @sg_nents: pieces
 * @sg_offset: bytes of the first piece to leave out, and on return the bytes taken of the first
 * piece that was not
 *	taken whole; or NULL
 * @page_size: power of two that the device can do: the grid on which all inner borders of pieces lie
 *
 * Sets the region's iova, length and page_size. Context: any.
 * Return: pieces taken whole, which may be fewer than given; -EINVAL for a bad page size, or if nothing could be
 * taken; the driver's errors.
 */
RDMA_MUST_CHECK int ib_map_mr_sg(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
				 unsigned int *sg_offset, unsigned int page_size);

/**
 * ib_sg_to_pages - the walk that a driver's map_mr_sg needs (drivers)
 * @mr: with page_size set
 * @sg: the memory
 * @sg_nents: pieces
 * @sg_offset: as for ib_map_mr_sg()
 * @set_page: called for every page; non-zero says that the region is full
 *
 * Context: any. Return: pieces taken whole; -EINVAL for a first piece shorter than the offset, or
 * if nothing could be taken.
 */
RDMA_MUST_CHECK int ib_sg_to_pages(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
				   unsigned int *sg_offset,
				   int (*set_page)(struct ib_mr *mr, u64 address));

/**
 * ib_dereg_mr - undo ib_get_dma_mr(), ib_reg_user_mr() or ib_alloc_mr()
 * @mr: the region
 *
 * Context: process. Return: 0; -EBUSY if the device finds windows bound to it; the driver's errors.
 */
RDMA_MUST_CHECK int ib_dereg_mr(struct ib_mr *mr);

RDMA_MUST_CHECK struct ib_mw *__ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type,
					    struct ib_udata *udata, const char *caller);

/**
 * ib_alloc_mw - a memory window
 * @pd: the protection domain
 * @type: enum ib_mw_type
 *
 * Context: process. Return: the window; -EINVAL for an unknown type; -ENOMEM; the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_mw *ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type)
{
	return __ib_alloc_mw(pd, type, (struct ib_udata *)0, RDMA_CALLER);
}

RDMA_MUST_CHECK static inline struct ib_mw *ib_alloc_mw_user(struct ib_pd *pd, enum ib_mw_type type,
							     struct ib_udata *udata)
{
	return __ib_alloc_mw(pd, type, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_mw - undo ib_alloc_mw()
 * @mw: the window
 *
 * Context: process. Return: 0 or the driver's errors.
 */
RDMA_MUST_CHECK int ib_dealloc_mw(struct ib_mw *mw);

/*
 * Not for use: the data path of debug builds, with the checks of LOCK-01, LOCK-05 and NOTIFY-01
 * around it.
 */
RDMA_MUST_CHECK int ib_checked_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
					 const struct ib_send_wr **bad_wr);
RDMA_MUST_CHECK int ib_checked_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
					 const struct ib_recv_wr **bad_wr);
RDMA_MUST_CHECK int ib_checked_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
					     const struct ib_recv_wr **bad_wr);
RDMA_MUST_CHECK int ib_checked_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
RDMA_MUST_CHECK int ib_checked_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
RDMA_MUST_CHECK int ib_checked_process_mad(struct ib_device *device, int process_mad_flags,
					   u32 port_num, const struct ib_wc *in_wc,
					   const struct ib_grh *in_grh, const struct ib_mad *in_mad,
					   struct ib_mad *out_mad, size_t *out_mad_size,
					   u16 *out_mad_pkey_index);

RDMA_C_END

#ifdef CONFIG_WEFT_DEBUG
#define RDMA_DATA_PATH(object, method) ib_checked_##method
#define RDMA_PROCESS_MAD(device) ib_checked_process_mad
#else
#define RDMA_DATA_PATH(object, method) (object)->device->ops.method
#define RDMA_PROCESS_MAD(device) (device)->ops.process_mad
#endif

/**
 * ib_process_mad - have the agents that a device has built in process a MAD
 * @device: one whose driver has the method
 * @process_mad_flags: enum ib_process_mad_flags
 * @port_num: the port that the MAD came in by
 * @in_wc: its completion; NULL if it did not come from the wire
 * @in_grh: its GRH, or NULL
 * @in_mad: the MAD
 * @out_mad: filled in with the reply
 * @out_mad_size: size of the reply
 * @out_mad_pkey_index: index of the P_Key to send the reply with
 *
 * Context: process. Return: enum ib_mad_result.
 */
RDMA_MUST_CHECK static inline int
ib_process_mad(struct ib_device *device, int process_mad_flags, u32 port_num,
	       const struct ib_wc *in_wc, const struct ib_grh *in_grh, const struct ib_mad *in_mad,
	       struct ib_mad *out_mad, size_t *out_mad_size, u16 *out_mad_pkey_index)
{
	return RDMA_PROCESS_MAD(device)(device, process_mad_flags, port_num, in_wc, in_grh, in_mad,
					out_mad, out_mad_size, out_mad_pkey_index);
}

/**
 * ib_post_send - give a QP's send queue work
 * @qp: the QP
 * @send_wr: a list of requests
 * @bad_send_wr: set to the first request that was not posted, on an error; may be NULL
 *
 * The list up to @bad_send_wr is posted even on an error. Context: any.
 * Return: 0; -EINVAL for a QP state or request that does not do; -ENOMEM for a full queue; the
 * driver's errors.
 */
RDMA_MUST_CHECK static inline int ib_post_send(struct ib_qp *qp, const struct ib_send_wr *send_wr,
					       const struct ib_send_wr **bad_send_wr)
{
	const struct ib_send_wr *unused;

	return RDMA_DATA_PATH(qp, post_send)(qp, send_wr, bad_send_wr ? bad_send_wr : &unused);
}

/**
 * ib_post_recv - give a QP's receive queue buffers
 * @qp: the QP, without SRQ
 * @recv_wr: a list of requests
 * @bad_recv_wr: set to the first request that was not posted, on an error; may be NULL
 *
 * Context: any. Return: as ib_post_send().
 */
RDMA_MUST_CHECK static inline int ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
					       const struct ib_recv_wr **bad_recv_wr)
{
	const struct ib_recv_wr *unused;

	return RDMA_DATA_PATH(qp, post_recv)(qp, recv_wr, bad_recv_wr ? bad_recv_wr : &unused);
}

/**
 * ib_post_srq_recv - give a shared receive queue buffers
 * @srq: the queue
 * @recv_wr: a list of requests
 * @bad_recv_wr: set to the first request that was not posted, on an error; may be NULL
 *
 * Context: any. Return: as ib_post_send().
 */
RDMA_MUST_CHECK static inline int ib_post_srq_recv(struct ib_srq *srq,
						   const struct ib_recv_wr *recv_wr,
						   const struct ib_recv_wr **bad_recv_wr)
{
	const struct ib_recv_wr *unused;

	return RDMA_DATA_PATH(srq, post_srq_recv)(srq, recv_wr,
						  bad_recv_wr ? bad_recv_wr : &unused);
}

/**
 * ib_poll_cq - take completions
 * @cq: a queue from ib_create_cq()
 * @num_entries: at most so many
 * @wc: room for them
 *
 * Concurrent callers each get completions of their own, in an order that is not defined between
 * them (LOCK-04).
 * Context: any. Return: how many; fewer than asked for says that the queue was empty; or a negative
 * errno.
 */
RDMA_MUST_CHECK static inline int ib_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	return RDMA_DATA_PATH(cq, poll_cq)(cq, num_entries, wc);
}

/**
 * ib_req_notify_cq - ask for one call of the completion handler
 * @cq: a queue from ib_create_cq()
 * @flags: one of IB_CQ_SOLICITED and IB_CQ_NEXT_COMP; IB_CQ_REPORT_MISSED_EVENTS
 *
 * Context: any.
 * Return: 0: armed, and with IB_CQ_REPORT_MISSED_EVENTS every completion since the last poll raises
 * an event. Positive, only with that flag: there may be completions without an event, so poll
 * again. Negative: not armed; -EINVAL for other flags. (NOTIFY-01 to NOTIFY-08)
 */
RDMA_MUST_CHECK static inline int ib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return RDMA_DATA_PATH(cq, req_notify_cq)(cq, flags);
}

/**
 * ib_peek_cq - how many completions are waiting
 * @cq: the queue
 * @wc_cnt: stop counting here
 *
 * Context: any. Return: how many, at most @wc_cnt; or a negative errno.
 */
RDMA_MUST_CHECK static inline int ib_peek_cq(struct ib_cq *cq, int wc_cnt)
{
	return cq->device->ops.peek_cq ? cq->device->ops.peek_cq(cq, wc_cnt) : -EOPNOTSUPP;
}

/**
 * ib_map_mr_sg_zbva - the same as ib_map_mr_sg(), with addresses that begin at 0
 * @mr: the region
 * @sg: the memory
 * @sg_nents: pieces
 * @sg_offset: as there
 * @page_size: as there
 *
 * Context: any. Return: as ib_map_mr_sg().
 */
RDMA_MUST_CHECK static inline int ib_map_mr_sg_zbva(struct ib_mr *mr,
						    const struct ib_dma_segment *sg, int sg_nents,
						    unsigned int *sg_offset, unsigned int page_size)
{
	int taken = ib_map_mr_sg(mr, sg, sg_nents, sg_offset, page_size);

	mr->iova = 0;
	return taken;
}

#undef RDMA_DATA_PATH
