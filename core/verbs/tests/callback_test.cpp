// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule LOCK-05: a driver does not call a consumer's handler from within a method.
#include <rdma/driver.hpp>
#include <rdma/ib_hw_counters.h>
#include <rdma/ib_mad.h>
#include "fixture.hpp"
#include "observer.hpp"

using namespace fixture;

namespace
{

/* The CQ whose handlers the methods below call. */
constinit ib_cq *handled;

/* Replaces a method by one that calls a handler of each kind and fails. */
template<auto member>
struct Misbehaving;
template<class R, class... Args, R (*ib_device_ops::*member)(Args...)>
struct Misbehaving<member> {
	static void install(ib_device_ops &ops) { ops.*member = call; }
	static R call(Args...)
	{
		rdma::complete(handled);
		rdma::dispatch(IB_EVENT_CQ_ERR, handled);
		if constexpr (!__is_same(R, void))
			return outcome();
	}
	static int outcome()
	{
		/* The destruction of an address handle cannot fail. */
		if constexpr (__is_same(decltype(member), decltype(&ib_device_ops::destroy_ah)))
			return 0;
		return -EIO;
	}
};

struct Objects {
	ib_device *device = nullptr;
	/* The original method of the software device. */
	decltype(ib_device_ops::query_device) query_device = nullptr;
	ib_pd *pd = nullptr;
	ib_pd *unused_pd = nullptr;
	ib_xrcd *xrcd = nullptr;
	ib_cq *cq = nullptr;
	ib_srq *srq = nullptr;
	ib_qp *qp = nullptr;
	ib_qp *datagram = nullptr;
	ib_mr *mr = nullptr;
	ib_mw *mw = nullptr;
	/* The test destroys an address handle while the driver's method is replaced. */
	ib_ah *ah = nullptr;
	ib_ah *sleepable_ah = nullptr;
	ib_ah *atomic_ah = nullptr;

