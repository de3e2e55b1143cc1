/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What programs add to the verbs. weft_uverbs carries a program's commands out by the same
 * functions that kernel consumers call, in their forms that end in _user; the driver finds out by
 * its udata not being NULL.
 *
 * An object of a program knows it (ib_resource.user) for its whole life. Its queues are the
 * program's memory, posted to and polled by the program alone: of a program's objects nobody in the
 * kernel calls the any-context methods (post_send, post_recv, post_srq_recv, poll_cq, peek_cq,
 * req_notify_cq, map_mr_sg), drains, or polls, and ib_destroy_qp() leaves what had not completed to
 * the program's library, which cleans its CQs itself.
 */
#pragma once
#include <rdma/types.h>
#include <rdma/verbs/objects.h>

struct ib_device_attr;
struct ib_qp_attr;

/**
 * struct ib_udata - the part of a program's command that is between its library and the driver
 * @inbuf: in the program's memory
 * @outbuf: the same, for the answer
 * @inlen: bytes of @inbuf
 * @outlen: bytes of @outbuf
 * @context: on whose behalf; every object that the call names belongs to it, or is shared with it
 *
 * A method gets one for calls on behalf of a program only, in the program's own process; NULL says
 * that the kernel calls for itself. Copy with ib_copy_from_udata() and ib_copy_to_udata().
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
 * @device: whose
 * @res: the midlayer's
 *
 * The driver's own begins with it, in the size of ib_device_ops.size_ib_ucontext.
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
 * struct ib_user_mapping - pages of a device that a program may map, MAP_SHARED
 * @pfn: the first page's frame number
 * @length: bytes, whole pages
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
 * ib_copy_from_udata - what a program's library says to the driver (drivers)
 * @to: filled in
 * @udata: the command
 * @size: bytes, from the beginning
 *
 * Context: process, the program's. Return: 0; -EINVAL if it said less; -EFAULT.
 */
RDMA_MUST_CHECK int ib_copy_from_udata(void *to, struct ib_udata *udata, size_t size);

/**
 * ib_copy_to_udata - answer a program's library (drivers)
 * @udata: the command
 * @from: the answer
 * @size: bytes, to the beginning
 *
 * Context: process, the program's. Return: 0; -EINVAL if it has less room; -EFAULT.
 */
RDMA_MUST_CHECK int ib_copy_to_udata(struct ib_udata *udata, const void *from, size_t size);

/**
 * ib_check_udata_tail - see that a library asks for nothing that the driver has not heard of
 * (drivers)
 * @udata: the command
 * @known: bytes that the driver knows
 *
 * Context: process, the program's. Return: 0 if all bytes behind them are 0; -EOPNOTSUPP if not;
 * -EFAULT.
 */
RDMA_MUST_CHECK int ib_check_udata_tail(struct ib_udata *udata, size_t known);

RDMA_MUST_CHECK struct ib_ucontext *__ib_alloc_ucontext(struct ib_device *device,
							struct ib_udata *udata, const char *caller);

/**
 * ib_alloc_ucontext - let a program use a device
 * @device: the device
 * @udata: its context is set to the new one
 *
 * Context: process. Return: the context; -EOPNOTSUPP if the device is not for programs; -ENOMEM;
 * the driver's errors.
 */
RDMA_MUST_CHECK static inline struct ib_ucontext *ib_alloc_ucontext(struct ib_device *device,
								    struct ib_udata *udata)
{
	return __ib_alloc_ucontext(device, udata, RDMA_CALLER);
}

/**
 * ib_dealloc_ucontext - end it
 * @context: nothing made with it is left but XRC domains and XRC target QPs, which may be shared
 * with others; nothing
 *	of the device is mapped into a process through it
 *
 * Context: process, any: the program may be no more.
 */
void ib_dealloc_ucontext(struct ib_ucontext *context);

/**
 * ib_mmap_ucontext - which pages of the device a program gets to see
 * @context: the program's
 * @page_offset: which, in pages; it means what the driver and its library have agreed upon
 * @length: bytes
 * @mapping: filled in; the caller makes the mapping
 *
 * The pages are the context's until ib_dealloc_ucontext(). Context: process.
 * Return: 0; -EINVAL for what cannot be mapped, or not in this length.
 */
RDMA_MUST_CHECK int ib_mmap_ucontext(struct ib_ucontext *context, u64 page_offset, size_t length,
				     struct ib_user_mapping *mapping);

