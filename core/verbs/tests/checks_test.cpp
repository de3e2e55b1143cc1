// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the rules that debug builds check, by violating each of them once.
#include <kern/irq_work.hpp>
#include <kern/lock.hpp>
#include <rdma/ib_resources.h>
#include <rdma/driver.hpp>
#include "../checks.hpp"
#include "fixture.hpp"
#include "observer.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

/*
 * A function that may sleep is called from within a method that must not: the driver calls the
 * handler inside req_notify_cq.
 */
void lock_01_sleeping_call_within_req_notify_cq_is_reported(Test &test)
{
	Device device({.context = SOFT_INLINE, .lid = 1});
	ASSERT_TRUE(device.ok());
	auto cq = rdma::CompletionQueue::create(
		device,
		[](ib_cq *cq, void *) {
			ib_port_attr attr;
			(void)ib_query_port(cq->device, 1, &attr);
		},
		nullptr, 8);
	ASSERT_OK(cq);
	ib_wc wc = {};
	ASSERT_TRUE(soft_complete(cq.value()->get(), &wc, false));
	Observer observer;
	EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(observer.count(Rule::lock_05), 1u);
	/*
	 * If the kernel detects sleeping functions as well, this also counts as a call in atomic
	 * context.
	 */
	EXPECT_EQ(observer.count(sleeping_is_watched() ? Rule::lock_02 : Rule::lock_01), 1u);
	EXPECT_EQ(observer.total(), 2u);
}

/* Functions for any context work in each context. */
void lock_01_address_handle_can_be_created_in_an_interrupt(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	struct InInterrupt {
		explicit InInterrupt(PdRef &the_pd) : pd(the_pd) { work.queue(); }
		void run()
		{
			rdma_ah_attr attr = {.port_num = 1};
			rdma_ah_set_dlid(&attr, 5);
			ib_ah *ah = rdma_create_ah(pd->get(), &attr, 0);
			if (rdma::is_err(ah))
				return;
			rdma_ah_attr back = {};
			rdma_ah_set_dlid(&attr, 6);
			if (rdma_modify_ah(ah, &attr) == 0 && rdma_query_ah(ah, &back) == 0)
				lid = rdma_ah_get_dlid(&back);
			rdma_destroy_ah(ah, 0);
		}
		PdRef &pd;
		u32 lid = 0;
		kern::IrqWork work{kern::method<&InInterrupt::run>, this};
	};
	Observer observer;
	InInterrupt interrupt(pd.value());
	interrupt.work.wait();
	EXPECT_EQ(interrupt.lid, 6u);
	EXPECT_EQ(observer.total(), 0u);
}

