/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the part of the verbs for programs. weft_uverbs executes a program's commands with the
 * functions that kernel consumers call, in the variants whose names end in _user. A driver
 * recognizes such a call by its udata, which is not NULL.
 *
 * ib_resource.user marks an object of a program for its whole life. Its queues are in the program's
 * memory, and only the program posts to them and polls them. The kernel does not call the
 * any-context methods on a program's objects (post_send, post_recv, post_srq_recv, poll_cq,
 * peek_cq, req_notify_cq, map_mr_sg), and does not drain them. ib_destroy_qp() leaves requests that
 * have not completed to the program's library, which cleans its CQs itself.
 */
#pragma once
#include <rdma/types.h>
#include <rdma/verbs/objects.h>

struct ib_device_attr;
struct ib_qp_attr;

/**
 * struct ib_udata - the part of a program's command that its library and the driver exchange
 * @inbuf: request of the library, in the program's memory
 * @outbuf: space for the response, in the program's memory
 * @inlen: bytes of @inbuf
 * @outlen: bytes of @outbuf
 * @context: the program's context; every object of the call belongs to it, or is shared with it
 *
 * A method gets it only for calls on behalf of a program, in the program's own process. It is NULL
 * for calls of the kernel. Copy with ib_copy_from_udata() and ib_copy_to_udata().
 */
struct ib_udata {
	const void __user *inbuf;
	void __user *outbuf;
	size_t inlen;
	size_t outlen;
	struct ib_ucontext *context;
};

/**
 * struct ib_ucontext - a program's use of a device
 * @device: the device
 * @res: for the midlayer
 *
 * The driver's own structure begins with it; its size is ib_device_ops.size_ib_ucontext.
 */
struct ib_ucontext {
	struct ib_device *device;
	struct ib_resource res;
};

enum ib_user_caching {
	IB_USER_UNCACHED,
	IB_USER_WRITE_COMBINING,
};

/**
 * struct ib_user_mapping - pages of a device that a program may map with MAP_SHARED
 * @pfn: frame number of the first page
 * @length: bytes, a multiple of the page size
 * @caching: enum ib_user_caching
 * @writable: whether a mapping may be written; if not, it may only be read
 */
struct ib_user_mapping {
	u64 pfn;
	size_t length;
	enum ib_user_caching caching;
	bool writable;
};

enum ib_mr_rereg_flags {
	IB_MR_REREG_TRANS = 1 << 0,
	IB_MR_REREG_PD = 1 << 1,
	IB_MR_REREG_ACCESS = 1 << 2,
	IB_MR_REREG_SUPPORTED = (1 << 3) - 1,
};

RDMA_C_BEGIN

/**
 * ib_copy_from_udata - copy the request of a program's library (drivers)
 * @to: filled in
 * @udata: the command
 * @size: bytes to copy, from the beginning
 *
 * Context: process, the program's. Return: 0; -EINVAL if the request is shorter than @size; -EFAULT
 * if the program's memory cannot be read.
 */
RDMA_MUST_CHECK int ib_copy_from_udata(void *to, struct ib_udata *udata, size_t size);

/**
 * ib_copy_to_udata - copy the response for a program's library (drivers)
 * @udata: the command
 * @from: the response
 * @size: bytes to copy, to the beginning
 *
 * Context: process, the program's. Return: 0; -EINVAL if the space for the response is smaller than
 * @size; -EFAULT if the program's memory cannot be written.
 */
RDMA_MUST_CHECK int ib_copy_to_udata(struct ib_udata *udata, const void *from, size_t size);

/**
 * ib_check_udata_tail - check that a request has no data that the driver does not know (drivers)
 * @udata: the command
 * @known: bytes that the driver knows
 *
 * Context: process, the program's. Return: 0 if all bytes of the request behind @known are 0, or
 * there are none; -EOPNOTSUPP if one is not; -EFAULT if the program's memory cannot be read.
 */
RDMA_MUST_CHECK int ib_check_udata_tail(struct ib_udata *udata, size_t known);

RDMA_MUST_CHECK struct ib_ucontext *__ib_alloc_ucontext(struct ib_device *device,
							struct ib_udata *udata, const char *caller);

/**
 * ib_alloc_ucontext - let a program use a device
 * @device: the device
 * @udata: the command; its context is set to the new one
 *
 * The caller undoes it with ib_dealloc_ucontext().
 *
 * Context: process, the program's. Return: the context; -EOPNOTSUPP if the driver does not serve
 * programs; -ENOMEM if there is no memory, or all doorbell pages of the device are in use; -EFAULT
 * and -EINVAL if the response cannot be written; -EAGAIN if the limit of the program's rdma cgroup
 * is reached.
 */
