// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for protection domains and XRC domains.
#include <kern/log.hpp>
#include "checks.hpp"
#include "device.hpp"

using namespace verbs;

extern "C" {

struct ib_pd *__ib_alloc_pd(struct ib_device *device, unsigned int flags, struct ib_udata *udata,
			    const char *caller)
{
	may_sleep(device, "ib_alloc_pd");
	if (flags & ~IB_PD_UNSAFE_GLOBAL_RKEY)
		return rdma::err_ptr<ib_pd>(-EINVAL);

	Allocation<ib_pd> pd(device->ops.size_ib_pd, memory_for(udata));
	if (!pd)
		return rdma::err_ptr<ib_pd>(-ENOMEM);
	if (int error = pd.belongs_to(device, udata))
		return rdma::err_ptr<ib_pd>(error);
	pd->flags = flags;
	if (int error = VERBS_CALL(device, alloc_pd, pd.get(), udata))
		return rdma::err_ptr<ib_pd>(error);

	/*
	 * An internal region of all memory provides those of the two keys that the device does not
	 * have itself. A program gets neither key.
	 */
	const bool has_lkey = device->attrs.kernel_cap_flags & IBK_LOCAL_DMA_LKEY;
	int access = has_lkey || udata ? 0 : IB_ACCESS_LOCAL_WRITE;
	if (has_lkey && !udata)
		pd->local_dma_lkey = device->local_dma_lkey;
	if (flags & IB_PD_UNSAFE_GLOBAL_RKEY) {
		kern_warning("%s: %s lets its peers at all memory\n", device->name, caller);
		access |= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	}
	if (access) {
		ib_mr *mr = __ib_get_dma_mr(pd.get(), access, caller);
		if (rdma::is_err(mr)) {
			VERBS_CALL(device, dealloc_pd, pd.get(), nullptr);
			return rdma::err_ptr<ib_pd>(rdma::ptr_err(mr));
		}
		/* The internal region does not count as a use of the PD. */
		unuse(pd.get());
		pd->internal_mr = mr;
		if (!has_lkey)
			pd->local_dma_lkey = mr->lkey;
		if (flags & IB_PD_UNSAFE_GLOBAL_RKEY)
			pd->unsafe_global_rkey = mr->rkey;
	}
	list(pd.get(), caller);
	return pd.release();
}

int ib_dealloc_pd_user(struct ib_pd *pd)
{
	may_sleep(pd->device, "ib_dealloc_pd");
	if (in_use(pd))
		return -EBUSY;
	RemovalGuard end(pd);
	if (pd->internal_mr) {
		use(pd);
		if (int error = ib_dereg_mr(pd->internal_mr)) {
			unuse(pd);
			return error;
		}
		pd->internal_mr = nullptr;
	}
	if (int error = VERBS_CALL(pd->device, dealloc_pd, pd, nullptr))
		return error;
	end.remove();
	kern_free(pd);
	return 0;
}

void ib_dealloc_pd(struct ib_pd *pd)
{
	KERN_WARN_ON(ib_dealloc_pd_user(pd));
}

struct ib_xrcd *__ib_alloc_xrcd(struct ib_device *device, struct ib_udata *udata,
				const char *caller)
{
	may_sleep(device, "ib_alloc_xrcd");
	if (!device->ops.alloc_xrcd)
		return rdma::err_ptr<ib_xrcd>(-EOPNOTSUPP);

	Allocation<ib_xrcd> xrcd(device->ops.size_ib_xrcd, memory_for(udata));
	if (!xrcd)
		return rdma::err_ptr<ib_xrcd>(-ENOMEM);
	if (int error = xrcd.belongs_to(device, udata))
		return rdma::err_ptr<ib_xrcd>(error);
	ring_init(xrcd->target_qps);
	if (int error = VERBS_CALL(device, alloc_xrcd, xrcd.get(), udata))
		return rdma::err_ptr<ib_xrcd>(error);
	list(xrcd.get(), caller);
	return xrcd.release();
}

int ib_dealloc_xrcd(struct ib_xrcd *xrcd)
{
	may_sleep(xrcd->device, "ib_dealloc_xrcd");
	if (in_use(xrcd))
		return -EBUSY;
	RemovalGuard end(xrcd);
	if (int error = VERBS_CALL(xrcd->device, dealloc_xrcd, xrcd, nullptr))
		return error;
	end.remove();
	kern_free(xrcd);
	return 0;
}
}
