/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the verbs (IBA 11), which consumers call. The header is valid in C and C++. Names,
 * values and meanings are those of Linux; rdma/types.h lists the types that replace kernel types.
 * Documentation/rules.rst has the rules that apply beyond a single call, by number.
 *
 * The following applies to all functions, and is not repeated:
 *
 * - A function that returns a pointer returns an error pointer on failure, never NULL.
 * - A function whose method the driver does not have returns -EOPNOTSUPP.
 * - A function that creates an object returns -EINVAL if its arguments belong to different devices,
 *   or if the domain in which it is created is NULL or an error pointer. The functions of the data
 *   path do not check this.
 * - The caller owns an object that a function has created. It must destroy the object before the
 *   objects in which it was created, and before its client's remove returns (LOCK-10).
 * - The errors of a driver's method are those of the drivers in hw/. Another driver may return
 *   other negative errnos.
 * - Command errors, of functions that execute a command of the device, are: -EIO if the device has
 *   failed, does not answer in time, is no longer on the bus, or reports an error without an errno;
 *   -ENOMEM if there is no memory for the command, or the device lacks a resource; -EINVAL if the
 *   device refuses a value or the state of the object; -EBUSY if the device still uses the object;
 *   -EOPNOTSUPP if the device does not know the command; -EAGAIN, -EBADF, -EFAULT or -ENXIO for
 *   other statuses of mlx4 and mthca (Documentation/connectx.rst, "Status codes").
 * - Program errors, of functions that create an object for a program, are: -EFAULT if memory of the
 *   program cannot be read or written; -EINVAL if the request of its library is too short or has a
 *   value that the device cannot use; -EDQUOT if the user has used up the share that the driver
 *   grants; -EPERM if the program may not lock memory, and -ENOMEM if it would exceed
 *   RLIMIT_MEMLOCK; -EINTR if the program is killed meanwhile; -EAGAIN if the limit of its rdma
 *   cgroup is reached.
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

/**
 * rdma_cap_ib_switch - test for a switch
 * @device: the device
 *
 * Context: any. Return: true if the device is a switch, whose consumers use port 0.
 */
static inline bool rdma_cap_ib_switch(const struct ib_device *device)
{
	return device->is_switch;
}

/**
 * rdma_start_port - get the first port for consumers
 * @device: the device
 *
 * Context: any. Return: 0 for a switch, else 1.
 */
static inline u32 rdma_start_port(const struct ib_device *device)
{
	return rdma_cap_ib_switch(device) ? 0 : 1;
}

/**
 * rdma_end_port - get the last port for consumers
 * @device: the device
 *
 * Context: any. Return: 0 for a switch, else the number of ports.
 */
static inline u32 rdma_end_port(const struct ib_device *device)
{
	return rdma_cap_ib_switch(device) ? 0 : device->phys_port_cnt;
}

/**
 * rdma_is_port_valid - test whether consumers can use a port
 * @device: the device
 * @port: any number
 *
 * Context: any. Return: true if @port is in the range of rdma_start_port() and rdma_end_port().
 */
static inline bool rdma_is_port_valid(const struct ib_device *device, u32 port)
{
	return port >= rdma_start_port(device) && port <= rdma_end_port(device);
}

/**
 * rdma_for_each_port - iterate over the ports for consumers
 * @device: the device
 * @iter: variable for the number of the port
 *
 * Context: any.
 */
#define rdma_for_each_port(device, iter)                                                           \
	for ((iter) = rdma_start_port(device); (iter) <= rdma_end_port(device); (iter)++)

/* Capabilities of ports, for valid ports of registered devices. */

/**
 * rdma_port_has - test a port for capabilities
 * @device: a registered device
 * @port_num: a valid port
 * @core_cap_flags: RDMA_CORE_CAP_*, or-ed
 *
 * Context: any. Return: true if the port has one of the capabilities.
 */
static inline bool rdma_port_has(const struct ib_device *device, u32 port_num, u32 core_cap_flags)
{
	return (device->port_immutable[port_num].core_cap_flags & core_cap_flags) != 0;
}

/**
 * rdma_protocol_ib - test for a port that uses InfiniBand
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if the port's protocol is InfiniBand.
 */
static inline bool rdma_protocol_ib(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_PROT_IB);
}

/**
 * rdma_cap_ib_mad - test for a port that sends and receives MADs (IBA 13)
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if rdma/ib_mad.h serves the port.
 */
static inline bool rdma_cap_ib_mad(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_MAD);
}

/**
 * rdma_cap_ib_smi - test for a port with a subnet management interface (IBA 14)
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if the port has QP0.
 */
static inline bool rdma_cap_ib_smi(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_SMI);
}

/**
 * rdma_cap_ib_cm - test for a port with a communication manager (IBA 12)
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if rdma/ib_cm.h serves the port.
 */
static inline bool rdma_cap_ib_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_CM);
}

/**
 * rdma_cap_ib_sa - test for a port that queries the SA (IBA 15)
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if rdma/ib_sa.h serves the port.
 */
static inline bool rdma_cap_ib_sa(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IB_SA);
}

/**
 * rdma_cap_ib_mcast - test for a port that joins groups by the SA (IBA 15.2.5.17)
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if the port has rdma_cap_ib_sa().
 */
static inline bool rdma_cap_ib_mcast(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_ib_sa(device, port_num);
}

/**
 * rdma_is_grh_required - test for a port whose packets all need a GRH
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if every address vector needs IB_AH_GRH.
 */
static inline bool rdma_is_grh_required(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_PORT_IB_GRH_REQUIRED);
}

/**
 * rdma_max_mad_size - get the size of the largest MAD
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: bytes: 256 on InfiniBand, 0 on iWARP.
 */
static inline size_t rdma_max_mad_size(const struct ib_device *device, u32 port_num)
{
	return device->port_immutable[port_num].max_mad_size;
}

/**
 * ib_inc_rkey - get the next key of a fast-registration region
 * @rkey: the key
 *
 * Context: any. Return: the key with its low 8 bits incremented; the consumer owns these bits (IBA
 * 10.6.3.8).
 */