RDMA_MUST_CHECK static inline struct ib_ucontext *ib_alloc_ucontext(struct ib_device *device,
								    struct ib_udata *udata)
{
	return __ib_alloc_ucontext(device, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_ucontext - undo ib_alloc_ucontext()
 * @context: the context. Of the objects created with it, only XRC domains and XRC target QPs are
 * left, which may be shared with other programs; nothing of the device is mapped into a process
 * through it
 *
 * Context: process, any: the program may have exited.
 */
void ib_dealloc_ucontext(struct ib_ucontext *context);

/**
 * ib_mmap_ucontext - find the pages of the device that a program may map
 * @context: the program's context
 * @page_offset: the requested pages, as the driver and its library have agreed; in pages
 * @length: bytes
 * @mapping: filled in; the caller creates the mapping
 *
 * The pages belong to the context until ib_dealloc_ucontext().
 *
 * Context: process. Return: 0; -EINVAL if the driver has nothing that programs can map, or nothing
 * with this offset or length.
 */
RDMA_MUST_CHECK int ib_mmap_ucontext(struct ib_ucontext *context, u64 page_offset, size_t length,
				     struct ib_user_mapping *mapping);

/**
 * ib_query_device_user - read the limits of a device, and the driver's response to its library (IBA
 * 11.2.1)
 * @device: the device
 * @attr: filled in
 * @udata: the command, if it is the extended one, else NULL; then the driver is not called
 *
 * Context: process, the program's. Return: 0; -EFAULT and -EINVAL if the response cannot be
 * written.
 */
RDMA_MUST_CHECK int ib_query_device_user(struct ib_device *device, struct ib_device_attr *attr,
					 struct ib_udata *udata);

/**
 * ib_resize_cq_user - ib_resize_cq() for a program (IBA 11.2)
 * @cq: the program's queue
 * @cqe: completions that it must hold, 1 to max_cqe of the device
 * @udata: the command; the library passes the new memory in it
 *
 * Context: process, the program's. Return: as ib_resize_cq(); the program errors of
 * rdma/ib_verbs.h.
 */
RDMA_MUST_CHECK int ib_resize_cq_user(struct ib_cq *cq, int cqe, struct ib_udata *udata);

/**
 * ib_modify_srq_user - ib_modify_srq() for a program (IBA 11.2)
 * @srq: the program's queue
 * @srq_attr: the values
 * @srq_attr_mask: enum ib_srq_attr_mask: the values to set
 * @udata: the command
 *
 * Context: process, the program's. Return: as ib_modify_srq().
 */
RDMA_MUST_CHECK int ib_modify_srq_user(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
				       enum ib_srq_attr_mask srq_attr_mask, struct ib_udata *udata);

/**
 * ib_modify_qp_user - ib_modify_qp() for a program (IBA 11.2.5.2)
 * @qp: the program's QP
 * @qp_attr: the values
 * @qp_attr_mask: enum ib_qp_attr_mask: the values to set
 * @udata: the command
 *
 * The caller checks the privileges that an attribute needs.
 *
 * Context: process, the program's. Return: as ib_modify_qp().
 */
RDMA_MUST_CHECK int ib_modify_qp_user(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
				      int qp_attr_mask, struct ib_udata *udata);

/**
 * ib_rereg_user_mr - change a region of a program's memory (IBA 10.6)
 * @mr: the region, from ib_reg_user_mr_user(); the caller serializes its changes
 * @flags: enum ib_mr_rereg_flags: what changes
 * @start: with IB_MR_REREG_TRANS: address in the process
 * @length: with IB_MR_REREG_TRANS: bytes
 * @virt_addr: with IB_MR_REREG_TRANS: the iova that @start gets
 * @mr_access_flags: with IB_MR_REREG_ACCESS: enum ib_access_flags
 * @pd: with IB_MR_REREG_PD: the new domain
 * @udata: the command
 *
 * The region's keys may change. After an error the region is unchanged, or its keys no longer give
 * access to memory: the caller deregisters it either way.
 *
 * Context: process, the program's.
 *
 * Return: 0; -EINVAL for no flags, a region that is not a program's memory, a domain of another
 * device, or as ib_reg_user_mr(); -EOPNOTSUPP for unknown flags; -EBUSY while windows are known to
 * be bound to it; -EPERM for access that writes, without IB_MR_REREG_TRANS, to memory that the
 * program may only read; the other errors of ib_reg_user_mr_user().
 */
RDMA_MUST_CHECK int ib_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length,
				     u64 virt_addr, int mr_access_flags, struct ib_pd *pd,
				     struct ib_udata *udata);

/*
 * Functions that destroy objects of a program. They return -EBUSY where those for the kernel's
 * objects warn, because it is not a defect of the kernel if a program destroys an object that is
 * still used. ib_destroy_qp(), ib_close_qp(), ib_dereg_mr(), ib_dealloc_mw() and ib_dealloc_xrcd()
 * do so for both. The caller must prevent other uses of the object meanwhile.
 */

/**
 * ib_dealloc_pd_user - undo ib_alloc_pd_user() (IBA 11.2.1)
 * @pd: the domain
 *
 * Context: process, any: the program may have exited.
 *
 * Return: 0; -EBUSY if objects are left in it, and nothing has changed. The drivers in hw/ return
 * no error.
 */
RDMA_MUST_CHECK int ib_dealloc_pd_user(struct ib_pd *pd);

/**
 * ib_destroy_cq_user - undo ib_create_cq_user() (IBA 11.2)
 * @cq: the queue
 *
 * When this has returned 0, neither handler runs.
 *
 * Context: process, any: the program may have exited.
 *
 * Return: 0; -EBUSY if a QP or SRQ uses it, and nothing has changed. The drivers in hw/ return no
 * error.
 */
RDMA_MUST_CHECK int ib_destroy_cq_user(struct ib_cq *cq);

/**
 * ib_destroy_srq_user - undo ib_create_srq_user() (IBA 11.2)
 * @srq: the queue
 *
 * Context: process, any: the program may have exited.
 *
 * Return: 0; -EBUSY if a QP uses it, and nothing has changed. The drivers in hw/ return no error.
 */
RDMA_MUST_CHECK int ib_destroy_srq_user(struct ib_srq *srq);

RDMA_C_END

RDMA_FLAGS(ib_mr_rereg_flags);
