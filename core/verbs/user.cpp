// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs that only programs need: contexts, and the data that a program's library and
// the driver exchange.
#include <kern/abi/user.h>
#include "checks.hpp"
#include "device.hpp"

using namespace verbs;

extern "C" {

int ib_copy_from_udata(void *to, struct ib_udata *udata, size_t size)
{
	KERN_MIGHT_SLEEP();
	return size > udata->inlen ? -EINVAL : kern_copy_from_user(to, udata->inbuf, size);
}

int ib_copy_to_udata(struct ib_udata *udata, const void *from, size_t size)
{
	KERN_MIGHT_SLEEP();
	return size > udata->outlen ? -EINVAL : kern_copy_to_user(udata->outbuf, from, size);
}

int ib_check_udata_tail(struct ib_udata *udata, size_t known)
{
	KERN_MIGHT_SLEEP();
	if (udata->inlen <= known)
		return 0;
	const int zero = kern_user_is_zero(static_cast<const char *>(udata->inbuf) + known,
					   udata->inlen - known);
	if (zero < 0)
		return zero;
	return zero ? 0 : -EOPNOTSUPP;
}

struct ib_ucontext *__ib_alloc_ucontext(struct ib_device *device, struct ib_udata *udata,
					const char *caller)
{
	may_sleep(device, "ib_alloc_ucontext");
	if (!device->ops.alloc_ucontext)
		return rdma::err_ptr<ib_ucontext>(-EOPNOTSUPP);

	Allocation<ib_ucontext> context(device->ops.size_ib_ucontext, memory_for(udata));
	if (!context)
		return rdma::err_ptr<ib_ucontext>(-ENOMEM);
	if (int error = context.belongs_to(device, udata))
		return rdma::err_ptr<ib_ucontext>(error);
	if (int error = VERBS_CALL(device, alloc_ucontext, context.get(), udata))
		return rdma::err_ptr<ib_ucontext>(error);
	udata->context = context.get();
	list(context.get(), caller);
	return context.release();
}

void ib_dealloc_ucontext(struct ib_ucontext *context)
{
	may_sleep(context->device, "ib_dealloc_ucontext");
	RemovalGuard end(context);
	VERBS_CALL(context->device, dealloc_ucontext, context);
	end.remove();
	kern_free(context);
}

int ib_mmap_ucontext(struct ib_ucontext *context, u64 page_offset, size_t length,
		     struct ib_user_mapping *mapping)
{
	may_sleep(context->device, "ib_mmap_ucontext");
	if (!context->device->ops.mmap)
		return -EINVAL;
	*mapping = {};
	return VERBS_CALL(context->device, mmap, context, page_offset, length, mapping);
}

int ib_query_device_user(struct ib_device *device, struct ib_device_attr *attr,
			 struct ib_udata *udata)
{
	may_sleep(device, "ib_query_device_user");
	*attr = device->attrs;
	return udata && device->ops.query_device
		       ? VERBS_CALL(device, query_device, device, attr, udata)
		       : 0;
}
}
