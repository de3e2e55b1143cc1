// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for memory regions and windows (IBA 10.6, 11.2.7).
#include <kern/bits.hpp>
#include "checks.hpp"
#include "device.hpp"

using namespace verbs;

namespace
{

/*
 * Checks the memory of a process and its address in the region (@virt_addr): neither may wrap
 * around, except that the last byte may have the highest address. A region of zero bytes lies in
 * the page that contains its address; an address on a page boundary is in no such page.
 */
bool valid_range(u64 start, u64 length, u64 virt_addr)
{
	const u64 to_last = length ? length - 1 : 0;

	return (length != 0 || start % kern::page_size != 0) && start + to_last >= start &&
	       virt_addr + to_last >= virt_addr && (start ^ virt_addr) % kern::page_size == 0;
}

/* Creates a region. @create calls the driver's method, which fills in the memory and the keys. */
template<class Create>
ib_mr *create_mr(ib_pd *pd, ib_mr_type type, const ib_udata *udata, const char *caller,
		 Create create)
{
	ib_device *device = pd->device;

	Allocation<ib_mr> mr(device->ops.size_ib_mr, memory_for(udata));
	if (!mr)
		return rdma::err_ptr<ib_mr>(-ENOMEM);
	if (int error = mr.belongs_to(device, udata))
		return rdma::err_ptr<ib_mr>(error);
	mr->pd = pd;
	mr->type = type;
	if (int error = create(mr.get()))
		return rdma::err_ptr<ib_mr>(error);
	use(pd);
	list(mr.get(), caller);
	return mr.release();
}

} // namespace

extern "C" {

int ib_check_mr_access(struct ib_device *device, unsigned int flags)
{
	const bool remote_writable = flags & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);

	if (flags & ~static_cast<unsigned int>(IB_ACCESS_SUPPORTED))
		return -EINVAL;
	if (remote_writable && !(flags & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if ((flags & IB_ACCESS_ON_DEMAND) &&
	    !(device->attrs.kernel_cap_flags & IBK_ON_DEMAND_PAGING))
		return -EINVAL;
	return 0;
}

struct ib_mr *__ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags, const char *caller)
{
	if (!is_object(pd))
		return rdma::err_ptr<ib_mr>(-EINVAL);
	ib_device *device = pd->device;

	may_sleep(device, "ib_get_dma_mr");
	if (!device->ops.get_dma_mr)
		return rdma::err_ptr<ib_mr>(-EOPNOTSUPP);
	if (int error = ib_check_mr_access(device, static_cast<unsigned int>(mr_access_flags)))
		return rdma::err_ptr<ib_mr>(error);
	return create_mr(pd, IB_MR_TYPE_DMA, nullptr, caller, [=](ib_mr *mr) {
		return VERBS_CALL(device, get_dma_mr, mr, mr_access_flags);
	});
}

struct ib_mr *__ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
			       int mr_access_flags, struct ib_udata *udata, const char *caller)
{
	if (!is_object(pd))
		return rdma::err_ptr<ib_mr>(-EINVAL);
	ib_device *device = pd->device;

	may_sleep(device, "ib_reg_user_mr");
	if (!device->ops.reg_user_mr)
		return rdma::err_ptr<ib_mr>(-EOPNOTSUPP);
	if (!valid_range(start, length, virt_addr))
		return rdma::err_ptr<ib_mr>(-EINVAL);
	if (int error = ib_check_mr_access(device, static_cast<unsigned int>(mr_access_flags)))
		return rdma::err_ptr<ib_mr>(error);
	return create_mr(pd, IB_MR_TYPE_USER, udata, caller, [=](ib_mr *mr) {
		mr->iova = virt_addr;
		mr->length = length;
		return VERBS_CALL(device, reg_user_mr, mr, start, length, virt_addr,
				  mr_access_flags, udata);
	});
}

int ib_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 virt_addr,
		     int mr_access_flags, struct ib_pd *pd, struct ib_udata *udata)
{
	ib_device *device = mr->device;

	may_sleep(device, "ib_rereg_user_mr");
	if (!device->ops.rereg_user_mr || (flags & ~static_cast<int>(IB_MR_REREG_SUPPORTED)))
		return -EOPNOTSUPP;
	if (flags == 0 || mr->type != IB_MR_TYPE_USER)
		return -EINVAL;
	if ((flags & IB_MR_REREG_TRANS) && !valid_range(start, length, virt_addr))
		return -EINVAL;
	if ((flags & IB_MR_REREG_PD) && !belongs(pd, *device))
		return -EINVAL;
	if (flags & IB_MR_REREG_ACCESS)
		if (int error =
			    ib_check_mr_access(device, static_cast<unsigned int>(mr_access_flags)))
			return error;
	if (in_use(mr))
		return -EBUSY;
	/* Readers of the region also read its PD, so hide the region while it may change. */
	RemovalGuard change(mr);
	if (int error = VERBS_CALL(device, rereg_user_mr, mr, flags, start, length, virt_addr,
				   mr_access_flags, pd, udata))
		return error;
	if (flags & IB_MR_REREG_TRANS) {
		mr->iova = virt_addr;
		mr->length = length;
	}
	if (flags & IB_MR_REREG_PD) {
		use(pd);
		unuse(std::exchange(mr->pd, pd));
	}
	return 0;
}

