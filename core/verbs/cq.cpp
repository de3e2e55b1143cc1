// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for completion queues (IBA 11.2), except their polling contexts
// (cq_poller.cpp).
#include "checks.hpp"
#include "cq.hpp"
#include "device.hpp"

using namespace verbs;

namespace
{

void ignore_completion(ib_cq *, void *) {}

bool valid_size(const ib_device &device, long cqe)
{
	return cqe > 0 && cqe <= device.attrs.max_cqe;
}

} // namespace

ib_cq *verbs::create_cq(ib_device &device, const ib_cq_init_attr &attr, const CqSetup &setup,
			const char *caller)
{
	may_sleep(&device, "ib_create_cq");
	if (attr.flags || !valid_size(device, attr.cqe) ||
	    attr.comp_vector >= static_cast<u32>(device.num_comp_vectors))
		return rdma::err_ptr<ib_cq>(-EINVAL);

	const size_t size = device.ops.size_ib_cq;
	Allocation<ib_cq> cq(size, memory_for(setup.udata), setup.poller_size);
	if (!cq)
		return rdma::err_ptr<ib_cq>(-ENOMEM);
	if (int error = cq.belongs_to(&device, setup.udata))
		return rdma::err_ptr<ib_cq>(error);
	cq->comp_handler = setup.comp_handler ? setup.comp_handler : ignore_completion;
	cq->event_handler = setup.event_handler;
	cq->cq_context = setup.cq_context;
	cq->comp_vector = attr.comp_vector;
	cq->poll_ctx = setup.poll_ctx;
#ifdef CONFIG_WEFT_DEBUG
	cq->checked_handler = std::exchange(cq->comp_handler, run_handler);
#endif
	if (setup.has_poller)
		cq->poller = construct_poller(cq.tail(size), cq.get());
	if (int error = VERBS_CALL(&device, create_cq, cq.get(), &attr, setup.udata)) {
		destroy_poller(*cq.get());
		return rdma::err_ptr<ib_cq>(error);
	}
	kern_assert(cq->cqe >= static_cast<int>(attr.cqe));
	list(cq.get(), caller);
	return cq.release();
}

int verbs::destroy_cq(ib_cq &cq)
{
	may_sleep(cq.device, "ib_destroy_cq");
	if (in_use(&cq))
		return -EBUSY;
	RemovalGuard end(&cq);
	stop_poller(cq);
	if (int error = VERBS_CALL(cq.device, destroy_cq, &cq, nullptr))
		return error;
	/*
	 * An event between stop_poller() and the driver's destroy_cq may have scheduled the poller
	 * again, so it is destroyed only now.
	 */
	destroy_poller(cq);
	end.remove();
	kern_free(&cq);
	return 0;
}

extern "C" {

struct ib_cq *__ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
			     void (*event_handler)(struct ib_event *event, void *cq_context),
			     void *cq_context, const struct ib_cq_init_attr *cq_attr,
			     struct ib_udata *udata, const char *caller)
{
	return create_cq(*device, *cq_attr,
			 {.comp_handler = comp_handler,
			  .event_handler = event_handler,
			  .cq_context = cq_context,
			  .poll_ctx = IB_POLL_DIRECT,
			  .has_poller = false,
			  .poller_size = 0,
			  .udata = udata},
			 caller);
}

int ib_destroy_cq_user(struct ib_cq *cq)
{
	return destroy_cq(*cq);
}

void ib_destroy_cq(struct ib_cq *cq)
{
	if (KERN_WARN_ON(cq->poller))
		return;
	KERN_WARN_ON(destroy_cq(*cq));
}

int ib_resize_cq_user(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	may_sleep(cq->device, "ib_resize_cq");
	if (!cq->device->ops.resize_cq)
		return -EOPNOTSUPP;
	if (!valid_size(*cq->device, cqe))
		return -EINVAL;
	return VERBS_CALL(cq->device, resize_cq, cq, cqe, udata);
}

int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	return ib_resize_cq_user(cq, cqe, nullptr);
}

int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period)
{
	const ib_cq_caps &caps = cq->device->attrs.cq_caps;

	may_sleep(cq->device, "rdma_set_cq_moderation");
	if (!cq->device->ops.modify_cq)
		return -EOPNOTSUPP;
	if (cq_count > caps.max_cq_moderation_count || cq_period > caps.max_cq_moderation_period)
		return -EINVAL;
	return VERBS_CALL(cq->device, modify_cq, cq, cq_count, cq_period);
}
}