	bool create(ib_device *on)
	{
		device = on;
		query_device = device->ops.query_device;
		const ib_cq_init_attr cq_attr = {.cqe = 16, .comp_vector = 0, .flags = 0};
		cq = ib_create_cq(device, nullptr, nullptr, nullptr, &cq_attr);
		pd = ib_alloc_pd(device, 0);
		unused_pd = ib_alloc_pd(device, 0);
		xrcd = ib_alloc_xrcd(device);
		if (rdma::is_err(cq) || rdma::is_err(pd) || rdma::is_err(unused_pd) ||
		    rdma::is_err(xrcd))
			return false;
		ib_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
		srq = ib_create_srq(pd, &srq_attr);
		auto attr = qp_attr(IB_QPT_RC);
		attr.send_cq = attr.recv_cq = cq;
		qp = ib_create_qp(pd, &attr);
		attr.qp_type = IB_QPT_UD;
		datagram = ib_create_qp(pd, &attr);
		mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
		mw = ib_alloc_mw(pd, IB_MW_TYPE_2);
		rdma_ah_attr address = {.port_num = 1};
		rdma_ah_set_dlid(&address, 5);
		for (ib_ah **handle : {&ah, &sleepable_ah, &atomic_ah}) {
			*handle = rdma_create_ah(pd, &address, 0);
			if (rdma::is_err(*handle))
				return false;
		}
		return !rdma::is_err(srq) && !rdma::is_err(qp) && !rdma::is_err(datagram) &&
		       !rdma::is_err(mr) && !rdma::is_err(mw);
	}
	void destroy() const
	{
		rdma_destroy_ah(ah, 0);
		(void)ib_dealloc_mw(mw);
		(void)ib_dereg_mr(mr);
		(void)ib_destroy_qp(datagram);
		(void)ib_destroy_qp(qp);
		ib_destroy_srq(srq);
		(void)ib_dealloc_xrcd(xrcd);
		ib_dealloc_pd(unused_pd);
		ib_dealloc_pd(pd);
		ib_destroy_cq(cq);
	}
};

/*
 * Tries to register a second device of the same driver. It is registered only if its methods permit
 * it.
 */
void try_registration(const Objects &o)
{
	ib_device *second = _ib_alloc_device(sizeof(ib_device));

	if (!second)
		return;
	ib_set_device_ops(second, &o.device->ops);
	/*
	 * The method of the software device accesses memory after the ib_device, which this device
	 * does not have.
	 */
	if (second->ops.query_device == o.query_device)
		second->ops.query_device = nullptr;
	second->num_comp_vectors = second->phys_port_cnt = 1;
	second->node_type = RDMA_NODE_IB_CA;
	(void)ib_register_device(second, "second%d", nullptr);
	ib_dealloc_device(second);
}

struct Row {
	const char *method;
	void (*install)(ib_device_ops &ops);
	void (*call)(Objects &o);
};

constexpr ib_gid group = {.raw = {0xff, 0x12, 3}};

rdma_ah_attr an_address()
{
	rdma_ah_attr address = {.port_num = 1};

	rdma_ah_set_dlid(&address, 5);
	return address;
}

#define ROW(method, ...)                                                                           \
	{#method, Misbehaving<&ib_device_ops::method>::install,                                    \
	 []([[maybe_unused]] Objects &o) { __VA_ARGS__; }}
// clang-format off
constexpr Row rows[] = {
	ROW(post_send, const ib_send_wr wr = {}; (void)ib_post_send(o.qp, &wr, nullptr)),
	ROW(post_recv, const ib_recv_wr wr = {}; (void)ib_post_recv(o.qp, &wr, nullptr)),
	ROW(post_srq_recv, const ib_recv_wr wr = {}; (void)ib_post_srq_recv(o.srq, &wr, nullptr)),
	ROW(poll_cq, ib_wc wc; (void)ib_poll_cq(o.cq, 1, &wc)),
	ROW(req_notify_cq, (void)ib_req_notify_cq(o.cq, IB_CQ_NEXT_COMP)),
	ROW(map_mr_sg, ib_dma_segment segment = {}; (void)ib_map_mr_sg(o.mr, &segment, 1, nullptr, kern::page_size)),
	ROW(create_ah, auto a = an_address(); (void)rdma_create_ah(o.pd, &a, 0)),
	ROW(create_ah, auto a = an_address(); (void)rdma_create_ah(o.pd, &a, RDMA_CREATE_AH_SLEEPABLE)),
	ROW(modify_ah, auto a = an_address(); (void)rdma_modify_ah(o.ah, &a)),
	ROW(query_ah, rdma_ah_attr a; (void)rdma_query_ah(o.ah, &a)),
	ROW(destroy_ah, rdma_destroy_ah(o.atomic_ah, 0)),
	ROW(destroy_ah, rdma_destroy_ah(o.sleepable_ah, RDMA_DESTROY_AH_SLEEPABLE)),
	ROW(query_device, try_registration(o)),
	ROW(get_port_immutable, try_registration(o)),
	ROW(modify_device, ib_device_modify m = {}; (void)ib_modify_device(o.device, 0, &m)),
	ROW(get_dev_fw_str, char version[IB_FW_VERSION_NAME_MAX]; ib_get_device_fw_str(o.device, version)),
	ROW(query_port, ib_port_attr a; (void)ib_query_port(o.device, 1, &a)),
	ROW(modify_port, ib_port_modify m = {}; (void)ib_modify_port(o.device, 1, 0, &m)),
	ROW(query_gid, u32 port; (void)ib_find_gid(o.device, &group, &port, nullptr)),
	ROW(query_pkey, u16 key; (void)ib_query_pkey(o.device, 1, 0, &key)),
	ROW(process_mad, (void)ib_process_mad(o.device, 0, 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)),
	ROW(get_hw_stats, u64 value; (void)ib_set_hw_stats_lifespan(o.device, 1, 0); (void)ib_get_hw_stats(o.device, 1, 0, 1, &value)),
	ROW(alloc_pd, (void)ib_alloc_pd(o.device, 0)),
	ROW(dealloc_pd, (void)ib_dealloc_pd_user(o.unused_pd)),
	ROW(alloc_xrcd, (void)ib_alloc_xrcd(o.device)),
	ROW(dealloc_xrcd, (void)ib_dealloc_xrcd(o.xrcd)),
	ROW(create_cq, ib_cq_init_attr a = {.cqe = 4, .comp_vector = 0, .flags = 0};
	    (void)ib_create_cq(o.device, nullptr, nullptr, nullptr, &a)),
	ROW(modify_cq, (void)rdma_set_cq_moderation(o.cq, 0, 0)),
	ROW(resize_cq, (void)ib_resize_cq(o.cq, 8)),
	ROW(create_srq, ib_srq_init_attr a = {.attr = {.max_wr = 4, .max_sge = 1}}; (void)ib_create_srq(o.pd, &a)),
	ROW(modify_srq, ib_srq_attr a = {}; (void)ib_modify_srq(o.srq, &a, static_cast<ib_srq_attr_mask>(0))),
	ROW(query_srq, ib_srq_attr a; (void)ib_query_srq(o.srq, &a)),
	ROW(destroy_srq, (void)ib_destroy_srq_user(o.srq)),
	ROW(create_qp, auto a = qp_attr(IB_QPT_RC); a.send_cq = a.recv_cq = o.cq; (void)ib_create_qp(o.pd, &a)),
	ROW(modify_qp, ib_qp_attr a = {.qp_state = IB_QPS_ERR}; (void)ib_modify_qp(o.qp, &a, IB_QP_STATE)),
	ROW(query_qp, ib_qp_attr a; ib_qp_init_attr i; (void)ib_query_qp(o.qp, &a, 0, &i)),
	ROW(destroy_qp, (void)ib_destroy_qp(o.qp)),
	ROW(attach_mcast, (void)ib_attach_mcast(o.datagram, &group, 0xc001)),
	ROW(get_dma_mr, (void)ib_get_dma_mr(o.pd, 0)),
	ROW(reg_user_mr, (void)ib_reg_user_mr(o.pd, 0, kern::page_size, 0, 0)),
	ROW(alloc_mr, (void)ib_alloc_mr(o.pd, IB_MR_TYPE_MEM_REG, 1)),
	ROW(dereg_mr, (void)ib_dereg_mr(o.mr)),
	ROW(alloc_mw, (void)ib_alloc_mw(o.pd, IB_MW_TYPE_2)),
	ROW(dealloc_mw, (void)ib_dealloc_mw(o.mw)),
	ROW(alloc_ucontext, ib_udata none = {}; (void)ib_alloc_ucontext(o.device, &none)),
	ROW(mmap, ib_user_mapping mapping; ib_ucontext context = {}; context.device = o.device;
	    (void)ib_mmap_ucontext(&context, 0, kern::page_size, &mapping)),
};
// clang-format on
#undef ROW

void lock_05_driver_that_calls_a_consumer_handler_from_within_any_method_is_reported(Test &test)
{
	Device device({.lid = 1}), other({.lid = 2});
	ASSERT_TRUE(device.ok() && other.ok());
	const ib_cq_init_attr attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
	handled = ib_create_cq(device, nullptr, [](ib_event *, void *) {}, nullptr, &attr);
	ASSERT_FALSE(rdma::is_err(handled));
	Objects objects;
	ASSERT_TRUE(objects.create(device));
	device.get()->ops.size_ib_ucontext = sizeof(ib_ucontext);
	const ib_device_ops good = device.get()->ops;
	for (const Row &row : rows) {
		row.install(device.get()->ops);
		{
			Observer observer;
			row.call(objects);
			if (!EXPECT_EQ(observer.count(Rule::lock_05), 2u))
				kern_kunit_note(test.native(), "%s", row.method);
			EXPECT_EQ(observer.total(), observer.count(Rule::lock_05));
		}
		device.get()->ops = good;
	}
	objects.destroy();
	ib_destroy_cq(handled);
}

} // namespace

CARD_SUITE(
	verbs_callbacks,
	KUNIT_CASE(
		lock_05_driver_that_calls_a_consumer_handler_from_within_any_method_is_reported));
