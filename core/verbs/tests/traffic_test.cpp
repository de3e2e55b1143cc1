// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests requests of every kind between two QPs on the software device's fabric.
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options plain = {.lid = 1};

/* A send fills the peer's buffer, with and without immediate data. */
void send_with_immediate_data_delivers_its_payload_and_the_immediate_data(Test &test)
{
	for (ib_qp_type type : {IB_QPT_RC, IB_QPT_UC}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		Pair pair(device, type);
		ASSERT_TRUE(pair.ok);
		Memory memory(pair.pd);
		ASSERT_TRUE(memory.ok);
		__builtin_memcpy(memory.at(0), "hello", 5);

		ib_sge to = sge_of(pair.pd, memory.at(100), 50);
		ib_recv_wr recv = {};
		recv.wr_id = 5;
		recv.sg_list = &to;
		recv.num_sge = 1;
		ASSERT_EQ(pair.qp_b.post_recv(&recv), 0);
		ib_sge from = sge_of(pair.pd, memory.at(0), 5);
		ib_send_wr send = send_wr(&from, IB_WR_SEND_WITH_IMM, 6);
		send.ex.imm_data = 0x12345678;
		ASSERT_EQ(pair.qp_a.post_send(&send), 0);
		ib_wc wc;
		ASSERT_TRUE(next(pair.cq_b, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(wc.opcode, IB_WC_RECV);
		EXPECT_EQ(wc.wr_id, 5u);
		EXPECT_EQ(wc.byte_len, 5u);
		EXPECT_EQ(wc.qp, pair.qp_b.get());
		EXPECT_EQ(wc.wc_flags & IB_WC_WITH_IMM, +IB_WC_WITH_IMM);
		EXPECT_EQ(u32{wc.ex.imm_data}, 0x12345678u);
		EXPECT_EQ(__builtin_memcmp(memory.at(100), "hello", 5), 0);
		ASSERT_TRUE(next(pair.cq_a, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, 6u);
	}
}

/* RDMA write and read, and the atomics with their masked forms. */
void rdma_and_atomics_change_remote_memory(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	Memory memory(pair.pd);
	ASSERT_TRUE(memory.ok);
	ib_wc wc;
	__builtin_memcpy(memory.at(0), "written", 7);
	ib_sge local = sge_of(pair.pd, memory.at(0), 7);
	ib_rdma_wr rdma = {.wr = send_wr(&local, IB_WR_RDMA_WRITE),
			   .remote_addr = memory.address(512),
			   .rkey = memory.region->rkey};
	ASSERT_EQ(pair.qp_a.post_send(&rdma.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IB_WC_RDMA_WRITE);
	EXPECT_EQ(__builtin_memcmp(memory.at(512), "written", 7), 0);

	local = sge_of(pair.pd, memory.at(64), 7);
	rdma.wr = send_wr(&local, IB_WR_RDMA_READ);
	ASSERT_EQ(pair.qp_a.post_send(&rdma.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IB_WC_RDMA_READ);
	EXPECT_EQ(__builtin_memcmp(memory.at(64), "written", 7), 0);

	struct {
		ib_wr_opcode opcode;
		ib_wc_opcode completion;
		u64 compare_add, swap, compare_mask, swap_mask, before, after;
	} constexpr atomics[] = {
		{IB_WR_ATOMIC_FETCH_AND_ADD, IB_WC_FETCH_ADD, 5, 0, 0, 0, 10, 15},
		{IB_WR_ATOMIC_CMP_AND_SWP, IB_WC_COMP_SWAP, 15, 99, 0, 0, 15, 99},
		{IB_WR_ATOMIC_CMP_AND_SWP, IB_WC_COMP_SWAP, 15, 7, 0, 0, 99, 99},
		{IB_WR_MASKED_ATOMIC_CMP_AND_SWP, IB_WC_MASKED_COMP_SWAP, 0x03, 0xf0, 0x0f, 0xf0,
		 0x63, 0xf3},
	};
	for (const auto &atomic : atomics) {
		auto *target = reinterpret_cast<u64 *>(memory.at(1024));
		auto *result = reinterpret_cast<u64 *>(memory.at(2048));
		*target = atomic.before;
		*result = ~u64{0};
		local = sge_of(pair.pd, result, 8);
		ib_atomic_wr wr = {.wr = send_wr(&local, atomic.opcode),
				   .remote_addr = memory.address(1024),
				   .compare_add = atomic.compare_add,
				   .swap = atomic.swap,
				   .compare_add_mask = atomic.compare_mask,
				   .swap_mask = atomic.swap_mask,
				   .rkey = memory.region->rkey};
		ASSERT_EQ(pair.qp_a.post_send(&wr.wr), 0);
		ASSERT_TRUE(next(pair.cq_a, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(wc.opcode, atomic.completion);
		EXPECT_EQ(*result, atomic.before);
		EXPECT_EQ(*target, atomic.after);
	}
}

/* A fast registration grants access to exactly its pages, between REG_MR and LOCAL_INV. */
void fast_registration_grants_access_to_exactly_its_pages(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	Memory memory(pair.pd);
	auto region = rdma::MemoryRegion::create(pair.pd, IB_MR_TYPE_MEM_REG, 4);
	ASSERT_TRUE(memory.ok && region.ok());
	ib_mr *mr = region.value().get();
	ib_dma_segment segment = {.addr = memory.address(0), .length = 4096};
	EXPECT_EQ(ib_map_mr_sg(mr, &segment, 0, nullptr, 4096), -EINVAL);
	EXPECT_EQ(ib_map_mr_sg(mr, &segment, 1, nullptr, 512), -EINVAL);
	EXPECT_EQ(ib_map_mr_sg(mr, &segment, 1, nullptr, 3000), -EINVAL);
	EXPECT_EQ(ib_map_mr_sg(memory.region.get(), &segment, 1, nullptr, 4096), -EINVAL);
	ASSERT_EQ(ib_map_mr_sg(mr, &segment, 1, nullptr, 4096), 1);
	EXPECT_EQ(mr->iova, segment.addr);
	EXPECT_EQ(mr->length, 4096u);

	ib_update_fast_reg_key(mr, 0x42);
	ib_reg_wr reg = {.wr = send_wr(nullptr, IB_WR_REG_MR),
			 .mr = mr,
			 .key = mr->rkey,
			 .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ};
	ib_wc wc;
	ASSERT_EQ(pair.qp_a.post_send(&reg.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IB_WC_REG_MR);

	__builtin_memcpy(memory.at(0), "paged", 5);
	ib_sge local = sge_of(pair.pd, memory.at(3000), 5);
	ib_rdma_wr read = {
		.wr = send_wr(&local, IB_WR_RDMA_READ), .remote_addr = mr->iova, .rkey = mr->rkey};
	ASSERT_EQ(pair.qp_a.post_send(&read.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(__builtin_memcmp(memory.at(3000), "paged", 5), 0);

	ib_send_wr invalidate = send_wr(nullptr, IB_WR_LOCAL_INV);
	invalidate.ex.invalidate_rkey = mr->rkey;
	ASSERT_EQ(pair.qp_a.post_send(&invalidate), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	ASSERT_EQ(pair.qp_a.post_send(&read.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_REM_ACCESS_ERR);
}

/*
 * DMA segments are converted to pages: adjacent segments, gaps, too many segments, and an offset
 * into the first.
 */
void scatter_list_is_converted_to_pages_of_a_memory_region(Test &test)
{
	struct Row {
		ib_dma_segment pieces[3];
		int count;
		unsigned int offset;
		int taken;
		u64 length;
		unsigned int offset_after;
	};
	constexpr u64 base = 0x100000;
	constexpr Row rows[] = {
		{{{base, 4096}, {base + 8192, 4096}}, 2, 0, 2, 8192, 0},
		{{{base + 100, 3996}, {base + 8192, 100}}, 2, 0, 2, 4096, 0},
		{{{base, 100}, {base + 100, 100}}, 2, 0, 2, 200, 0},
		{{{base, 4000}, {base + 4000, 500}}, 2, 0, 2, 4500, 0},
		{{{base, 100}, {base + 200, 100}}, 2, 0, 1, 100, 0},
		{{{base, 4096}, {base + 8193, 100}}, 2, 0, 1, 4096, 0},
		{{{base, 4096}, {base + 8192, 4096}}, 2, 96, 2, 8096, 0},
		{{{base, 4096 * 5}}, 1, 0, 0, 4096 * 4, 4096 * 4},
		{{{base, 4096 * 3}, {base + 4096 * 9, 4096 * 3}}, 2, 0, 1, 4096 * 4, 4096},
	};
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	ASSERT_OK(pd);
	auto region = rdma::MemoryRegion::create(pd.value(), IB_MR_TYPE_MEM_REG, 4);
	ASSERT_OK(region);
	for (const Row &row : rows) {
		unsigned int offset = row.offset;
		ib_mr *mr = region.value().get();
		EXPECT_EQ(ib_map_mr_sg(mr, row.pieces, row.count, &offset, 4096), row.taken);
		EXPECT_EQ(mr->length, row.length);
		EXPECT_EQ(mr->iova, row.pieces[0].addr + row.offset);
		EXPECT_EQ(offset, row.offset_after);
	}
	unsigned int offset = 5000;
	EXPECT_EQ(ib_map_mr_sg(region.value().get(), rows[0].pieces, 2, &offset, 4096), -EINVAL);
}

/* A memory window grants access to a part of a region while it is bound. */
void memory_window_grants_access_only_to_its_bound_range(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	Memory memory(pair.pd);
	auto window = rdma::MemoryWindow::create(pair.pd, IB_MW_TYPE_2);
	ASSERT_TRUE(memory.ok && window.ok());
	EXPECT_ERROR(rdma::MemoryWindow::create(pair.pd, static_cast<ib_mw_type>(3)), -EINVAL);
	ib_mw *mw = window.value().get();
	ib_bind_mw_wr bind = {.wr = send_wr(nullptr, IB_WR_BIND_MW),
			      .mw = mw,
			      .rkey = ib_inc_rkey(mw->rkey),
			      .mr = memory.region.get(),
			      .addr = memory.address(0),
			      .length = 16,
			      .access = IB_ACCESS_REMOTE_WRITE};
	ib_wc wc;
	ASSERT_EQ(pair.qp_a.post_send(&bind.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IB_WC_BIND_MW);
	ib_sge local = sge_of(pair.pd, memory.at(100), 16);
	ib_rdma_wr write = {.wr = send_wr(&local, IB_WR_RDMA_WRITE),
			    .remote_addr = memory.address(0),
			    .rkey = bind.rkey};
	ASSERT_EQ(pair.qp_a.post_send(&write.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	write.remote_addr++;
	ASSERT_EQ(pair.qp_a.post_send(&write.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_EQ(wc.status, IB_WC_REM_ACCESS_ERR);
}

/* Requests that the peer refuses, and the status on each side. */
void requests_that_fail_report_their_status_and_move_the_qp_to_error(Test &test)
{
	struct Row {
		u32 recv_length;
		bool recv;
		u32 lkey_change, rkey_change;
		ib_wr_opcode opcode;
		ib_wc_status status;
	};
	constexpr Row rows[] = {
		{4, true, 0, 0, IB_WR_SEND, IB_WC_REM_INV_REQ_ERR},
		{64, true, 1, 0, IB_WR_SEND, IB_WC_LOC_PROT_ERR},
		{0, false, 0, 0, IB_WR_SEND, IB_WC_RNR_RETRY_EXC_ERR},
		{0, false, 0, 1, IB_WR_RDMA_WRITE, IB_WC_REM_ACCESS_ERR},
		{0, false, 0, 1, IB_WR_RDMA_READ, IB_WC_REM_ACCESS_ERR},
	};
	for (const Row &row : rows) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		Pair pair(device, IB_QPT_RC, 2);
		ASSERT_TRUE(pair.ok);
		Memory memory(pair.pd);
		ASSERT_TRUE(memory.ok);
		if (row.recv) {
			ib_sge to = sge_of(pair.pd, memory.at(0), row.recv_length);
			ib_recv_wr recv = {};
			recv.sg_list = &to;
			recv.num_sge = 1;
			ASSERT_EQ(pair.qp_b.post_recv(&recv), 0);
		}
		ib_sge local = sge_of(pair.pd, memory.at(100), 10);
		local.lkey += row.lkey_change;
		ib_rdma_wr wr = {.wr = send_wr(&local, row.opcode),
				 .remote_addr = memory.address(0),
				 .rkey = memory.region->rkey + row.rkey_change};
		ASSERT_EQ(pair.qp_a.post_send(&wr.wr), 0);
		ib_wc wc;
		ASSERT_TRUE(next(pair.cq_a, wc));
		EXPECT_EQ(wc.status, row.status);
		ib_qp_attr attr;
		ib_qp_init_attr init;
		ASSERT_EQ(ib_query_qp(pair.qp_a.get(), &attr, IB_QP_STATE, &init), 0);
		EXPECT_EQ(attr.qp_state, IB_QPS_ERR);
	}
}

/* Keys of another protection domain grant no access at either end. */
void requests_with_a_key_of_another_pd_fail(Test &test)
{
	for (bool local_end : {true, false}) {
		Device device(plain);
		ASSERT_TRUE(device.ok());
		Pair pair(device);
		auto other = rdma::Pd::create(device);
		ASSERT_TRUE(pair.ok && other.ok());
		Memory own(pair.pd), foreign(other.value());
		ASSERT_TRUE(own.ok && foreign.ok);
		ib_sge local = {.addr = own.address(0),
				.length = 8,
				.lkey = (local_end ? foreign : own).region->lkey};
		ib_rdma_wr write = {.wr = send_wr(&local, IB_WR_RDMA_WRITE),
				    .remote_addr = own.address(64),
				    .rkey = (local_end ? own : foreign).region->rkey};
		ASSERT_EQ(pair.qp_a.post_send(&write.wr), 0);
		ib_wc wc;
		ASSERT_TRUE(next(pair.cq_a, wc));
		EXPECT_EQ(wc.status, local_end ? IB_WC_LOC_PROT_ERR : IB_WC_REM_ACCESS_ERR);
	}
}

/*
 * A list that is longer than the queue is posted as far as it fits. bad_wr is the first request
 * that was not posted.
 */
void post_to_a_full_queue_reports_the_first_rejected_request(Test &test)
{
	constexpr unsigned int capacity = 16;
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	auto made_receives = kern::make_array<ib_recv_wr>(kern::Gfp::kernel, capacity + 1);
	auto made_sends = kern::make_array<ib_send_wr>(kern::Gfp::kernel, capacity + 1);
	ASSERT_TRUE(made_receives.ok() && made_sends.ok());
	auto &receives = made_receives.value();
	auto &sends = made_sends.value();
	for (unsigned int i = 0; i < capacity; i++) {
		receives[i].next = &receives[i + 1];
		sends[i].next = &sends[i + 1];
	}
	for (auto &send : sends)
		send.opcode = IB_WR_SEND;
	const ib_recv_wr *bad_receive = nullptr;
	EXPECT_EQ(ib_post_recv(pair.qp_b.get(), receives.data(), &bad_receive), -ENOMEM);
	EXPECT_EQ(bad_receive, &receives[capacity]);
	const ib_send_wr *bad_send = nullptr;
	EXPECT_EQ(ib_post_send(pair.qp_a.get(), sends.data(), &bad_send), -ENOMEM);
	EXPECT_EQ(bad_send, &sends[capacity]);
	ib_wc wc;
	for (unsigned int i = 0; i < capacity; i++) {
		ASSERT_TRUE(next(pair.cq_a, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		ASSERT_TRUE(next(pair.cq_b, wc));
	}
	EXPECT_EQ(pair.cq_a->poll(1, &wc) + pair.cq_b->poll(1, &wc), 0);
}

/* Lost messages are retransmitted on RC. If none arrives, the request fails after its retries. */
void request_fails_if_all_its_retransmissions_are_lost(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	Pair pair(device);
	ASSERT_TRUE(pair.ok);
	Memory memory(pair.pd);
	ASSERT_TRUE(memory.ok);
	ib_sge local = sge_of(pair.pd, memory.at(0), 8);
	ib_rdma_wr write = {.wr = send_wr(&local, IB_WR_RDMA_WRITE),
			    .remote_addr = memory.address(64),
			    .rkey = memory.region->rkey};
	soft_disturb(device, 100, 0, test.seed());
	ib_wc wc;
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(pair.qp_a.post_send(&write.wr), 0);
		ASSERT_TRUE(next(pair.cq_a, wc));
		if (wc.status != IB_WC_SUCCESS)
			break;
	}
	soft_disturb(device, 1000, 0, test.seed());
	ASSERT_EQ(pair.qp_a.post_send(&write.wr), 0);
	ASSERT_TRUE(next(pair.cq_a, wc));
	EXPECT_TRUE(wc.status == IB_WC_RETRY_EXC_ERR || wc.status == IB_WC_WR_FLUSH_ERR);
}

/* Many QPs receive from one SRQ. When it falls below its limit, it raises the limit event once. */
void many_qps_share_an_srq_that_raises_its_limit_event_once(Test &test)
{
	static constinit kern::Atomic<unsigned int> limits{0};
	limits.store_relaxed(0);
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 32);
	ASSERT_TRUE(pd.ok() && cq.ok());
	ib_srq_init_attr srq_attr = {.event_handler =
					     [](ib_event *event, void *) {
						     if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
							     limits.add_relaxed(1);
					     },
				     .attr = {.max_wr = 0, .max_sge = 1}};
	EXPECT_ERROR(rdma::SharedReceiveQueue::create(pd.value(), srq_attr), -EINVAL);
	srq_attr.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 9};
	EXPECT_ERROR(rdma::SharedReceiveQueue::create(pd.value(), srq_attr), -EINVAL);
	srq_attr.attr.srq_limit = 0;
	auto srq = rdma::SharedReceiveQueue::create(pd.value(), srq_attr);
	ASSERT_OK(srq);
	auto attr = qp_attr(IB_QPT_RC);
	auto a = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr, srq.value());
	auto b = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr, srq.value());
	ASSERT_TRUE(a.ok() && b.ok());
	ASSERT_EQ(connect(a.value().get(), b.value().number(), 1), 0);
	ASSERT_EQ(connect(b.value().get(), a.value().number(), 1), 0);
	ib_recv_wr recv = {};
	EXPECT_EQ(a.value().post_recv(&recv), -EINVAL);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(srq.value()->post(&recv), 0);
	ib_srq_attr limit = {.srq_limit = 3};
	EXPECT_EQ(ib_modify_srq(srq.value()->get(), &limit, static_cast<ib_srq_attr_mask>(8)),
		  -EINVAL);
	ASSERT_EQ(ib_modify_srq(srq.value()->get(), &limit, IB_SRQ_LIMIT), 0);
	for (auto *qp : {&a.value(), &b.value()}) {
		ib_send_wr send = send_wr(nullptr, IB_WR_SEND);
		ASSERT_EQ(qp->post_send(&send), 0);
		ib_wc wc;
		ASSERT_TRUE(next(cq.value(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		ASSERT_TRUE(next(cq.value(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	}
	EXPECT_EQ(limits.load_relaxed(), 1u);
}

/*
 * A message on an XRC connection reaches the SRQ that it specifies, completes on that SRQ's CQ, and
 * accesses memory of that SRQ's domain. A message to no SRQ, or to one of another XRC domain, is
 * refused.
 */
void xrc_messages_reach_the_addressed_srq(Test &test)
{
	Device device(plain);
	ASSERT_TRUE(device.ok());
	auto made = rdma::Pd::create(device);
	auto queue = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
	ASSERT_TRUE(made.ok() && queue.ok());
	PdRef pd = made.take();
	CqRef cq = queue.take();
	Memory memory(pd);
	ASSERT_TRUE(memory.ok);

	struct Receiver {
		ib_xrcd *xrcd = nullptr;
		CqRef cq;
		ib_srq *srq = nullptr;

		bool create(ib_device *device, const PdRef &owner, ib_xrcd *domain)
		{
			auto made = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
			if (!made.ok())
				return false;
			cq = made.take();
			ib_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1},
						 .srq_type = IB_SRQT_XRC,
						 .ext = {.cq = cq->get(), .xrc = {.xrcd = domain}}};
			srq = ib_create_srq(owner->get(), &attr);
			return !rdma::is_err(srq);
		}
		~Receiver()
		{
			if (srq && !rdma::is_err(srq))
				ib_destroy_srq(srq);
		}
	};
	ib_xrcd *xrcd = ib_alloc_xrcd(device), *elsewhere = ib_alloc_xrcd(device);
	ASSERT_TRUE(!rdma::is_err(xrcd) && !rdma::is_err(elsewhere));
	auto attr = qp_attr(IB_QPT_XRC_TGT);
	attr.xrcd = xrcd;
	ib_qp *target = ib_create_qp(pd->get(), &attr);
	ASSERT_FALSE(rdma::is_err(target));
	{
		Receiver first, second, outsider;
		ASSERT_TRUE(first.create(device, pd, xrcd) && second.create(device, pd, xrcd) &&
			    outsider.create(device, pd, elsewhere));
		EXPECT_NE(first.srq->ext.xrc.srq_num, second.srq->ext.xrc.srq_num);
		attr = qp_attr(IB_QPT_XRC_INI);
		auto sender = rdma::QueuePair::create(pd, cq, cq, attr);
		ASSERT_OK(sender);
		ASSERT_EQ(connect(sender.value().get(), target->qp_num, 1), 0);
		ASSERT_EQ(connect(target, sender.value().number(), 1), 0);

		ib_wc wc;
		for (Receiver *receiver : {&second, &first}) {
			ib_sge to = sge_of(pd, memory.at(100), 50);
			ib_recv_wr recv = {.wr_id = 5, .sg_list = &to, .num_sge = 1};
			ASSERT_EQ(ib_post_srq_recv(receiver->srq, &recv, nullptr), 0);
			__builtin_memcpy(memory.at(0), "shared", 6);
			ib_sge from = sge_of(pd, memory.at(0), 6);
			ib_xrc_wr send = {.wr = send_wr(&from, IB_WR_SEND)};
			send.remote_srqn = receiver->srq->ext.xrc.srq_num;
			ASSERT_EQ(sender.value().post_send(&send.wr), 0);
			ASSERT_TRUE(next(receiver->cq, wc));
			EXPECT_EQ(wc.status, IB_WC_SUCCESS);
			EXPECT_EQ(wc.wr_id, 5u);
			EXPECT_EQ(wc.byte_len, 6u);
			EXPECT_EQ(__builtin_memcmp(memory.at(100), "shared", 6), 0);
			__builtin_memset(memory.at(100), 0, 6);
			ASSERT_TRUE(next(cq, wc));
			EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		}
		EXPECT_EQ(outsider.cq->poll(1, &wc), 0);

		/*
		 * An RDMA write consumes no receive, but it uses the protection domain of the named
		 * SRQ.
		 */
		ib_sge from = sge_of(pd, memory.at(0), 6);
		ib_xrc_wr write = {};
		write.rdma = {.wr = send_wr(&from, IB_WR_RDMA_WRITE),
			      .remote_addr = memory.address(512),
			      .rkey = memory.region->rkey};
		write.remote_srqn = first.srq->ext.xrc.srq_num;
		ASSERT_EQ(sender.value().post_send(&write.wr), 0);
		ASSERT_TRUE(next(cq, wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(__builtin_memcmp(memory.at(512), "shared", 6), 0);

		write.remote_srqn = outsider.srq->ext.xrc.srq_num;
		ASSERT_EQ(sender.value().post_send(&write.wr), 0);
		ASSERT_TRUE(next(cq, wc));
		EXPECT_EQ(wc.status, IB_WC_REM_INV_REQ_ERR);
	}
	EXPECT_EQ(ib_destroy_qp(target), 0);
	EXPECT_EQ(ib_dealloc_xrcd(xrcd), 0);
	EXPECT_EQ(ib_dealloc_xrcd(elsewhere), 0);
}

} // namespace

SOFT_SUITES(verbs_traffic,
	    KUNIT_CASE(send_with_immediate_data_delivers_its_payload_and_the_immediate_data),
	    KUNIT_CASE(rdma_and_atomics_change_remote_memory),
	    KUNIT_CASE(fast_registration_grants_access_to_exactly_its_pages),
	    KUNIT_CASE(scatter_list_is_converted_to_pages_of_a_memory_region),
	    KUNIT_CASE(memory_window_grants_access_only_to_its_bound_range),
	    KUNIT_CASE(requests_that_fail_report_their_status_and_move_the_qp_to_error),
	    KUNIT_CASE(requests_with_a_key_of_another_pd_fail),
	    KUNIT_CASE(post_to_a_full_queue_reports_the_first_rejected_request),
	    KUNIT_CASE(request_fails_if_all_its_retransmissions_are_lost),
	    KUNIT_CASE(many_qps_share_an_srq_that_raises_its_limit_event_once),
	    KUNIT_CASE(xrc_messages_reach_the_addressed_srq));
