// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests objects of programs: the driver's udata, contexts, owners of objects, rejected operations,
// and reregistration.
#include <kern/kunit_process.hpp>
#include <kern/work.hpp>
#include <kern/abi/user.h>
#include <rdma/ib_resources.h>
#include "fixture.hpp"

using namespace fixture;

namespace
{

using kern::kunit::Mapping;

/* A command of a user library, in the memory of a simulated process. */
struct Command {
	Mapping memory{2 * kern::page_size};
	ib_udata udata{.inbuf = memory.pointer(),
		       .outbuf = static_cast<char *>(memory.pointer()) + kern::page_size,
		       .inlen = 0,
		       .outlen = 0,
		       .context = nullptr};

	bool put(size_t at, u8 byte)
	{
		return kern_copy_to_user(static_cast<char *>(memory.pointer()) + at, &byte, 1) == 0;
	}
};

/* A device that supports programs, and records the commands that it gets. */
struct Bench {
	kern::kunit::Process process;
	Device device;
	Command command;
	ib_ucontext *context = nullptr;

	static inline ib_ucontext *alive;
	static inline ib_udata *passed;
	static inline int flags;
	static inline int answer;

	Bench()
	{
		alive = nullptr;
		passed = nullptr;
		flags = answer = 0;
		if (!device.ok())
			return;
		ib_device_ops &ops = device.get()->ops;
		ops.size_ib_ucontext = sizeof(ib_ucontext);
		ops.alloc_ucontext = [](ib_ucontext *own, ib_udata *udata) {
			passed = udata;
			if (answer == 0)
				alive = own;
			return answer;
		};
		ops.dealloc_ucontext = [](ib_ucontext *own) {
			if (alive == own)
				alive = nullptr;
		};
		ops.reg_user_mr = [](ib_mr *mr, u64, u64, u64, int, ib_udata *udata) {
			passed = udata;
			mr->lkey = mr->rkey = 0x100;
			return 0;
		};
		ops.dereg_mr = [](ib_mr *, ib_udata *) { return 0; };
		ops.rereg_user_mr = [](ib_mr *, int asked, u64, u64, u64, int, ib_pd *,
				       ib_udata *udata) {
			passed = udata;
			flags = asked;
			return answer;
		};
		context = ib_alloc_ucontext(device, udata());
	}
	~Bench()
	{
		if (ok())
			ib_dealloc_ucontext(context);
	}
	bool ok() const
	{
		return process && command.memory.address() && context && !rdma::is_err(context);
	}
	ib_udata *udata() { return &command.udata; }
};

void udata_is_not_copied_beyond_its_bounds(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	ib_udata &udata = bench.command.udata;
	u8 bytes[16] = {};
	for (u8 i = 0; i < 16; i++)
		ASSERT_TRUE(bench.command.put(i, i < 12 ? i + 1 : 0));
	udata.inlen = 12;
	EXPECT_EQ(ib_copy_from_udata(bytes, &udata, 13), -EINVAL);
	EXPECT_EQ(ib_copy_from_udata(bytes, &udata, 12), 0);
	EXPECT_EQ(bytes[11], 12);
	/* Bytes behind the part that the driver knows must be zero. */
	EXPECT_EQ(ib_check_udata_tail(&udata, 12), 0);
	EXPECT_EQ(ib_check_udata_tail(&udata, 16), 0);
	EXPECT_EQ(ib_check_udata_tail(&udata, 11), -EOPNOTSUPP);
	udata.inlen = 16;
	EXPECT_EQ(ib_check_udata_tail(&udata, 12), 0);
	ASSERT_TRUE(bench.command.put(15, 1));
	EXPECT_EQ(ib_check_udata_tail(&udata, 12), -EOPNOTSUPP);

	udata.outlen = 8;
	EXPECT_EQ(ib_copy_to_udata(&udata, bytes, 9), -EINVAL);
	EXPECT_EQ(ib_copy_to_udata(&udata, bytes, 8), 0);
	u8 seen[8] = {};
	ASSERT_EQ(kern_copy_from_user(seen, udata.outbuf, 8), 0);
	EXPECT_EQ(seen[7], 8);

	kern_kunit_process_unmap(bench.command.memory.address(), 2 * kern::page_size);
	EXPECT_EQ(ib_copy_from_udata(bytes, &udata, 8), -EFAULT);
	EXPECT_EQ(ib_copy_to_udata(&udata, bytes, 8), -EFAULT);
	EXPECT_EQ(ib_check_udata_tail(&udata, 8), -EFAULT);
}

void program_keeps_its_context_if_the_driver_fails_to_allocate_a_second_context(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	EXPECT_TRUE(Bench::alive == bench.context);
	EXPECT_TRUE(bench.udata()->context == bench.context);
	EXPECT_TRUE(bench.context->device == bench.device.get());
	/* If the driver refuses, the program keeps its existing context. */
	Bench::answer = -ENOSPC;
	EXPECT_EQ(rdma::ptr_err(ib_alloc_ucontext(bench.device, bench.udata())), -ENOSPC);
	EXPECT_TRUE(bench.udata()->context == bench.context);
	auto open = std::exchange(bench.device.get()->ops.alloc_ucontext, nullptr);
	EXPECT_EQ(rdma::ptr_err(ib_alloc_ucontext(bench.device, bench.udata())), -EOPNOTSUPP);
	bench.device.get()->ops.alloc_ucontext = open;
	ib_user_mapping mapping;
	EXPECT_EQ(ib_mmap_ucontext(bench.context, 0, kern::page_size, &mapping), -EINVAL);
}

/*
 * A program's objects belong to it for life and have no keys of the kernel. They refuse operations
 * that the kernel's objects only report.
 */
void objects_of_a_program_record_the_process_that_created_them(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	ib_pd *pd = ib_alloc_pd_user(bench.device, bench.udata());
	ASSERT_FALSE(rdma::is_err(pd));
	EXPECT_TRUE(pd->res.user);
	/* Resource listings show the owner. */
	ib_resource_info shown;
	ASSERT_EQ(ib_next_resource(bench.device, IB_RESOURCE_CTX, 0, &shown), 0);
	const u32 context = shown.context;
	EXPECT_EQ(context, shown.number);
	u32 at = 0;
	while (ib_next_resource(bench.device, IB_RESOURCE_PD, at, &shown) == 0 &&
	       shown.context == IB_NO_RESOURCE)
		at = shown.number + 1;
	EXPECT_EQ(shown.context, context);
	EXPECT_NE(shown.process, 0u);
	EXPECT_EQ(pd->local_dma_lkey, 0u);
	EXPECT_TRUE(pd->internal_mr == nullptr);
	ib_pd *kernels = ib_alloc_pd(bench.device, 0);
	ASSERT_FALSE(rdma::is_err(kernels));
	EXPECT_FALSE(kernels->res.user);
	ib_dealloc_pd(kernels);

	const ib_cq_init_attr cq_attr = {.cqe = 16, .comp_vector = 0, .flags = 0};
	ib_cq *cq =
		ib_create_cq_user(bench.device, nullptr, nullptr, nullptr, &cq_attr, bench.udata());
	ASSERT_FALSE(rdma::is_err(cq));
	EXPECT_TRUE(cq->res.user);
	ib_qp_init_attr attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = cq;
	for (ib_qp_type type : {IB_QPT_SMI, IB_QPT_GSI}) {
		ib_qp_init_attr special = attr;
		special.qp_type = type;
		EXPECT_EQ(rdma::ptr_err(ib_create_qp_user(pd, &special, bench.udata())), -EINVAL);
	}
	for (u32 flag : {u32{IB_QP_CREATE_IPOIB_UD_LSO}, u32{IB_QP_CREATE_NETIF_QP},
			 u32{IB_QP_CREATE_RESERVED_START}}) {
		ib_qp_init_attr flagged = attr;
		flagged.create_flags = flag;
		EXPECT_EQ(rdma::ptr_err(ib_create_qp_user(pd, &flagged, bench.udata())), -EINVAL);
	}
	ib_qp *qp = ib_create_qp_user(pd, &attr, bench.udata());
	ASSERT_FALSE(rdma::is_err(qp));
	EXPECT_TRUE(qp->res.user);

	/*
	 * A target QP is created by the kernel on behalf of all programs that have its domain. Its
	 * SRQ belongs to the program.
	 */
	for (ib_udata *udata : {bench.udata(), static_cast<ib_udata *>(nullptr)}) {
		ib_xrcd *domain = ib_alloc_xrcd_user(bench.device, udata);
		ASSERT_FALSE(rdma::is_err(domain));
		ib_qp_init_attr of_domain = qp_attr(IB_QPT_XRC_TGT);
		of_domain.xrcd = domain;
		ib_qp *target = ib_create_qp(nullptr, &of_domain);
		ASSERT_FALSE(rdma::is_err(target));
		EXPECT_EQ(target->res.user, udata != nullptr);
		EXPECT_EQ(ib_destroy_qp(target), 0);
		EXPECT_EQ(ib_dealloc_xrcd(domain), 0);
	}

	EXPECT_EQ(ib_destroy_cq_user(cq), -EBUSY);
	EXPECT_EQ(ib_dealloc_pd_user(pd), -EBUSY);
	EXPECT_EQ(ib_destroy_qp(qp), 0);
	EXPECT_EQ(ib_destroy_cq_user(cq), 0);
	EXPECT_EQ(ib_dealloc_pd_user(pd), 0);
}

/* A task that belongs to no process, and so has no QP. */
struct OtherProcess {
	ib_device *device;
	u32 number = 0;
	bool has = true;
	kern::Work work{kern::method<&OtherProcess::query>, this};