static inline u32 ib_inc_rkey(u32 rkey)
{
	return (rkey & 0xffffff00u) | ((rkey + 1) & 0xffu);
}

/**
 * ib_update_fast_reg_key - set the consumer's part of a region's keys
 * @mr: a region from ib_alloc_mr()
 * @newkey: the low 8 bits of lkey and rkey (IBA 10.6.3.8)
 *
 * Context: any. The caller serializes changes of one region.
 */
static inline void ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
	mr->lkey = (mr->lkey & 0xffffff00u) | newkey;
	mr->rkey = (mr->rkey & 0xffffff00u) | newkey;
}

/**
 * ib_access_writable - test whether a region is written to (IBA 10.6)
 * @access_flags: enum ib_access_flags
 *
 * Context: any. Return: true if the device, a peer or a window may write to the region.
 */
static inline bool ib_access_writable(int access_flags)
{
	return (access_flags & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)) != 0;
}

/**
 * ib_srq_has_cq - test whether SRQs of a type have a CQ of their own
 * @srq_type: enum ib_srq_type
 *
 * Context: any. Return: true for IB_SRQT_XRC and IB_SRQT_TM.
 */
static inline bool ib_srq_has_cq(enum ib_srq_type srq_type)
{
	return srq_type == IB_SRQT_XRC || srq_type == IB_SRQT_TM;
}

RDMA_C_BEGIN

/* The device and its ports. */

/**
 * ib_query_port - read the present attributes of a port (IBA 11.2.1)
 * @device: the device
 * @port_num: the port
 * @port_attr: filled in
 *
 * Queries the device; rdma/ib_cache.h has the values that are needed often.
 *
 * Context: process. Return: 0; -EINVAL for a port that does not exist; command errors.
 */
RDMA_MUST_CHECK int ib_query_port(struct ib_device *device, u32 port_num,
				  struct ib_port_attr *port_attr);

/**
 * ib_query_pkey - read an entry of a port's P_Key table from the device
 * @device: the device
 * @port_num: the port
 * @index: the entry, from 0
 * @pkey: filled in, host order (IBA 10.9)
 *
 * Context: process. Return: 0; -EINVAL for a port or an entry that does not exist; command errors.
 */
RDMA_MUST_CHECK int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);

/**
 * ib_find_gid - find the port and index of a GID, by querying the device (IBA 4.1.1)
 * @device: the device
 * @gid: the GID to find
 * @port_num: filled in
 * @index: filled in; may be NULL
 *
 * Context: process. Return: 0; -ENOENT if no port has the GID; command errors.
 */
RDMA_MUST_CHECK int ib_find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num,
				u16 *index);

/**
 * ib_find_pkey - find the index of a P_Key, by querying the device (IBA 10.9)
 * @device: the device
 * @port_num: the port
 * @pkey: the P_Key to find, host order; its membership bit is ignored
 * @index: filled in: the first entry with full membership, else the first one
 *
 * Context: process. Return: 0; -EINVAL for a port that does not exist; -ENOENT if the port does not
 * have the P_Key; command errors.
 */
RDMA_MUST_CHECK int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index);

/**
 * ib_modify_device - change what a device reports about itself (IBA 11.2.1)
 * @device: the device
 * @device_modify_mask: enum ib_device_modify_flags: the values to set
 * @device_modify: the values
 *
 * Context: process. Return: 0; -EINVAL for an unknown flag; -EOPNOTSUPP for a flag that the device
 * does not support (mlx4 and mthca have IB_DEVICE_MODIFY_NODE_DESC only); -ENOMEM if there is no
 * memory.
 */
RDMA_MUST_CHECK int ib_modify_device(struct ib_device *device, int device_modify_mask,
				     struct ib_device_modify *device_modify);

/**
 * ib_modify_port - change a port (IBA 11.2.1)
 * @device: the device
 * @port_num: the port
 * @port_modify_mask: enum ib_port_modify_flags: what to do
 * @port_modify: the values; its capability masks are always used
 *
 * Context: process. Return: 0; -EINVAL for a port that does not exist or an unknown flag; command
 * errors.
 */
RDMA_MUST_CHECK int ib_modify_port(struct ib_device *device, u32 port_num, int port_modify_mask,
				   struct ib_port_modify *port_modify);

/**
 * ib_get_device_fw_str - get a device's firmware version as text
 * @device: the device
 * @str: filled in, IB_FW_VERSION_NAME_MAX bytes; empty if the driver does not report it
 *
 * Context: process.
 */
void ib_get_device_fw_str(struct ib_device *device, char *str);

/**
 * rdma_port_get_link_layer - get the link layer of a port
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: the driver's answer; if it has none, IB_LINK_LAYER_INFINIBAND for an
 * InfiniBand device, and IB_LINK_LAYER_ETHERNET for an RNIC.
 */
enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device, u32 port_num);

/* Protection domains and XRC domains. */

/*
 * A function whose name begins with two underscores implements two functions: one for the kernel,
 * where udata is NULL, and one for programs, whose name ends in _user. The latter is called in the
 * program's process.
 */

RDMA_MUST_CHECK struct ib_pd *__ib_alloc_pd(struct ib_device *device, unsigned int flags,
					    struct ib_udata *udata, const char *caller);

/**
 * ib_alloc_pd - create a protection domain (IBA 11.2.1)
 * @device: the device
 * @flags: enum ib_pd_flags
 *
 * The caller destroys it with ib_dealloc_pd().
 *
 * Context: process. Return: the domain; -EINVAL for an unknown flag; -ENOMEM if there is no memory
 * or all domains of the device are in use; if the domain needs a region of all memory, -EOPNOTSUPP
 * if the driver cannot create one, and the errors of ib_get_dma_mr().
 */