/* LOCK-01: posting, polling and arming work in a hard interrupt. */
void lock_01_requests_can_be_posted_and_cqs_polled_and_armed_in_a_hard_interrupt(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	Memory memory(pair.pd);
	ASSERT_TRUE(memory.ok);
	ib_mr *mr = ib_alloc_mr(pair.pd->get(), IB_MR_TYPE_MEM_REG, 1);
	ASSERT_FALSE(rdma::is_err(mr));
	struct InInterrupt {
		void run()
		{
			auto to = sge_of(pair.pd, memory.at(100), 8);
			auto from = sge_of(pair.pd, memory.at(0), 8);
			ib_recv_wr receive{};
			receive.sg_list = &to;
			receive.num_sge = 1;
			auto send = send_wr(&from, IB_WR_SEND);
			const ib_dma_segment segment{memory.address(0) & ~u64{4095}, 4096};
			received = ib_post_recv(pair.qp_b.get(), &receive, nullptr);
			sent = ib_post_send(pair.qp_a.get(), &send, nullptr);
			armed = ib_req_notify_cq(pair.cq_a->get(), IB_CQ_NEXT_COMP);
			ib_wc wc;
			polled = ib_poll_cq(pair.cq_a->get(), 1, &wc);
			mapped = ib_map_mr_sg(mr, &segment, 1, nullptr, 4096);
		}
		Pair &pair;
		Memory &memory;
		ib_mr *mr;
		int received = -1, sent = -1, armed = -1, polled = -1, mapped = -1;
		kern::IrqWork work{kern::method<&InInterrupt::run>, this};
	};
	memory.at(0)[3] = 77;
	Observer observer;
	InInterrupt interrupt{.pair = pair, .memory = memory, .mr = mr};
	interrupt.work.queue();
	interrupt.work.wait();
	EXPECT_EQ(interrupt.received, 0);
	EXPECT_EQ(interrupt.sent, 0);
	EXPECT_EQ(interrupt.armed, 0);
	EXPECT_GE(interrupt.polled, 0);
	EXPECT_EQ(interrupt.mapped, 1);
	ib_wc wc;
	ASSERT_TRUE(next(pair.cq_b, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(memory.at(100)[3], 77u);
	EXPECT_EQ(observer.total(), 0u);
	(void)ib_dereg_mr(mr);
}

/* A function that may sleep is called in atomic context. */
void lock_02_ib_alloc_pd_is_reported_only_when_called_in_atomic_context(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	kern::IrqSpinLock lock(KERN_LOCK_CLASS("test.lock_02"));
	Observer observer;
	{
		kern::Guard guard(lock);
		EXPECT_EQ(rdma::ptr_err(ib_alloc_pd(device, ~0u)), -EINVAL);
	}
	EXPECT_EQ(observer.count(Rule::lock_02), 1u);
	EXPECT_EQ(rdma::ptr_err(ib_alloc_pd(device, ~0u)), -EINVAL);
	EXPECT_EQ(observer.total(), 1u);
}

/*
 * Every function that may sleep reports a call in atomic context, whatever its arguments are. Each
 * call returns before it would sleep, or does not sleep on this device.
 */
void lock_02_every_sleeping_function_reports_a_call_in_atomic_context(Test &test)
{
	/* Functions that search all QPs find none on the second device. */
	Device device(plain), other(plain);
	ASSERT_TRUE(device.ok() && other.ok());
	struct Objects {
		ib_device *device;
		ib_device *empty;
		ib_pd *pd;
		ib_xrcd *xrcd;
		ib_cq *cq;
		ib_srq *srq;
		ib_qp *qp;
		ib_qp *target;
		ib_qp *handle;
		ib_mr *mr;
		ib_mw *mw;
		ib_ah *ah;
	} objects = {};
	objects.device = device;
	objects.empty = other;
	objects.pd = ib_alloc_pd(device, 0);
	objects.xrcd = ib_alloc_xrcd(device);
	objects.cq = ib_alloc_cq(device, nullptr, 16, 0, IB_POLL_DIRECT);
	ib_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	objects.srq = ib_create_srq(objects.pd, &srq_attr);
	auto attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = objects.cq;
	attr.srq = objects.srq;
	objects.qp = ib_create_qp(objects.pd, &attr);
	attr = qp_attr(IB_QPT_XRC_TGT);
	attr.xrcd = objects.xrcd;
	objects.target = ib_create_qp(objects.pd, &attr);
	ASSERT_FALSE(rdma::is_err(objects.target));
	ib_qp_open_attr open = {.qp_num = objects.target->qp_num, .qp_type = IB_QPT_XRC_TGT};
	objects.handle = ib_open_qp(objects.xrcd, &open);
	rdma_ah_attr address = {.port_num = 1};
	rdma_ah_set_dlid(&address, 5);
	objects.ah = rdma_create_ah(objects.pd, &address, 0);
	objects.mr = ib_alloc_mr(objects.pd, IB_MR_TYPE_MEM_REG, 4);
	objects.mw = ib_alloc_mw(objects.pd, IB_MW_TYPE_2);
	ASSERT_FALSE(rdma::is_err(objects.srq) || rdma::is_err(objects.qp) ||
		     rdma::is_err(objects.mr) || rdma::is_err(objects.mw) ||
		     rdma::is_err(objects.xrcd) || rdma::is_err(objects.handle) ||
		     rdma::is_err(objects.ah));

	struct Call {
		const char *name;
		void (*call)(Objects &o);
	};
	static constexpr ib_gid nowhere = {.raw = {1, 2, 3}};
	// clang-format off
	static constexpr Call calls[] = {
		{"ib_query_port", [](Objects &o) { ib_port_attr a; (void)ib_query_port(o.device, 9, &a); }},
		{"ib_query_pkey", [](Objects &o) { u16 key; (void)ib_query_pkey(o.device, 9, 0, &key); }},
		{"ib_find_gid", [](Objects &o) { u32 port; (void)ib_find_gid(o.device, &nowhere, &port, nullptr); }},
		{"ib_find_pkey", [](Objects &o) { u16 index; (void)ib_find_pkey(o.device, 9, 0, &index); }},
		{"ib_modify_device", [](Objects &o) { ib_device_modify m = {}; (void)ib_modify_device(o.device, 0, &m); }},
		{"ib_modify_port", [](Objects &o) { ib_port_modify m = {}; (void)ib_modify_port(o.device, 9, 0, &m); }},
		{"ib_alloc_pd", [](Objects &o) { (void)ib_alloc_pd(o.device, ~0u); }},
		{"ib_alloc_xrcd", [](Objects &o) { kern_fail_allocation(1); (void)ib_alloc_xrcd(o.device); kern_fail_allocation(0); }},
		{"ib_dealloc_xrcd", [](Objects &o) { (void)ib_dealloc_xrcd(o.xrcd); }},
		{"ib_alloc_cq", [](Objects &o) { (void)ib_alloc_cq(o.device, nullptr, 0, 0, IB_POLL_DIRECT); }},
		{"ib_create_cq", [](Objects &o) { const ib_cq_init_attr a = {}; (void)ib_create_cq(o.device, nullptr, nullptr, nullptr, &a); }},
		{"ib_resize_cq", [](Objects &o) { (void)ib_resize_cq(o.cq, 0); }},
		{"rdma_set_cq_moderation", [](Objects &o) { (void)rdma_set_cq_moderation(o.cq, 0xffff, 0); }},
		{"ib_create_srq", [](Objects &o) { ib_srq_init_attr a = {}; (void)ib_create_srq(o.pd, &a); }},
		{"ib_modify_srq", [](Objects &o) { ib_srq_attr a = {}; (void)ib_modify_srq(o.srq, &a, static_cast<ib_srq_attr_mask>(64)); }},
		{"ib_query_srq", [](Objects &o) { ib_srq_attr a; soft_fail(o.device, SOFT_QUERY_SRQ, 1, -EIO); (void)ib_query_srq(o.srq, &a); }},
		{"ib_create_qp", [](Objects &o) { ib_qp_init_attr a = {}; (void)ib_create_qp(o.pd, &a); }},
		{"ib_modify_qp", [](Objects &o) { ib_qp_attr a = {}; (void)ib_modify_qp(o.qp, &a, 1 << 30); }},
		{"ib_query_qp", [](Objects &o) {
			ib_qp_attr a;
			ib_qp_init_attr i;
			soft_fail(o.device, SOFT_QUERY_QP, 1, -EIO);
			(void)ib_query_qp(o.qp, &a, 0, &i);
		}},
		{"ib_destroy_qp", [](Objects &o) { soft_fail(o.device, SOFT_DESTROY_QP, 1, -EBUSY); (void)ib_destroy_qp(o.qp); }},
		{"ib_open_qp", [](Objects &o) { ib_qp_open_attr a = {}; (void)ib_open_qp(o.xrcd, &a); }},
		{"ib_attach_mcast", [](Objects &o) { (void)ib_attach_mcast(o.qp, &nowhere, 0); }},
		{"ib_detach_mcast", [](Objects &o) { (void)ib_detach_mcast(o.qp, &nowhere, 0); }},
		{"ib_get_dma_mr", [](Objects &o) { (void)ib_get_dma_mr(o.pd, ~0); }},
		{"ib_alloc_mr", [](Objects &o) { (void)ib_alloc_mr(o.pd, IB_MR_TYPE_DM, 1); }},
		{"ib_dereg_mr", [](Objects &o) { soft_fail(o.device, SOFT_DEREG_MR, 1, -EBUSY); (void)ib_dereg_mr(o.mr); }},
		{"ib_reg_user_mr", [](Objects &o) { (void)ib_reg_user_mr(o.pd, 0, 0, 0, ~0); }},
		{"ib_rereg_user_mr", [](Objects &o) { (void)ib_rereg_user_mr(o.mr, 1 << 30, 0, 0, 0, 0, nullptr, nullptr); }},
		{"ib_alloc_ucontext", [](Objects &o) { ib_udata none = {}; (void)ib_alloc_ucontext(o.device, &none); }},
		{"ib_query_device_user", [](Objects &o) { ib_device_attr a; (void)ib_query_device_user(o.device, &a, nullptr); }},
		{"ib_next_resource", [](Objects &o) { (void)ib_next_resource(o.device, static_cast<ib_resource_kind>(99), 0, nullptr); }},
		{"rdma_create_ah", [](Objects &o) { rdma_ah_attr a = {}; (void)rdma_create_ah(o.pd, &a, RDMA_CREATE_AH_SLEEPABLE); }},
		{"ib_alloc_mw", [](Objects &o) { (void)ib_alloc_mw(o.pd, static_cast<ib_mw_type>(9)); }},
		{"ib_dealloc_pd", [](Objects &o) { (void)ib_dealloc_pd_user(o.pd); }},
		{"ib_destroy_cq", [](Objects &o) { (void)ib_destroy_cq_user(o.cq); }},
		{"ib_destroy_srq", [](Objects &o) { (void)ib_destroy_srq_user(o.srq); }},
		{"ib_close_qp", [](Objects &o) { (void)ib_close_qp(o.handle); }},
		{"rdma_destroy_ah", [](Objects &o) { rdma_destroy_ah(o.ah, RDMA_DESTROY_AH_SLEEPABLE); }},
		{"ib_mmap_ucontext", [](Objects &o) {
			ib_ucontext context = {};
			ib_user_mapping mapping;
			context.device = o.device;
			(void)ib_mmap_ucontext(&context, 0, kern::page_size, &mapping);
		}},
		{"ib_find_qp_resource", [](Objects &o) { u32 number; (void)ib_find_qp_resource(o.empty, 1, 1, &number); }},
		{"ib_dealloc_mw", [](Objects &o) { soft_fail(o.device, SOFT_DEALLOC_MW, 1, -EBUSY); (void)ib_dealloc_mw(o.mw); }},
	};
	// clang-format on
	kern::IrqSpinLock lock(KERN_LOCK_CLASS("test.lock_02_every"));
	for (const Call &call : calls) {
		Observer observer;
		{
			kern::Guard guard(lock);
			call.call(objects);
		}
		if (!EXPECT_GE(observer.count(Rule::lock_02), 1u))
			kern_kunit_note(test.native(), "%s", call.name);
		EXPECT_EQ(observer.total(), observer.count(Rule::lock_02));
	}
	(void)ib_dealloc_mw(objects.mw);
	(void)ib_dereg_mr(objects.mr);
	(void)ib_destroy_qp(objects.qp);
	(void)ib_destroy_qp(objects.target);
	ib_destroy_srq(objects.srq);
	ib_free_cq(objects.cq);
	EXPECT_EQ(ib_dealloc_xrcd(objects.xrcd), 0);
	ib_dealloc_pd(objects.pd);
}

/* A driver calls the completion handler from within req_notify_cq. */
void lock_05_completion_handler_called_within_req_notify_cq_is_reported(Test &test)
{
	for (soft_context context :
	     {SOFT_INLINE, SOFT_HARD_INTERRUPT, SOFT_SOFT_INTERRUPT, SOFT_TASK}) {
		Device device({.context = context, .lid = 1});
		ASSERT_TRUE(device.ok());
		kern::Completion handled;
		auto cq = rdma::CompletionQueue::create(
			device,
			[](ib_cq *, void *done) {
				static_cast<kern::Completion *>(done)->complete();
			},
			&handled, 8);
		ASSERT_OK(cq);
		ib_wc wc = {};
		ASSERT_TRUE(soft_complete(cq.value()->get(), &wc, false));
		Observer observer;
		EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 0);
		EXPECT_TRUE(handled.wait_for(60'000));
		EXPECT_EQ(observer.count(Rule::lock_05), context == SOFT_INLINE ? 1u : 0u);
		EXPECT_EQ(observer.count(Rule::lock_06), 0u);
	}
}

/*
 * LOCK-05 holds for events of a QP, too: events that a state change causes are dispatched by
 * another task than the one that changes the state.
 */
void lock_05_event_caused_by_ib_modify_qp_is_not_dispatched_in_the_calling_task(Test &test)
{
	struct Seen {
		static void handler(ib_event *event, void *context)
		{
			Seen &seen = *static_cast<Seen *>(context);
			(event->event == IB_EVENT_SQ_DRAINED ? seen.drained : seen.last)
				.store_release(kern_context());
		}
		kern::Atomic<unsigned long> drained{0}, last{0};
	};
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Seen seen;
	ib_pd *pd = ib_alloc_pd(device, 0);
	ib_cq *cq = ib_alloc_cq(device, nullptr, 16, 0, IB_POLL_DIRECT);
	ib_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	ib_srq *srq = ib_create_srq(pd, &srq_attr);
	auto attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	attr.event_handler = Seen::handler;
	attr.qp_context = &seen;
	ib_qp *qp = ib_create_qp(pd, &attr);
	ASSERT_FALSE(rdma::is_err(qp));
	ASSERT_EQ(connect(qp, qp->qp_num, 1), 0);

	ib_qp_attr change = {};
	change.qp_state = IB_QPS_SQD;
	change.en_sqd_async_notify = 1;
	EXPECT_EQ(ib_modify_qp(qp, &change, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY), 0);
	EXPECT_TRUE(eventually([&] { return seen.drained.load_acquire() != 0; }));
	EXPECT_NE(seen.drained.load_acquire(), kern_context());
	change.qp_state = IB_QPS_ERR;
	EXPECT_EQ(ib_modify_qp(qp, &change, IB_QP_STATE), 0);
	EXPECT_TRUE(eventually([&] { return seen.last.load_acquire() != 0; }));
	EXPECT_NE(seen.last.load_acquire(), kern_context());

	(void)ib_destroy_qp(qp);
	ib_destroy_srq(srq);
	ib_free_cq(cq);
	ib_dealloc_pd(pd);
}

/* A handler is called again while it runs. */
void lock_06_completion_handler_called_again_while_it_runs_is_reported(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	static constinit kern::Atomic<unsigned int> runs{0};
	runs.store_relaxed(0);
	auto cq = rdma::CompletionQueue::create(
		device,
		[](ib_cq *cq, void *) {
			if (runs.fetch_add(1) == 0)
				rdma::complete(cq);
		},
		nullptr, 8);
	ASSERT_OK(cq);
	Observer observer;
	rdma::complete(cq.value()->get());
	EXPECT_EQ(runs.load_relaxed(), 2u);
	EXPECT_EQ(observer.count(Rule::lock_06), 1u);
	rdma::complete(cq.value()->get());
	EXPECT_EQ(observer.count(Rule::lock_06), 1u);
}

/* A completion handler must not sleep, whatever context the driver calls it in. */
void lock_07_sleeping_is_forbidden_in_completion_handlers_called_from_process_context(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	static constinit kern::Atomic<int> may_sleep{-1};
	auto cq = rdma::CompletionQueue::create(
		device, [](ib_cq *, void *) { may_sleep.store_relaxed(kern_may_sleep()); }, nullptr,
		8);
	ASSERT_OK(cq);
	if (!sleeping_is_watched()) {
		test.skip("the kernel does not look for sleepers");
		return;
	}
	rdma::complete(cq.value()->get());
	EXPECT_EQ(may_sleep.load_relaxed(), 0);
	EXPECT_TRUE(kern_may_sleep());
}

/*
 * A handler of an asynchronous event must not sleep either, for an object or for the device, in a
 * task or not.
 */
void lock_07_sleeping_is_forbidden_in_event_handlers_called_from_process_context(Test &test)
{
	struct Listener {
		ib_event_handler handler{};
		kern::Atomic<int> may_sleep{-1};
		kern::Completion recorder{};

		static void by_object(ib_event *, void *context)
		{
			static_cast<Listener *>(context)->may_sleep.store_relaxed(kern_may_sleep());
		}
		static void by_device(ib_event_handler *handler, ib_event *)
		{
			auto *self = reinterpret_cast<Listener *>(handler);
			self->may_sleep.store_relaxed(kern_may_sleep());
			self->recorder.complete();
		}
	};
	static_assert(__builtin_offsetof(Listener, handler) == 0);
	Device device(plain);
	ASSERT_TRUE(device.ok());
	if (!sleeping_is_watched()) {
		test.skip("the kernel does not look for sleepers");
		return;
	}
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	Listener by_cq, by_srq, by_qp, by_device;
	const ib_cq_init_attr cq_attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
	ib_cq *cq = ib_create_cq(device, nullptr, Listener::by_object, &by_cq, &cq_attr);
	ib_srq_init_attr srq_attr = {.event_handler = Listener::by_object,
				     .srq_context = &by_srq,
				     .attr = {.max_wr = 4, .max_sge = 1}};
	ib_srq *srq = ib_create_srq(pd.value()->get(), &srq_attr);
	auto attr = qp_attr(IB_QPT_RC);
	attr.send_cq = attr.recv_cq = cq;
	attr.event_handler = Listener::by_object;
	attr.qp_context = &by_qp;
	ib_qp *qp = ib_create_qp(pd.value()->get(), &attr);
	ASSERT_FALSE(rdma::is_err(cq) || rdma::is_err(srq) || rdma::is_err(qp));
	INIT_IB_EVENT_HANDLER(&by_device.handler, device.get(), Listener::by_device);
	ib_register_event_handler(&by_device.handler);
	rdma::dispatch(IB_EVENT_CQ_ERR, cq);
	rdma::dispatch(IB_EVENT_SRQ_ERR, srq);
	rdma::dispatch(IB_EVENT_QP_FATAL, qp);
	rdma::dispatch(IB_EVENT_LID_CHANGE, device.get(), 1);
	EXPECT_TRUE(by_device.recorder.wait_for(60'000));
	for (Listener *listener : {&by_cq, &by_srq, &by_qp, &by_device})
		EXPECT_EQ(listener->may_sleep.load_relaxed(), 0);
	ib_unregister_event_handler(&by_device.handler);
	(void)ib_destroy_qp(qp);
	ib_destroy_srq(srq);
	ib_destroy_cq(cq);
	EXPECT_TRUE(kern_may_sleep());
}

/* A driver without a mandatory method is not registered, and the method is logged. */
void missing_mandatory_methods_are_reported_at_registration(Test &test)
{
	Device whole(plain);
	ASSERT_TRUE(whole.ok());
	struct Lack {
		const char *name;
		void (*spoil)(ib_device &device);
	};
#define LACK(member) {#member, [](ib_device &d) { d.ops.member = {}; }}
	// clang-format off
	static constexpr Lack lacks[] = {
		LACK(post_send), LACK(post_recv), LACK(poll_cq), LACK(req_notify_cq), LACK(query_port), LACK(query_gid),
		LACK(query_pkey), LACK(alloc_pd), LACK(dealloc_pd), LACK(size_ib_pd), LACK(create_cq), LACK(destroy_cq),
		LACK(size_ib_cq), LACK(create_qp), LACK(modify_qp), LACK(destroy_qp), LACK(size_ib_qp), LACK(size_ib_ah),
		LACK(size_ib_srq), LACK(destroy_srq), LACK(post_srq_recv), LACK(size_ib_mr), LACK(dereg_mr), LACK(map_mr_sg),
		LACK(size_ib_mw), LACK(dealloc_mw), LACK(size_ib_xrcd), LACK(dealloc_xrcd),
		{"size_ib_qp", [](ib_device &d) { d.ops.size_ib_qp = sizeof(ib_qp) - 1; }},
		{"num_comp_vectors", [](ib_device &d) { d.num_comp_vectors = 0; }},
		{"phys_port_cnt", [](ib_device &d) { d.phys_port_cnt = 0; }},
		{"node_type", [](ib_device &d) { d.node_type = RDMA_NODE_UNSPECIFIED; }},
		{"node_type", [](ib_device &d) { d.node_type = RDMA_NODE_USNIC; }},
		/* An RNIC must have poll_cq too, although it need not have tables. */
		{"poll_cq",
		 [](ib_device &d) {
			 d.node_type = RDMA_NODE_RNIC;
			 d.ops.query_gid = nullptr;
			 d.ops.query_pkey = nullptr;
			 d.ops.poll_cq = nullptr;
		 }},
	};
	// clang-format on
#undef LACK
	for (const Lack &lack : lacks) {
		ib_device *device = _ib_alloc_device(sizeof(ib_device));
		ASSERT_TRUE(device != nullptr);
		ib_set_device_ops(device, &whole.get()->ops);
		device->num_comp_vectors = device->phys_port_cnt = 1;
		device->node_type = RDMA_NODE_IB_CA;
		lack.spoil(*device);
		{
			Observer observer;
			EXPECT_EQ(ib_register_device(device, "lacking%d", nullptr), -EINVAL);
			EXPECT_EQ(observer.count(Rule::mandatory_attribute), 1u);
			const char *reported = observer.last();
			if (!EXPECT_EQ(reported ? __builtin_strcmp(reported, lack.name) : -1, 0))
				kern_kunit_note(test.native(), "%s", lack.name);
		}
		ib_dealloc_device(device);
	}
}

/*
 * A driver that arms for invalid flags, or reports missed events without being asked, is detected.
 */
void notify_04_driver_that_reports_missed_events_unasked_is_detected(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 8);
	ASSERT_OK(cq);
	Observer observer;
	soft_fail(device, SOFT_REQ_NOTIFY_CQ, 1, 1);
	EXPECT_EQ(cq.value()->request_notification(IB_CQ_NEXT_COMP), 1);
	EXPECT_EQ(observer.count(Rule::notify_04), 1u);
	soft_fail(device, SOFT_REQ_NOTIFY_CQ, 1, 2);
	EXPECT_EQ(cq.value()->request_notification(static_cast<ib_cq_notify_flags>(0)), 2);
	EXPECT_EQ(observer.count(Rule::notify_01), 1u);
}

/*
 * A use count that drops below zero is reported and saturates: the object counts as used from then
 * on, and is not freed.
 */
void use_count_below_zero_is_reported_and_saturates(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	ib_pd *pd = ib_alloc_pd(device, 0);
	ASSERT_FALSE(rdma::is_err(pd));
	rdma_ah_attr address = {.port_num = 1};
	rdma_ah_set_dlid(&address, 5);
	ib_ah *first = rdma_create_ah(pd, &address, 0);
	ASSERT_FALSE(rdma::is_err(first));
	EXPECT_EQ(pd->usecnt, 1);
	Observer observer;
	/* The use of the handle has already been dropped by a simulated defect. */
	pd->usecnt = 0;
	rdma_destroy_ah(first, 0);
	EXPECT_EQ(observer.count(Rule::use_count), 1u);
	ib_ah *second = rdma_create_ah(pd, &address, 0);
	ASSERT_FALSE(rdma::is_err(second));
	EXPECT_EQ(observer.count(Rule::use_count), 2u);
	EXPECT_EQ(ib_dealloc_pd_user(pd), -EBUSY);
	pd->usecnt = 1;
	rdma_destroy_ah(second, 0);
	ib_dealloc_pd(pd);
	EXPECT_EQ(observer.total(), 2u);
}

/*
 * Leaked objects are reported once for each kind and owner, and the device is removed nonetheless.
 */
void lock_10_leaked_objects_are_reported(Test &test)
{
	const soft_options options = plain;
	ib_device *device = soft_create(&options);
	ASSERT_FALSE(rdma::is_err(device));
	const ib_cq_init_attr attr = {.cqe = 4, .comp_vector = 0, .flags = 0};
	ib_pd *pd = ib_alloc_pd(device, 0);
	ib_xrcd *xrcd = __ib_alloc_xrcd(device, nullptr, "another");
	ib_xrcd *same = __ib_alloc_xrcd(device, nullptr, "another");
	ib_xrcd *third = __ib_alloc_xrcd(device, nullptr, "a third");
	ib_cq *cq = ib_create_cq(device, nullptr, nullptr, nullptr, &attr);
	ASSERT_FALSE(rdma::is_err(pd) || rdma::is_err(xrcd) || rdma::is_err(same) ||
		     rdma::is_err(third) || rdma::is_err(cq));
	ib_destroy_cq(cq);
	Observer observer;
	soft_destroy(device);
	EXPECT_EQ(observer.count(Rule::lock_10), 3u);
	EXPECT_EQ(observer.total(), 3u);
	/* The leaked objects still own their memory. */
	kern_free(pd);
	kern_free(xrcd);
	kern_free(same);
	kern_free(third);
}

} // namespace

SOFT_SUITES(
	verbs_checks, KUNIT_CASE(lock_01_sleeping_call_within_req_notify_cq_is_reported),
	KUNIT_CASE(lock_01_address_handle_can_be_created_in_an_interrupt),
	KUNIT_CASE(lock_01_requests_can_be_posted_and_cqs_polled_and_armed_in_a_hard_interrupt),
	KUNIT_CASE(lock_02_ib_alloc_pd_is_reported_only_when_called_in_atomic_context),
	KUNIT_CASE(lock_02_every_sleeping_function_reports_a_call_in_atomic_context),
	KUNIT_CASE(lock_05_completion_handler_called_within_req_notify_cq_is_reported),
	KUNIT_CASE(lock_05_event_caused_by_ib_modify_qp_is_not_dispatched_in_the_calling_task),
	KUNIT_CASE(lock_06_completion_handler_called_again_while_it_runs_is_reported),
	KUNIT_CASE(
		lock_07_sleeping_is_forbidden_in_completion_handlers_called_from_process_context),
	KUNIT_CASE(lock_07_sleeping_is_forbidden_in_event_handlers_called_from_process_context),
	KUNIT_CASE(missing_mandatory_methods_are_reported_at_registration),
	KUNIT_CASE(notify_04_driver_that_reports_missed_events_unasked_is_detected),
	KUNIT_CASE(lock_10_leaked_objects_are_reported),
	KUNIT_CASE(use_count_below_zero_is_reported_and_saturates));