	explicit OtherProcess(ib_device *which) : device(which) {}
	void query() { has = ib_process_has_qp(device, number); }
	bool lacks(u32 qp_num)
	{
		number = qp_num;
		work.queue();
		work.flush();
		return !has;
	}
};

/* A device whose driver checks, while it destroys a queue pair, whether it can be found. */
struct Ending {
	explicit Ending(ib_device *which) : device(which)
	{
		destroy = std::exchange(device->ops.destroy_qp, query);
		found = false;
	}
	~Ending() { device->ops.destroy_qp = destroy; }
	static int query(ib_qp *qp, ib_udata *udata)
	{
		found = ib_process_has_qp(qp->device, qp->qp_num);
		return destroy(qp, udata);
	}

	ib_device *device;
	static inline int (*destroy)(ib_qp *qp, ib_udata *udata);
	static inline bool found;
};

/*
 * A queue pair belongs to the process that created or opened it; the kernel's belong to no process.
 */
void rcm_16_only_the_owning_process_finds_a_queue_pair_by_number(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	OtherProcess outsider(bench.device);
	const auto has = [&](u32 number) { return ib_process_has_qp(bench.device, number); };
	ib_pd *pd = ib_alloc_pd_user(bench.device, bench.udata());
	const ib_cq_init_attr cq_attr = {.cqe = 16, .comp_vector = 0, .flags = 0};
	ib_cq *cq =
		ib_create_cq_user(bench.device, nullptr, nullptr, nullptr, &cq_attr, bench.udata());
	ib_xrcd *domain = ib_alloc_xrcd_user(bench.device, bench.udata());
	ASSERT_FALSE(rdma::is_err(pd) || rdma::is_err(cq) || rdma::is_err(domain));
	ib_qp_init_attr attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = cq;
	ib_qp *own = ib_create_qp_user(pd, &attr, bench.udata());
	ib_qp *kernels = ib_create_qp(pd, &attr);
	ib_qp_init_attr of_domain = qp_attr(IB_QPT_XRC_TGT);
	of_domain.xrcd = domain;
	ib_qp *target = ib_create_qp(nullptr, &of_domain);
	ASSERT_FALSE(rdma::is_err(own) || rdma::is_err(kernels) || rdma::is_err(target));
	const u32 number = own->qp_num;
	EXPECT_TRUE(has(number));
	EXPECT_TRUE(outsider.lacks(number));
	EXPECT_FALSE(has(kernels->qp_num));
	EXPECT_TRUE(outsider.lacks(kernels->qp_num));
	EXPECT_FALSE(has(0xfffffe));

	ib_qp_open_attr open = {
		.event_handler = nullptr, .qp_num = target->qp_num, .qp_type = IB_QPT_XRC_TGT};
	EXPECT_FALSE(has(target->qp_num));
	ib_qp *handle = ib_open_qp(domain, &open);
	ASSERT_FALSE(rdma::is_err(handle));
	EXPECT_TRUE(has(target->qp_num));
	EXPECT_TRUE(outsider.lacks(target->qp_num));
	EXPECT_EQ(ib_close_qp(handle), 0);
	EXPECT_FALSE(has(target->qp_num));

	EXPECT_EQ(ib_destroy_qp(target), 0);
	EXPECT_EQ(ib_destroy_qp(kernels), 0);
	{
		/*
		 * A QP whose destruction fails can be found again. During the destruction its
		 * number may be reused.
		 */
		Ending ending(bench.device);
		soft_fail(bench.device, SOFT_DESTROY_QP, 1, -EBUSY);
		EXPECT_EQ(ib_destroy_qp(own), -EBUSY);
		EXPECT_FALSE(Ending::found);
		EXPECT_TRUE(has(number));
		EXPECT_EQ(ib_destroy_qp(own), 0);
		EXPECT_FALSE(Ending::found);
	}
	/* The number belongs to no process any more, or not yet. */
	EXPECT_FALSE(has(number));
	EXPECT_EQ(ib_dealloc_xrcd(domain), 0);
	EXPECT_EQ(ib_destroy_cq_user(cq), 0);
	EXPECT_EQ(ib_dealloc_pd_user(pd), 0);
}

void failed_reregistration_leaves_the_memory_region_unchanged(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	ib_pd *pd = ib_alloc_pd_user(bench.device, bench.udata());
	ib_pd *other = ib_alloc_pd_user(bench.device, bench.udata());
	ASSERT_FALSE(rdma::is_err(pd) || rdma::is_err(other));
	ib_mr *mr = ib_reg_user_mr_user(pd, 0x1000, 0x800, 0x5000, 0, bench.udata());
	ASSERT_FALSE(rdma::is_err(mr));
	EXPECT_TRUE(Bench::passed == bench.udata() && mr->res.user);
	const auto change = [&](int flags, u64 start, u64 length, u64 iova, int access, ib_pd *to) {
		return ib_rereg_user_mr(mr, flags, start, length, iova, access, to, bench.udata());
	};
	EXPECT_EQ(change(0, 0, 0, 0, 0, nullptr), -EINVAL);
	EXPECT_EQ(change(8, 0, 0, 0, 0, nullptr), -EOPNOTSUPP);
	EXPECT_EQ(change(IB_MR_REREG_TRANS, 0x1000, 0, 0x1000, 0, nullptr), -EINVAL);
	EXPECT_EQ(change(IB_MR_REREG_TRANS, 0x1001, 1, 0x1000, 0, nullptr), -EINVAL);
	EXPECT_EQ(change(IB_MR_REREG_TRANS, ~u64{0xfff}, 0x1001, 0x1000, 0, nullptr), -EINVAL);
	EXPECT_EQ(change(IB_MR_REREG_ACCESS, 0, 0, 0, IB_ACCESS_REMOTE_WRITE, nullptr), -EINVAL);
	EXPECT_EQ(change(IB_MR_REREG_PD, 0, 0, 0, 0, nullptr), -EINVAL);
	mr->usecnt = 1;
	EXPECT_EQ(change(IB_MR_REREG_PD, 0, 0, 0, 0, other), -EBUSY);
	mr->usecnt = 0;
	/*
	 * The driver was not called for any of these. If the driver refuses a change, the region is
	 * unchanged.
	 */
	EXPECT_EQ(Bench::flags, 0);
	Bench::answer = -ENOMEM;
	EXPECT_EQ(change(IB_MR_REREG_PD | IB_MR_REREG_TRANS, 0x3000, 0x10, 0x7000, 0, other),
		  -ENOMEM);
	EXPECT_TRUE(mr->pd == pd && mr->iova == 0x5000 && mr->length == 0x800);
	EXPECT_EQ(ib_dealloc_pd_user(pd), -EBUSY);

	Bench::answer = 0;
	EXPECT_EQ(change(IB_MR_REREG_PD | IB_MR_REREG_TRANS, 0x3000, 0x10, 0x7000, 0, other), 0);
	EXPECT_TRUE(mr->pd == other && mr->iova == 0x7000 && mr->length == 0x10);
	EXPECT_EQ(ib_dealloc_pd_user(pd), 0);
	EXPECT_EQ(ib_dealloc_pd_user(other), -EBUSY);
	EXPECT_EQ(ib_dereg_mr(mr), 0);
	EXPECT_EQ(ib_dealloc_pd_user(other), 0);
}

SOFT_SUITES(verbs_user, KUNIT_CASE(udata_is_not_copied_beyond_its_bounds),
	    KUNIT_CASE(program_keeps_its_context_if_the_driver_fails_to_allocate_a_second_context),
	    KUNIT_CASE(objects_of_a_program_record_the_process_that_created_them),
	    KUNIT_CASE(rcm_16_only_the_owning_process_finds_a_queue_pair_by_number),
	    KUNIT_CASE(failed_reregistration_leaves_the_memory_region_unchanged));

} // namespace