struct ib_mr *__ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type, u32 max_num_sg,
			    const char *caller)
{
	if (!is_object(pd))
		return rdma::err_ptr<ib_mr>(-EINVAL);
	ib_device *device = pd->device;

	may_sleep(device, "ib_alloc_mr");
	if (!device->ops.alloc_mr)
		return rdma::err_ptr<ib_mr>(-EOPNOTSUPP);
	if ((mr_type != IB_MR_TYPE_MEM_REG && mr_type != IB_MR_TYPE_SG_GAPS) || max_num_sg == 0 ||
	    max_num_sg > device->attrs.max_fast_reg_page_list_len)
		return rdma::err_ptr<ib_mr>(-EINVAL);
	return create_mr(pd, mr_type, nullptr, caller, [=](ib_mr *mr) {
		return VERBS_CALL(device, alloc_mr, mr, mr_type, max_num_sg);
	});
}

int ib_map_mr_sg(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
		 unsigned int *sg_offset, unsigned int page_size)
{
	const ib_device *device = mr->device;

	if (!device->ops.map_mr_sg)
		return -EOPNOTSUPP;
	if (sg_nents <= 0 || !kern::is_power_of_two(page_size) ||
	    !(device->attrs.page_size_cap & page_size) ||
	    (mr->type != IB_MR_TYPE_MEM_REG && mr->type != IB_MR_TYPE_SG_GAPS))
		return -EINVAL;
	mr->page_size = page_size;
	AtomicMethod section(device, "map_mr_sg");
	return device->ops.map_mr_sg(mr, sg, sg_nents, sg_offset);
}

int ib_sg_to_pages(struct ib_mr *mr, const struct ib_dma_segment *sg, int sg_nents,
		   unsigned int *sg_offset, int (*set_page)(struct ib_mr *mr, u64 address))
{
	const u64 page = mr->page_size;
	u64 skip = sg_offset ? *sg_offset : 0;
	/*
	 * End address of the region so far. It may be on no page boundary only after the last
	 * segment.
	 */
	u64 end = 0;

	if (sg_nents <= 0 || skip > sg[0].length)
		return -EINVAL;
	mr->iova = sg[0].addr + skip;
	mr->length = 0;

	int taken = 0;
	for (; taken < sg_nents; taken++) {
		const u64 first = sg[taken].addr + skip;
		const u64 last = sg[taken].addr + sg[taken].length;
		u64 address = kern::align_down(first, page);

		/*
		 * The region may have no gaps: each segment must continue where the previous one
		 * ended, either on a page boundary or in the page that has been set already.
		 */
		if (taken > 0) {
			if (first == end && first % page != 0)
				address += page;
			else if (first % page != 0 || end % page != 0)
				break;
		}
		for (; address < last; address += page) {
			if (!set_page(mr, address))
				continue;
			/*
			 * The region is full. The part of this segment that was mapped is kept, and
			 * the caller continues after it.
			 */
			const u64 got = address > first ? address - first : 0;
			mr->length += got;
			if (sg_offset)
				*sg_offset = static_cast<unsigned int>(skip + got);
			return mr->length ? taken : -EINVAL;
		}
		mr->length += last - first;
		end = last;
		skip = 0;
	}
	if (sg_offset)
		*sg_offset = 0;
	return taken;
}

int ib_dereg_mr(struct ib_mr *mr)
{
	ib_pd *pd = mr->pd;

	may_sleep(mr->device, "ib_dereg_mr");
	RemovalGuard end(mr);
	if (int error = VERBS_CALL(mr->device, dereg_mr, mr, nullptr))
		return error;
	end.remove();
	unuse(pd);
	kern_free(mr);
	return 0;
}

struct ib_mw *__ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type, struct ib_udata *udata,
			    const char *caller)
{
	if (!is_object(pd))
		return rdma::err_ptr<ib_mw>(-EINVAL);
	ib_device *device = pd->device;

	may_sleep(device, "ib_alloc_mw");
	if (!device->ops.alloc_mw)
		return rdma::err_ptr<ib_mw>(-EOPNOTSUPP);
	if (type != IB_MW_TYPE_1 && type != IB_MW_TYPE_2)
		return rdma::err_ptr<ib_mw>(-EINVAL);

	Allocation<ib_mw> mw(device->ops.size_ib_mw, memory_for(udata));
	if (!mw)
		return rdma::err_ptr<ib_mw>(-ENOMEM);
	if (int error = mw.belongs_to(device, udata))
		return rdma::err_ptr<ib_mw>(error);
	mw->pd = pd;
	mw->type = type;
	if (int error = VERBS_CALL(device, alloc_mw, mw.get(), udata))
		return rdma::err_ptr<ib_mw>(error);
	use(pd);
	list(mw.get(), caller);
	return mw.release();
}

int ib_dealloc_mw(struct ib_mw *mw)
{
	may_sleep(mw->device, "ib_dealloc_mw");
	RemovalGuard end(mw);
	if (int error = VERBS_CALL(mw->device, dealloc_mw, mw))
		return error;
	end.remove();
	unuse(mw->pd);
	kern_free(mw);
	return 0;
}
}