/**
 * ib_query_device_user - what a device can do, with what the driver tells its library
 * @device: the device
 * @attr: filled in
 * @udata: of the extended command; NULL of the plain one
 *
 * Context: process. Return: 0 or the driver's errors.
 */
RDMA_MUST_CHECK int ib_query_device_user(struct ib_device *device, struct ib_device_attr *attr,
					 struct ib_udata *udata);

/**
 * ib_resize_cq_user - ib_resize_cq() for a program
 * @cq: the program's
 * @cqe: completions it must hold
 * @udata: the command; it has the new memory
 *
 * Context: process, the program's. Return: as ib_resize_cq(); the driver's errors.
 */
RDMA_MUST_CHECK int ib_resize_cq_user(struct ib_cq *cq, int cqe, struct ib_udata *udata);

/**
 * ib_modify_srq_user - ib_modify_srq() for a program
 * @srq: the program's
 * @srq_attr: the values
 * @srq_attr_mask: which of them
 * @udata: the command
 *
 * Context: process, the program's. Return: as ib_modify_srq().
 */
RDMA_MUST_CHECK int ib_modify_srq_user(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
				       enum ib_srq_attr_mask srq_attr_mask, struct ib_udata *udata);

/**
 * ib_modify_qp_user - ib_modify_qp() for a program
 * @qp: the program's
 * @qp_attr: the values
 * @qp_attr_mask: which of them
 * @udata: the command
 *
 * What only privileged programs may set is the caller's to refuse. Context: process, the program's.
 * Return: as ib_modify_qp().
 */
RDMA_MUST_CHECK int ib_modify_qp_user(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
				      int qp_attr_mask, struct ib_udata *udata);

/**
 * ib_rereg_user_mr - change a region of a program's memory
 * @mr: from ib_reg_user_mr_user(); nobody else changes it meanwhile
 * @flags: enum ib_mr_rereg_flags: what changes
 * @start: with TRANS: address in the process
 * @length: the same: bytes
 * @virt_addr: the same: the iova that @start gets
 * @mr_access_flags: with ACCESS: enum ib_access_flags
 * @pd: with PD: the new domain
 * @udata: the command
 *
 * The region's keys may be others afterwards. After an error the region is as it was, or has no
 * memory any more (nothing can be done by its keys): it is to be deregistered either way. Context:
 * process, the program's.
 * Return: 0; -EINVAL for no flags, and as ib_reg_user_mr(); -EOPNOTSUPP for unknown flags; -EBUSY
 * while windows are known to be bound to it; the driver's errors.
 */
RDMA_MUST_CHECK int ib_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length,
				     u64 virt_addr, int mr_access_flags, struct ib_pd *pd,
				     struct ib_udata *udata);

/*
 * The ends of objects of a program, which are refused where those of the kernel's only report: it
 * is not a fault of the kernel if a program destroys what it still uses. ib_destroy_qp(),
 * ib_close_qp(), ib_dereg_mr(), ib_dealloc_mw() and ib_dealloc_xrcd() do so for both. The caller
 * sees to it that nobody begins to use the object meanwhile.
 */

/**
 * ib_dealloc_pd_user - undo ib_alloc_pd_user()
 * @pd: the domain
 *
 * Context: process, any: the program may be no more.
 * Return: 0; -EBUSY if something is left in it, and nothing has changed; the driver's errors.
 */
RDMA_MUST_CHECK int ib_dealloc_pd_user(struct ib_pd *pd);

/**
 * ib_destroy_cq_user - undo ib_create_cq_user()
 * @cq: the queue
 *
 * When this has returned 0, neither handler runs. Context: process, any: the program may be no
 * more.
 * Return: 0; -EBUSY if a QP or SRQ uses it, and nothing has changed; the driver's errors.
 */
RDMA_MUST_CHECK int ib_destroy_cq_user(struct ib_cq *cq);

/**
 * ib_destroy_srq_user - undo ib_create_srq_user()
 * @srq: the queue
 *
 * Context: process, any: the program may be no more.
 * Return: 0; -EBUSY if a QP uses it, and nothing has changed; the driver's errors.
 */
RDMA_MUST_CHECK int ib_destroy_srq_user(struct ib_srq *srq);

RDMA_C_END

RDMA_FLAGS(ib_mr_rereg_flags);
