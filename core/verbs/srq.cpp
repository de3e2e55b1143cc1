// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for shared receive queues (IBA 11.2).
#include "checks.hpp"
#include "device.hpp"

using namespace verbs;

namespace
{

int check(const ib_device &device, const ib_srq_init_attr &init)
{
	const ib_srq_attr &attr = init.attr;

	if (attr.max_wr == 0 || attr.max_wr > static_cast<u32>(device.attrs.max_srq_wr) ||
	    attr.max_sge > static_cast<u32>(device.attrs.max_srq_sge) ||
	    attr.srq_limit > attr.max_wr)
		return -EINVAL;
	switch (init.srq_type) {
	case IB_SRQT_BASIC:
		return 0;
	case IB_SRQT_XRC:
		return belongs(init.ext.cq, device) && belongs(init.ext.xrc.xrcd, device) ? 0
											  : -EINVAL;
	default:
		return -EINVAL;
	}
}

} // namespace

extern "C" {

struct ib_srq *__ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *srq_init_attr,
			       struct ib_udata *udata, const char *caller)
{
	if (!is_object(pd))
		return rdma::err_ptr<ib_srq>(-EINVAL);
	ib_device *device = pd->device;

	may_sleep(device, "ib_create_srq");
	if (!device->ops.create_srq)
		return rdma::err_ptr<ib_srq>(-EOPNOTSUPP);
	if (int error = check(*device, *srq_init_attr))
		return rdma::err_ptr<ib_srq>(error);

	Allocation<ib_srq> srq(device->ops.size_ib_srq, memory_for(udata));
	if (!srq)
		return rdma::err_ptr<ib_srq>(-ENOMEM);
	if (int error = srq.belongs_to(device, udata))
		return rdma::err_ptr<ib_srq>(error);
	srq->pd = pd;
	srq->event_handler = srq_init_attr->event_handler;
	srq->srq_context = srq_init_attr->srq_context;
	srq->srq_type = srq_init_attr->srq_type;
	if (srq->srq_type == IB_SRQT_XRC) {
		srq->ext.cq = srq_init_attr->ext.cq;
		srq->ext.xrc.xrcd = srq_init_attr->ext.xrc.xrcd;
	}
	if (int error = VERBS_CALL(device, create_srq, srq.get(), srq_init_attr, udata))
		return rdma::err_ptr<ib_srq>(error);
	use(pd);
	use(srq->ext.cq);
	use(srq->ext.xrc.xrcd);
	list(srq.get(), caller);
	return srq.release();
}

int ib_modify_srq_user(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
		       enum ib_srq_attr_mask srq_attr_mask, struct ib_udata *udata)
{
	const ib_device_attr &limits = srq->device->attrs;

	may_sleep(srq->device, "ib_modify_srq");
	if (!srq->device->ops.modify_srq)
		return -EOPNOTSUPP;
	if (srq_attr_mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if ((srq_attr_mask & IB_SRQ_MAX_WR) &&
	    (srq_attr->max_wr == 0 || srq_attr->max_wr > static_cast<u32>(limits.max_srq_wr)))
		return -EINVAL;
	if ((srq_attr_mask & IB_SRQ_LIMIT) &&
	    srq_attr->srq_limit > static_cast<u32>(limits.max_srq_wr))
		return -EINVAL;
	return VERBS_CALL(srq->device, modify_srq, srq, srq_attr, srq_attr_mask, udata);
}

int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
		  enum ib_srq_attr_mask srq_attr_mask)
{
	return ib_modify_srq_user(srq, srq_attr, srq_attr_mask, nullptr);
}

int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr)
{
	may_sleep(srq->device, "ib_query_srq");
	if (!srq->device->ops.query_srq)
		return -EOPNOTSUPP;
	return VERBS_CALL(srq->device, query_srq, srq, srq_attr);
}

int ib_destroy_srq_user(struct ib_srq *srq)
{
	may_sleep(srq->device, "ib_destroy_srq");
	if (in_use(srq))
		return -EBUSY;
	RemovalGuard end(srq);
	if (int error = VERBS_CALL(srq->device, destroy_srq, srq, nullptr))
		return error;
	end.remove();
	unuse(srq->ext.xrc.xrcd);
	unuse(srq->ext.cq);
	unuse(srq->pd);
	kern_free(srq);
	return 0;
}

void ib_destroy_srq(struct ib_srq *srq)
{
	KERN_WARN_ON(ib_destroy_srq_user(srq));
}
}