RDMA_MUST_CHECK static inline struct ib_pd *ib_alloc_pd(struct ib_device *device,
							unsigned int flags)
{
	return __ib_alloc_pd(device, flags, (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_alloc_pd_user - create a protection domain for a program (IBA 11.2.1)
 * @device: the device
 * @udata: the command
 *
 * The domain has neither of the keys for all memory. The caller destroys it with
 * ib_dealloc_pd_user().
 *
 * Context: process, the program's. Return: the domain; -ENOMEM if there is no memory or all domains
 * of the device are in use; -EFAULT and -EINVAL if the response cannot be written; -EAGAIN if the
 * limit of the program's rdma cgroup is reached.
 */
RDMA_MUST_CHECK static inline struct ib_pd *ib_alloc_pd_user(struct ib_device *device,
							     struct ib_udata *udata)
{
	return __ib_alloc_pd(device, 0, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_pd - undo ib_alloc_pd() (IBA 11.2.1)
 * @pd: the domain; if objects are left in it, or the driver fails, this is logged and the domain is
 * not destroyed
 *
 * Context: process.
 */
void ib_dealloc_pd(struct ib_pd *pd);

RDMA_MUST_CHECK struct ib_xrcd *__ib_alloc_xrcd(struct ib_device *device, struct ib_udata *udata,
						const char *caller);

/**
 * ib_alloc_xrcd - create an XRC domain (IBA annex A14)
 * @device: the device
 *
 * The caller destroys it with ib_dealloc_xrcd().
 *
 * Context: process. Return: the domain; -EOPNOTSUPP if the device does not have XRC; -ENOMEM if
 * there is no memory; -ENOSPC if all XRC domains of the device are in use; the errors of
 * ib_create_cq(), because mlx4 creates a CQ for the domain.
 */
RDMA_MUST_CHECK static inline struct ib_xrcd *ib_alloc_xrcd(struct ib_device *device)
{
	return __ib_alloc_xrcd(device, (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_alloc_xrcd_user - create an XRC domain for a program (IBA annex A14)
 * @device: the device
 * @udata: the command
 *
 * The caller destroys it with ib_dealloc_xrcd().
 *
 * Context: process, the program's. Return: as ib_alloc_xrcd(); -EAGAIN if the limit of the
 * program's rdma cgroup is reached.
 */
RDMA_MUST_CHECK static inline struct ib_xrcd *ib_alloc_xrcd_user(struct ib_device *device,
								 struct ib_udata *udata)
{
	return __ib_alloc_xrcd(device, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_xrcd - undo ib_alloc_xrcd() (IBA annex A14)
 * @xrcd: the domain
 *
 * Context: process. Return: 0; -EBUSY if SRQs or target QPs are left in it; the drivers in hw/
 * return no error.
 */
RDMA_MUST_CHECK int ib_dealloc_xrcd(struct ib_xrcd *xrcd);

/* Address handles. */

RDMA_MUST_CHECK struct ib_ah *__rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
					       u32 flags, struct ib_udata *udata,
					       const char *caller);

/**
 * rdma_create_ah - create an address handle (IBA 11.2.2)
 * @pd: the protection domain
 * @ah_attr: the address; copied, may be on the stack
 * @flags: enum rdma_create_ah_flags
 *
 * The caller destroys it with rdma_destroy_ah().
 *
 * Linux: differs by refusing DLID 0, which is not an address (IBA 4.1.3).
 *
 * Context: any without RDMA_CREATE_AH_SLEEPABLE, process with it.
 *
 * Return: the handle; -EINVAL for an unknown flag, a port or GID index that does not exist, a
 * service level above 15, an unknown static rate, a flow label of more than 20 bits, DLID 0, or a
 * missing GRH where the port or a multicast destination needs one (IBA 9.8.2.1); -ENOMEM if there
 * is no memory.
 */
RDMA_MUST_CHECK static inline struct ib_ah *rdma_create_ah(struct ib_pd *pd,
							   struct rdma_ah_attr *ah_attr, u32 flags)
{
	return __rdma_create_ah(pd, ah_attr, flags, (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_create_ah_user - create an address handle for a program (IBA 11.2.2)
 * @pd: the protection domain
 * @ah_attr: the address; copied
 * @udata: the command
 *
 * The caller destroys it with rdma_destroy_ah().
 *
 * Context: process, the program's. Return: as rdma_create_ah().
 */
RDMA_MUST_CHECK static inline struct ib_ah *
ib_create_ah_user(struct ib_pd *pd, struct rdma_ah_attr *ah_attr, struct ib_udata *udata)
{
	return __rdma_create_ah(pd, ah_attr, RDMA_CREATE_AH_SLEEPABLE, udata, RDMA_CALLER);
}

/**
 * ib_init_ah_attr_from_wc - get the address for the response to a datagram
 * @device: the device
 * @port_num: the port at which the datagram arrived
 * @wc: its completion
 * @grh: its GRH, the first 40 bytes of the buffer; read if @wc has IB_WC_GRH
 * @ah_attr: filled in, without a static rate. The response to a datagram that was sent to a group
 * has the port's first GID as source
 *
 * Context: any.
 *
 * Return: 0; -EINVAL for a port that does not exist; -EPROTO for a GRH that is not valid for IBA,
 * or a source that is a multicast address; -ENOENT if the GRH's destination is a unicast GID that
 * the port does not have.
 */
RDMA_MUST_CHECK int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num,
					    const struct ib_wc *wc, const struct ib_grh *grh,
					    struct rdma_ah_attr *ah_attr);

RDMA_MUST_CHECK struct ib_ah *__ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
						     const struct ib_grh *grh, u32 port_num,
						     const char *caller);

/**
 * ib_create_ah_from_wc - create an address handle for the response to a datagram (IBA 11.2.2)
 * @pd: the protection domain
 * @wc: the completion of the datagram
 * @grh: its GRH, as for ib_init_ah_attr_from_wc()
 * @port_num: the port at which it arrived
 *
 * The caller destroys it with rdma_destroy_ah().
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
 * rdma_modify_ah - change the address of a handle (IBA 11.2.2)
 * @ah: the handle; requests posted with it and not completed use the old or the new address
 * @ah_attr: the address; copied
 *
 * Context: any. Return: 0; -EINVAL as for rdma_create_ah().
 */
RDMA_MUST_CHECK int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);

/**
 * rdma_query_ah - read the address of a handle (IBA 11.2.2)
 * @ah: the handle
 * @ah_attr: filled in
 *
 * Context: any. Return: 0. The drivers in hw/ return no error.
 */
RDMA_MUST_CHECK int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);

/**
 * rdma_destroy_ah - undo rdma_create_ah() (IBA 11.2.2)
 * @ah: the handle; no request with it is outstanding. If the driver fails, that is logged, and the
 * handle is leaked
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
 * ib_create_cq - create a completion queue that the consumer polls (IBA 11.2)
 * @device: the device
 * @comp_handler: called on a completion event, in any context; it must not sleep (LOCK-07). May be
 * NULL
 * @event_handler: called on IB_EVENT_CQ_ERR, in any context; may be NULL
 * @cq_context: argument of both handlers
 * @cq_attr: size and vector
 *
 * The queue is not armed. The caller destroys it with ib_destroy_cq().
 *
 * Context: process.
 *
 * Return: the queue; -EINVAL for 0 entries or more than max_cqe, a vector that does not exist, or
 * flags; -ENOMEM if there is no memory, or no space in the event queue of the vector; -ENOSPC if
 * all queues or translation entries of the device are in use; command errors.
 */
RDMA_MUST_CHECK static inline struct ib_cq *
ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
	     void (*event_handler)(struct ib_event *event, void *cq_context), void *cq_context,
	     const struct ib_cq_init_attr *cq_attr)
{
	return __ib_create_cq(device, comp_handler, event_handler, cq_context, cq_attr,
			      (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_create_cq_user - create a completion queue for a program (IBA 11.2)
 * @device: the device
 * @comp_handler: called on a completion event, as for ib_create_cq()
 * @event_handler: called on IB_EVENT_CQ_ERR, as for ib_create_cq()
 * @cq_context: argument of both handlers
 * @cq_attr: size and vector
 * @udata: the command; the library passes the queue's memory in it
 *
 * The caller destroys it with ib_destroy_cq_user().
 *
 * Context: process, the program's. Return: as ib_create_cq(); program errors.
 */
RDMA_MUST_CHECK static inline struct ib_cq *
ib_create_cq_user(struct ib_device *device, ib_comp_handler comp_handler,
		  void (*event_handler)(struct ib_event *event, void *cq_context), void *cq_context,
		  const struct ib_cq_init_attr *cq_attr, struct ib_udata *udata)
{
	return __ib_create_cq(device, comp_handler, event_handler, cq_context, cq_attr, udata,
			      RDMA_CALLER);
}

/**
 * ib_destroy_cq - undo ib_create_cq() (IBA 11.2)
 * @cq: the queue; if a QP or SRQ uses it, or the driver fails, this is logged and the queue is not
 * destroyed
 *
 * When this has returned, neither handler runs.
 *
 * Context: process, not from a handler of the queue.
 */
void ib_destroy_cq(struct ib_cq *cq);

/**
 * ib_resize_cq - change the size of a CQ (IBA 11.2)
 * @cq: the queue
 * @cqe: completions that it must hold, 1 to max_cqe of the device
 *
 * Context: process. Return: 0; -EINVAL for a size out of range, or smaller than the number of
 * completions that are in the queue; -ENOMEM if there is no memory; -ENOSPC if all translation
 * entries of the device are in use; command errors.
 */
RDMA_MUST_CHECK int ib_resize_cq(struct ib_cq *cq, int cqe);

/**
 * rdma_set_cq_moderation - set the moderation of completion events
 * @cq: the queue
 * @cq_count: maximum number of completions for which an event waits
 * @cq_period: maximum number of microseconds that it waits
 *
 * Context: process. Return: 0; -EINVAL beyond the limits in the device's cq_caps; command errors.
 */
RDMA_MUST_CHECK int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period);

RDMA_MUST_CHECK struct ib_cq *__ib_alloc_cq(struct ib_device *device, void *private_data,
					    int nr_cqe, int comp_vector,
					    enum ib_poll_context poll_ctx, const char *caller);

/**
 * ib_alloc_cq - create a completion queue that the midlayer polls (IBA 11.2)
 * @device: the device
 * @private_data: becomes cq_context
 * @nr_cqe: completions that it must hold, 1 to max_cqe of the device
 * @comp_vector: completion vector, less than num_comp_vectors of the device
 * @poll_ctx: the context in which the done functions of the requests (struct ib_cqe) run
 *
 * Every request that completes here must have a wr_cqe. The caller frees the queue with
 * ib_free_cq().
 *
 * Context: process. Return: as ib_create_cq(); -EINVAL for an unknown @poll_ctx; the error of
 * ib_req_notify_cq() if the queue cannot be armed.
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
 * ib_alloc_cq_any - create a completion queue as ib_alloc_cq() does, and choose its vector (IBA
 * 11.2)
 * @device: the device
 * @private_data: becomes cq_context
 * @nr_cqe: completions that it must hold, 1 to max_cqe of the device
 * @poll_ctx: the context in which the done functions run
 *
 * The vectors of the device are used round-robin. The caller frees the queue with ib_free_cq().
 *
 * Context: process. Return: as ib_alloc_cq().
 */
RDMA_MUST_CHECK static inline struct ib_cq *ib_alloc_cq_any(struct ib_device *device,
							    void *private_data, int nr_cqe,
							    enum ib_poll_context poll_ctx)
{
	return __ib_alloc_cq_any(device, private_data, nr_cqe, poll_ctx, RDMA_CALLER);
}

/**
 * ib_free_cq - undo ib_alloc_cq() (IBA 11.2)
 * @cq: the queue; if a QP or SRQ uses it, or the driver fails, this is logged and the queue is not
 * destroyed
 *
 * When this has returned, no done function of the queue runs.
 *
 * Context: process, not from a done function of the queue.
 */
void ib_free_cq(struct ib_cq *cq);

/**
 * ib_process_cq_direct - poll a CQ of IB_POLL_DIRECT and run the done functions
 * @cq: the queue
 * @budget: maximum number of completions; -1 for no limit
 *
 * Context: any that the consumer's done functions allow. Return: number of completions processed;
 * if there were none, 0 or the error of ib_poll_cq().
 */
int ib_process_cq_direct(struct ib_cq *cq, int budget);

/* Shared receive queues. */

RDMA_MUST_CHECK struct ib_srq *__ib_create_srq(struct ib_pd *pd,
					       struct ib_srq_init_attr *srq_init_attr,
					       struct ib_udata *udata, const char *caller);

/**
 * ib_create_srq - create a shared receive queue (IBA 11.2)
 * @pd: the protection domain
 * @srq_init_attr: the attributes; the granted sizes are written back
 *
 * The caller destroys it with ib_destroy_srq().
 *
 * Context: process.
 *
 * Return: the queue; -EINVAL for 0 requests, sizes beyond the device's, a limit above the size, a
 * type that is neither IB_SRQT_BASIC nor IB_SRQT_XRC, or XRC without CQ or domain; -EOPNOTSUPP if
 * the device does not have XRC; -ENOMEM if there is no memory; -ENOSPC if all queues or translation
 * entries of the device are in use; command errors.
 */
RDMA_MUST_CHECK static inline struct ib_srq *ib_create_srq(struct ib_pd *pd,
							   struct ib_srq_init_attr *srq_init_attr)
{
	return __ib_create_srq(pd, srq_init_attr, (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_create_srq_user - create a shared receive queue for a program (IBA 11.2)
 * @pd: the protection domain
 * @srq_init_attr: the attributes; the granted sizes are written back
 * @udata: the command; the library passes the queue's memory in it
 *
 * The caller destroys it with ib_destroy_srq_user().
 *
 * Context: process, the program's. Return: as ib_create_srq(); program errors.
 */
RDMA_MUST_CHECK static inline struct ib_srq *
ib_create_srq_user(struct ib_pd *pd, struct ib_srq_init_attr *srq_init_attr, struct ib_udata *udata)
{
	return __ib_create_srq(pd, srq_init_attr, udata, RDMA_CALLER);
}

/**
 * ib_modify_srq - resize an SRQ or arm its limit event (IBA 11.2)
 * @srq: the queue
 * @srq_attr: the values
 * @srq_attr_mask: enum ib_srq_attr_mask: the values to set
 *
 * Context: process. Return: 0; -EINVAL for an unknown flag, a size of 0, a value beyond max_srq_wr
 * of the device, a limit that is not below the queue's size, or IB_SRQ_MAX_WR, because no driver in
 * hw/ resizes SRQs; command errors.
 */
RDMA_MUST_CHECK int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
				  enum ib_srq_attr_mask srq_attr_mask);

/**
 * ib_query_srq - read the sizes and the limit of an SRQ (IBA 11.2)
 * @srq: the queue
 * @srq_attr: filled in
 *
 * Context: process. Return: 0; command errors.
 */
RDMA_MUST_CHECK int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr);

/**
 * ib_destroy_srq - undo ib_create_srq() (IBA 11.2)
 * @srq: the queue; if a QP uses it, or the driver fails, this is logged and the queue is not
 * destroyed
 *
 * Context: process.
 */
void ib_destroy_srq(struct ib_srq *srq);

/* Queue pairs. */

RDMA_MUST_CHECK struct ib_qp *__ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr,
					     struct ib_udata *udata, const char *caller);

/**
 * ib_create_qp - create a queue pair in state RESET (IBA 11.2.5)
 * @pd: the protection domain; for XRC_TGT it is not used, and may be NULL
 * @qp_init_attr: the attributes; the granted sizes are written back
 *
 * The caller destroys it with ib_destroy_qp().
 *
 * Context: process.
 *
 * Return: the QP; -EINVAL for a type that the device's protocol does not have (RNICs have RC only),
 * sizes beyond the device's, an unknown flag or signalling type, or a CQ, SRQ, XRC domain or port
 * that is missing or does not fit the type; -EOPNOTSUPP for a type that the device does not have;
 * -EBUSY if the port's special QP exists already; -ENOMEM if there is no memory, or no space in the
 * event queue; -ENOSPC if all QPs or translation entries of the device are in use; command errors.
 */
RDMA_MUST_CHECK static inline struct ib_qp *ib_create_qp(struct ib_pd *pd,
							 struct ib_qp_init_attr *qp_init_attr)
{
	return __ib_create_qp(pd, qp_init_attr, (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_create_qp_user - create a queue pair for a program (IBA 11.2.5)
 * @pd: the protection domain; for XRC_TGT it is not used, and may be NULL
 * @qp_init_attr: the attributes; the granted sizes are written back
 * @udata: the command; the library passes the queues' memory in it
 *
 * The caller destroys it with ib_destroy_qp().
 *
 * Context: process, the program's. Return: as ib_create_qp(); program errors; -EINVAL for the types
 * SMI and GSI, and for any flag but IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK.
 */
RDMA_MUST_CHECK static inline struct ib_qp *
ib_create_qp_user(struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr, struct ib_udata *udata)
{
	return __ib_create_qp(pd, qp_init_attr, udata, RDMA_CALLER);
}

/**
 * ib_modify_qp_is_ok - check a change of a QP against the table of transitions (IBA 11.2.5.2)
 * @cur_state: the present state
 * @next_state: the state to go to
 * @type: the QP's type
 * @mask: the attributes that are given
 *
 * The table is InfiniBand's. An RNIC's QP has other transitions, which ib_modify_qp() checks.
 *
 * Context: any. Return: true if the transition exists, @mask has every attribute that it requires,
 * and none that is neither required nor optional.
 */
RDMA_MUST_CHECK bool ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
					enum ib_qp_type type, enum ib_qp_attr_mask mask);

/**
 * ib_modify_qp - change attributes of a QP, or its state (IBA 11.2.5.2)
 * @qp: the QP, or a handle on it
 * @qp_attr: the values; not changed
 * @qp_attr_mask: enum ib_qp_attr_mask: the values to set
 *
 * The midlayer does not serialize changes of one QP (LOCK-04).
 *
 * Context: process.
 *
 * Return: 0; -EINVAL for a transition or a mask that the device's protocol does not allow, a value
 * out of its range (struct ib_qp_attr), an alternate path without IB_DEVICE_AUTO_PATH_MIG, or a
 * cur_qp_state that the QP cannot be in; -ENOTCONN if an RNIC's QP has no connection; -EOPNOTSUPP
 * for a state that an RNIC's QP does not have; command errors.
 */
RDMA_MUST_CHECK int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask);

/**
 * ib_query_qp - read the attributes of a QP (IBA 11.2.5)
 * @qp: the QP, or a handle on it
 * @qp_attr: filled in: at least the attributes in @qp_attr_mask
 * @qp_attr_mask: enum ib_qp_attr_mask: the values to read
 * @qp_init_attr: filled in with the attributes with which it was created
 *
 * Context: process. Return: 0; command errors.
 */
RDMA_MUST_CHECK int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
				struct ib_qp_init_attr *qp_init_attr);

/**
 * ib_destroy_qp - undo ib_create_qp() (IBA 11.2.5)
 * @qp: the QP; a handle is closed
 *
 * Every request that has not completed completes now with a flush error, once and in order
 * (MGMT-09). On a CQ from ib_alloc_cq(), all done functions have returned when this returns. On a
 * CQ from ib_create_cq(), the completions wait to be polled and raise events like others; their
 * ib_wc.qp is NULL, because the QP no longer exists. A QP that has been drained, or is in state
 * RESET, has nothing to flush. Requests in an SRQ stay there, except a request that a message had
 * begun to use. If the device has failed, the driver generates the flush errors.
 *
 * Only the handlers of the QP's CQs may post meanwhile; their requests may be refused or not
 * complete. When this has returned, no handler of the QP runs.
 *
 * Context: process. Unless the QP has been drained, not from a done function of its CQs, and
 * without a lock that one of them takes.
 *
 * Return: 0; -EBUSY if it is attached to a multicast group, or open by ib_open_qp(). The drivers in
 * hw/ return no error.
 */
RDMA_MUST_CHECK int ib_destroy_qp(struct ib_qp *qp);

RDMA_MUST_CHECK struct ib_qp *
__ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *qp_open_attr, const char *caller);

/**
 * ib_open_qp - create a handle on an XRC target QP (IBA annex A14)
 * @xrcd: its domain
 * @qp_open_attr: number of the QP, and the handler of its events
 *
 * ib_close_qp() ends the handle; the QP stays until then.
 *
 * Context: process. Return: the handle; -EINVAL if the domain has no such QP, or for a type that is
 * not IB_QPT_XRC_TGT; -ENOMEM if there is no memory.
 */
RDMA_MUST_CHECK static inline struct ib_qp *ib_open_qp(struct ib_xrcd *xrcd,
						       struct ib_qp_open_attr *qp_open_attr)
{
	return __ib_open_qp(xrcd, qp_open_attr, RDMA_CALLER);
}

/**
 * ib_close_qp - undo ib_open_qp() (IBA annex A14)
 * @qp: the handle
 *
 * Context: process. Return: 0; -EINVAL if @qp is not such a handle.
 */
RDMA_MUST_CHECK int ib_close_qp(struct ib_qp *qp);

/**
 * ib_drain_sq - wait until all sends of a QP have completed
 * @qp: the QP, which is moved to state ERR; its send CQ is from ib_alloc_cq()
 *
 * A marker request is posted after all others (IBA 10.3.1.5). The caller posts no sends meanwhile.
 * A CQ of IB_POLL_DIRECT is polled here. If the QP cannot be drained, that is logged.
 *
 * Context: process, not from a done function of the CQ.
 */
void ib_drain_sq(struct ib_qp *qp);

/**
 * ib_drain_rq - wait until all receives of a QP have completed (IBA 10.3.1.5)
 * @qp: the QP, which is moved to state ERR and has no SRQ; its receive CQ is from ib_alloc_cq()
 *
 * As ib_drain_sq(); the caller posts no receives meanwhile.
 *
 * Context: process, not from a done function of the CQ.
 */
void ib_drain_rq(struct ib_qp *qp);

/**
 * ib_drain_qp - wait until all sends and receives of a QP have completed (IBA 10.3.1.5)
 * @qp: the QP, as for ib_drain_sq() and ib_drain_rq(); receives of an SRQ are not drained
 *
 * Context: process, not from a done function of its CQs.
 */
void ib_drain_qp(struct ib_qp *qp);

/**
 * ib_attach_mcast - let a UD QP receive packets that are sent to a multicast group (IBA 11.3)
 * @qp: the QP
 * @gid: the group's GID
 * @lid: its LID, host order
 *
 * Attachments are counted: each needs an ib_detach_mcast().
 *
 * Context: process. Return: 0; -EINVAL for a QP that is not UD, or addresses that are not
 * multicast; -ENOMEM if there is no memory, or the device's table or the group's list of QPs is
 * full; -EPROTO if the device's table is inconsistent; command errors.
 */
RDMA_MUST_CHECK int ib_attach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/**
 * ib_attach_mcast_for_user - attach a kernel's QP to a group that a program has asked for (IBA
 * 11.3)
 * @qp: the kernel's QP
 * @gid: the group's GID
 * @lid: its LID, host order
 *
 * The group counts as a program's if the device keeps a part of its table for the kernel. The
 * caller undoes it with ib_detach_mcast().
 *
 * Context: process. Return: as ib_attach_mcast().
 */
RDMA_MUST_CHECK int ib_attach_mcast_for_user(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/**
 * ib_detach_mcast - undo ib_attach_mcast() (IBA 11.3)
 * @qp: the QP
 * @gid: the group's GID
 * @lid: its LID, host order
 *
 * Context: process. Return: 0; -EINVAL if it is not attached by this GID and LID; -EPROTO if the
 * device's table is inconsistent; command errors.
 */
RDMA_MUST_CHECK int ib_detach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid);

/* Memory regions and windows. */

/**
 * ib_check_mr_access - check the access flags of a region (IBA 10.6)
 * @device: the device
 * @flags: enum ib_access_flags
 *
 * Context: any. Return: 0; -EINVAL for an unknown flag, remote write or atomic without local write,
 * or IB_ACCESS_ON_DEMAND without IBK_ON_DEMAND_PAGING.
 */
RDMA_MUST_CHECK int ib_check_mr_access(struct ib_device *device, unsigned int flags);

RDMA_MUST_CHECK struct ib_mr *__ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags,
					      const char *caller);

/**
 * ib_get_dma_mr - create a region of all DMA addresses (IBA 10.6)
 * @pd: the protection domain
 * @mr_access_flags: enum ib_access_flags
 *
 * Most consumers use the PD's local_dma_lkey instead. The caller ends the region with
 * ib_dereg_mr().
 *
 * Context: process. Return: the region; -EINVAL for flags that ib_check_mr_access() refuses;
 * -ENOMEM if there is no memory; -ENOSPC if all keys of the device are in use; command errors.
 */
RDMA_MUST_CHECK static inline struct ib_mr *ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags)
{
	return __ib_get_dma_mr(pd, mr_access_flags, RDMA_CALLER);
}

RDMA_MUST_CHECK struct ib_mr *__ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
					       u64 virt_addr, int mr_access_flags,
					       struct ib_udata *udata, const char *caller);

/**
 * ib_reg_user_mr - create a region of the calling process's memory (IBA 10.6)
 * @pd: the protection domain
 * @start: address in the process
 * @length: bytes; 0 only if @start is not on a page border
 * @virt_addr: the iova that @start gets
 * @mr_access_flags: enum ib_access_flags
 *
 * The caller destroys it with ib_dereg_mr().
 *
 * Context: process. Return: the region; -EINVAL for flags that ib_check_mr_access() refuses, no
 * bytes on a page border, a range that wraps, or a @virt_addr at another offset in its page than
 * @start; -EFAULT if the memory is not mapped, or not writable as the flags require; -ENOMEM if
 * there is no memory; -EPERM, -ENOMEM, -EDQUOT and -EINTR as program errors; -ENOSPC if all keys or
 * translation entries of the device are in use; command errors.
 */
RDMA_MUST_CHECK static inline struct ib_mr *ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
							   u64 virt_addr, int mr_access_flags)
{
	return __ib_reg_user_mr(pd, start, length, virt_addr, mr_access_flags, (struct ib_udata *)0,
				RDMA_CALLER);
}

/**
 * ib_reg_user_mr_user - create a region of a program's memory for the program (IBA 10.6)
 * @pd: the protection domain
 * @start: address in the process
 * @length: bytes; 0 only if @start is not on a page border
 * @virt_addr: the iova that @start gets
 * @mr_access_flags: enum ib_access_flags
 * @udata: the command
 *
 * The caller destroys it with ib_dereg_mr().
 *
 * Context: process, the program's. Return: as ib_reg_user_mr(); program errors.
 */
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
 * ib_alloc_mr - create a region for fast registration (IBA 10.6)
 * @pd: the protection domain
 * @mr_type: IB_MR_TYPE_MEM_REG or IB_MR_TYPE_SG_GAPS
 * @max_num_sg: pages, or segments, that it can take; 1 to max_fast_reg_page_list_len of the device
 *
 * ib_map_mr_sg() fills it, an IB_WR_REG_MR request makes it valid, and an IB_WR_LOCAL_INV request
 * makes it invalid again. The caller destroys it with ib_dereg_mr().
 *
 * Context: process. Return: the region; -EINVAL for another type, or a number of pages out of
 * range; -EOPNOTSUPP for IB_MR_TYPE_SG_GAPS, or without IB_DEVICE_MEM_MGT_EXTENSIONS; -ENOMEM if
 * there is no memory; -ENOSPC if all keys or translation entries of the device are in use; command
 * errors.
 */
RDMA_MUST_CHECK static inline struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type,
							u32 max_num_sg)
{
	return __ib_alloc_mr(pd, mr_type, max_num_sg, RDMA_CALLER);
}

/**
 * ib_map_mr_sg - set the memory of a region from ib_alloc_mr() (IBA 10.6)
 * @mr: the region, which is not valid now; the midlayer does not serialize changes of it
 * @sg: the memory
 * @sg_nents: number of segments
 * @sg_offset: bytes of the first segment to leave out, and on return the bytes taken of the first
 * segment that was not taken whole; or NULL
 * @page_size: bytes of a page, one of page_size_cap of the device; all inner borders of segments
 * lie on a multiple of it
 *
 * Sets the region's iova, length and page_size.
 *
 * Linux: differs by DMA segments instead of a scatterlist.
 *
 * Context: any. Return: number of segments taken whole, which may be fewer than given; -EINVAL for
 * no segments, a page size that the device does not have, a region that is not from ib_alloc_mr(),
 * or if nothing could be taken.
 */
RDMA_MUST_CHECK int ib_map_mr_sg(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
				 unsigned int *sg_offset, unsigned int page_size);

/**
 * ib_sg_to_pages - split DMA segments into pages, for a driver's map_mr_sg (drivers)
 * @mr: the region; page_size is set, and iova and length are set here
 * @sg: the memory
 * @sg_nents: number of segments
 * @sg_offset: as for ib_map_mr_sg()
 * @set_page: called with the DMA address of every page; returns non-zero if the region is full
 *
 * Context: any. Return: number of segments taken whole; -EINVAL for no segments, a first segment
 * that is shorter than the offset, or if nothing could be taken.
 */
RDMA_MUST_CHECK int ib_sg_to_pages(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
				   unsigned int *sg_offset,
				   int (*set_page)(struct ib_mr *mr, u64 address));

/**
 * ib_dereg_mr - undo ib_get_dma_mr(), ib_reg_user_mr() or ib_alloc_mr() (IBA 10.6)
 * @mr: the region
 *
 * Context: process. Return: 0; -EBUSY if the device finds windows bound to it; command errors, from
 * an RNIC only.
 */
RDMA_MUST_CHECK int ib_dereg_mr(struct ib_mr *mr);

RDMA_MUST_CHECK struct ib_mw *__ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type,
					    struct ib_udata *udata, const char *caller);

/**
 * ib_alloc_mw - create a memory window (IBA 10.6)
 * @pd: the protection domain
 * @type: enum ib_mw_type
 *
 * The caller destroys it with ib_dealloc_mw().
 *
 * Context: process. Return: the window; -EINVAL for an unknown type; -EOPNOTSUPP for a type that
 * the device does not have; -ENOMEM if there is no memory; -ENOSPC if all keys of the device are in
 * use; command errors.
 */
RDMA_MUST_CHECK static inline struct ib_mw *ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type)
{
	return __ib_alloc_mw(pd, type, (struct ib_udata *)0, RDMA_CALLER);
}

/**
 * ib_alloc_mw_user - create a memory window for a program (IBA 10.6)
 * @pd: the protection domain
 * @type: enum ib_mw_type
 * @udata: the command
 *
 * The caller destroys it with ib_dealloc_mw().
 *
 * Context: process, the program's. Return: as ib_alloc_mw(); -EAGAIN if the limit of the program's
 * rdma cgroup is reached.
 */
RDMA_MUST_CHECK static inline struct ib_mw *ib_alloc_mw_user(struct ib_pd *pd, enum ib_mw_type type,
							     struct ib_udata *udata)
{
	return __ib_alloc_mw(pd, type, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_mw - undo ib_alloc_mw() (IBA 10.6)
 * @mw: the window
 *
 * Context: process. Return: 0; -EBUSY if the device still uses it, and nothing has changed.
 */
RDMA_MUST_CHECK int ib_dealloc_mw(struct ib_mw *mw);

/*
 * The data path of debug builds, which checks LOCK-01, LOCK-05 and NOTIFY-01. Consumers must not
 * call these functions.
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
 * ib_process_mad - let the agents that are built into a device process a MAD
 * @device: a device whose driver has process_mad; the caller checks this
 * @process_mad_flags: enum ib_process_mad_flags
 * @port_num: the port at which the MAD arrived
 * @in_wc: its completion; NULL if it did not arrive from the wire
 * @in_grh: its GRH, or NULL
 * @in_mad: the MAD
 * @out_mad: zeroed by the caller; filled in with the reply
 * @out_mad_size: size of @out_mad in bytes; on return the size of the reply
 * @out_mad_pkey_index: index of the P_Key of the MAD; on return that of the reply
 *
 * Context: process. Return: enum ib_mad_result, as ib_device_ops.process_mad describes it.
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
 * ib_post_send - post a list of requests to a QP's send queue (IBA 11.4)
 * @qp: the QP
 * @send_wr: the first request of the list; may be reused when this has returned
 * @bad_send_wr: set to the first request that was not posted, on an error; may be NULL
 *
 * Requests before @bad_send_wr are posted even on an error.
 *
 * Context: any. Return: 0; -EINVAL if the QP's state or the request does not allow it; -ENOMEM if
 * the queue is full; -EIO if an RNIC has failed. On mlx4 and mthca, requests that are posted after
 * a failure complete with a flush error.
 */
RDMA_MUST_CHECK static inline int ib_post_send(struct ib_qp *qp, const struct ib_send_wr *send_wr,
					       const struct ib_send_wr **bad_send_wr)
{
	const struct ib_send_wr *unused;

	return RDMA_DATA_PATH(qp, post_send)(qp, send_wr, bad_send_wr ? bad_send_wr : &unused);
}

/**
 * ib_post_recv - post a list of buffers to a QP's receive queue (IBA 11.4)
 * @qp: the QP, without SRQ
 * @recv_wr: the first request of the list; may be reused when this has returned
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
 * ib_post_srq_recv - post a list of buffers to a shared receive queue (IBA 11.4)
 * @srq: the queue
 * @recv_wr: the first request of the list; may be reused when this has returned
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
 * ib_poll_cq - take completions from a queue (IBA 11.4)
 * @cq: a queue from ib_create_cq()
 * @num_entries: maximum number of completions to take
 * @wc: array of that many completions, filled in from the first
 *
 * Concurrent callers get different completions, in an order that is not defined between them
 * (LOCK-04).
 *
 * Context: any. Return: number of completions taken; fewer than @num_entries means that the queue
 * was found empty. The drivers in hw/ return no error.
 */
RDMA_MUST_CHECK static inline int ib_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	return RDMA_DATA_PATH(cq, poll_cq)(cq, num_entries, wc);
}

/**
 * ib_req_notify_cq - request one call of the completion handler (IBA 11.4)
 * @cq: a queue from ib_create_cq()
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, with or without IB_CQ_REPORT_MISSED_EVENTS
 *
 * The rules NOTIFY-01 to NOTIFY-08 apply. After an error, the queue is not armed.
 *
 * Context: any. Return: 0 if the queue is armed, and with IB_CQ_REPORT_MISSED_EVENTS every
 * completion since the last poll raises an event; a positive number, only with that flag, if there
 * may be completions without an event, so that the caller must poll again; -EINVAL for other flags.
 */
RDMA_MUST_CHECK static inline int ib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return RDMA_DATA_PATH(cq, req_notify_cq)(cq, flags);
}

/**
 * ib_peek_cq - count the completions that wait in a queue
 * @cq: the queue
 * @wc_cnt: number at which to stop counting
 *
 * Context: any. Return: number of completions, at most @wc_cnt. The drivers in hw/ return no error.
 */
RDMA_MUST_CHECK static inline int ib_peek_cq(struct ib_cq *cq, int wc_cnt)
{
	return cq->device->ops.peek_cq ? cq->device->ops.peek_cq(cq, wc_cnt) : -EOPNOTSUPP;
}

/**
 * ib_map_mr_sg_zbva - set the memory of a region as ib_map_mr_sg() does, with an iova of 0 (IBA
 * 10.6)
 * @mr: the region
 * @sg: the memory
 * @sg_nents: number of segments
 * @sg_offset: as for ib_map_mr_sg()
 * @page_size: as for ib_map_mr_sg()
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
