// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Tests work requests and their completions on a simulated card. */
#include <kern/irq_work.hpp>
#include "fixture.hpp"
#include "../qp.hpp"

using namespace amso1100;
using kern::kunit::Test;

namespace
{

/*
 * Requests complete in order, including unsignaled ones. The ring accepts no more requests than its
 * depth.
 */
void requests_complete_in_order_and_cannot_exceed_the_ring_depth(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	ib_wc wc;
	u64 next = 0;
	for (unsigned int round = 0; round < 5; round++) {
		for (u32 i = 0; i < Bed::depth; i++)
			ASSERT_EQ(bed->send(next + i, i % 4 == 3 ? IB_SEND_SIGNALED : 0), 0);
		EXPECT_EQ(bed->send(99), -ENOMEM);
		for (u32 i = 0; i < Bed::depth; i += 4) {
			ASSERT_TRUE(bed->card->complete_send(1, wire::Status::ok, 3));
			ASSERT_EQ(bed->cq->poll(1, &wc), 1);
			EXPECT_EQ(wc.wr_id, next + i + 3);
			EXPECT_EQ(wc.status, IB_WC_SUCCESS);
			EXPECT_EQ(wc.qp, bed->qp.get());
		}
		next += Bed::depth;
	}
	for (u64 id = 0; id < Bed::depth; id++)
		ASSERT_EQ(bed->receive(id), 0);
	EXPECT_EQ(bed->receive(99), -ENOMEM);
	for (u64 id = 0; id < Bed::depth; id++) {
		ASSERT_TRUE(bed->card->complete_receive(1, 60 + static_cast<u32>(id)));
		ASSERT_EQ(bed->cq->poll(1, &wc), 1);
		EXPECT_EQ(wc.wr_id, id);
		EXPECT_EQ(wc.byte_len, 60 + id);
		EXPECT_EQ(wc.opcode, IB_WC_RECV);
	}
	EXPECT_EQ(bed->cq->poll(1, &wc), 0);
}

/* LOCK-01: posting, polling and arming work in a hard interrupt. */
void lock_01_requests_can_be_posted_and_cqs_polled_and_armed_in_a_hard_interrupt(Test &test)
{
	struct InInterrupt {
		void run()
		{
			received = bed.receive(1);
			sent = bed.send(2);
			armed = bed.arm(static_cast<ib_cq_notify_flags>(
				IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS));
			ib_wc wc;
			polled = bed.cq->poll(1, &wc);
		}
		Bed &bed;
		int received = -1, sent = -1, armed = -1, polled = -1;
		kern::IrqWork work{kern::method<&InInterrupt::run>, this};
	};
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	InInterrupt interrupt{.bed = *bed};
	interrupt.work.queue();
	interrupt.work.wait();
	EXPECT_EQ(interrupt.received, 0);
	EXPECT_EQ(interrupt.sent, 0);
	EXPECT_EQ(interrupt.armed, 0);
	EXPECT_EQ(interrupt.polled, 0);
	ASSERT_TRUE(bed->card->complete_send(1));
	EXPECT_EQ(bed->count(), 1u);
	ib_wc wc;
	ASSERT_EQ(bed->cq->poll(1, &wc), 1);
	EXPECT_EQ(wc.wr_id, u64{2});
}

/* Each kind of request has the layout that the card reads. Unsupported requests are rejected. */
void request_descriptors_have_the_layout_that_the_card_reads(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	const Card &card = *bed->card;
	u32 place = 0;
	const auto slot = [&] {
		const auto &ring = bed->card->qp(1).sq;
		return card.window.view(ring.start + wire::shared::size + place++ * ring.slot_bytes,
					ring.slot_bytes);
	};
	ib_sge sges[2] = {{0x123456789a, 40, 0x55}, {0x1000, 2, 0x66}};
	ib_rdma_wr wr{};
	const ib_send_wr *bad;
	wr.wr.sg_list = sges;
	wr.wr.num_sge = 2;
	wr.wr.send_flags = IB_SEND_SIGNALED | IB_SEND_SOLICITED;
	wr.wr.opcode = IB_WR_SEND;
	wr.remote_addr = 0xabcdef0123456789;
	wr.rkey = 0x77;
	ASSERT_EQ(bed->qp.post_send(&wr.wr, &bad), 0);
	const auto sent = slot();
	EXPECT_EQ(sent.read8(wire::header::id), static_cast<u8>(wire::WorkId::send_solicited));
	EXPECT_EQ(sent.read8(wire::work::flags), wire::work::signaled);
	EXPECT_EQ(sent.read8(wire::work::sge_count), 2u);
	EXPECT_EQ(sent.read_be32(wire::send::total), 42u);
	EXPECT_EQ(sent.read_be32(wire::send::sges + wire::sge::stag), 0x55u);
	EXPECT_EQ(sent.read_be64(wire::send::sges + wire::sge::offset), 0x123456789aul);
	EXPECT_EQ(sent.read_be32(wire::send::sges + wire::sge::size + wire::sge::length), 2u);
	/* The hint contains the index of the queue. */
	EXPECT_EQ(card.registers.read32(wire::reg::adapter_hint) & 0xffff, 1u);

	wr.wr.opcode = IB_WR_RDMA_WRITE;
	wr.wr.send_flags = IB_SEND_FENCE;
	sges[0].length = 0;
	ASSERT_EQ(bed->qp.post_send(&wr.wr, &bad), 0);
	const auto written = slot();
	EXPECT_EQ(written.read8(wire::header::id), static_cast<u8>(wire::WorkId::rdma_write));
	EXPECT_EQ(written.read8(wire::work::flags), wire::work::read_fence);
	/* A segment of length zero is omitted. */
	EXPECT_EQ(written.read8(wire::work::sge_count), 1u);
	EXPECT_EQ(written.read_be32(wire::rdma_write::sges + wire::sge::stag), 0x66u);
	EXPECT_EQ(written.read_be64(wire::rdma_write::remote_offset), 0xabcdef0123456789ul);
	EXPECT_EQ(written.read_be32(wire::rdma_write::remote_stag), 0x77u);

	wr.wr.opcode = IB_WR_RDMA_READ;
	EXPECT_EQ(bed->qp.post_send(&wr.wr, &bad), -EINVAL);
	wr.wr.num_sge = 1;
	sges[0].length = 4000;
	ASSERT_EQ(bed->qp.post_send(&wr.wr, &bad), 0);
	const auto read = slot();
	EXPECT_EQ(read.read_be32(wire::rdma_read::local_stag), 0x55u);
	EXPECT_EQ(read.read_be32(wire::rdma_read::length), 4000u);
	for (const auto opcode : {IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_SEND_WITH_IMM,
				  IB_WR_ATOMIC_FETCH_AND_ADD, IB_WR_LSO}) {
		wr.wr.opcode = opcode;
		EXPECT_EQ(bed->qp.post_send(&wr.wr, &bad), -EINVAL);
		EXPECT_EQ(bad, &wr.wr);
	}
	/* The total length exceeds the maximum of a message. */
	wr.wr.opcode = IB_WR_SEND;
	wr.wr.num_sge = 2;
	sges[0].length = 0xffffffff;
	EXPECT_EQ(bed->qp.post_send(&wr.wr, &bad), -EINVAL);
}

/* Entries that do not belong to a posted request are ignored, and do not affect other entries. */
void completion_entries_that_match_no_posted_request_are_ignored(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	ASSERT_EQ(bed->send(5), 0);
	const auto entry = [&](u64 qp, u64 context, u32 silent, wire::WorkId id) {
		u8 bytes[wire::completion::size] = {};
		put_be(bytes + wire::work::silent_count, silent);
		bytes[wire::header::id] = static_cast<u8>(id);
		__builtin_memcpy(bytes + wire::header::context, &context, sizeof(context));
		__builtin_memcpy(bytes + wire::completion::qp_context, &qp, sizeof(qp));
		card.add_entry(bed->own_cq(), bytes);
	};
	const u64 own = card.qp(1).context;
	entry(0, 0, 0, wire::WorkId::send);
	entry(own + 1, 0, 0, wire::WorkId::send);
	entry(own ^ u64{1} << 40, 0, 0, wire::WorkId::send);
	entry(~u64{0}, 0, 0, wire::WorkId::send);
	entry(own, 1, 0, wire::WorkId::send);
	entry(own, 1, 1, wire::WorkId::send);
	entry(own, 0, 0xffffffff, wire::WorkId::send);
	entry(own, 0, 17, wire::WorkId::send);
	entry(own, 0, 0, wire::WorkId::receive);
	entry(own, 0, 1, wire::WorkId::receive);
	ib_wc wc;
	EXPECT_EQ(bed->cq->poll(1, &wc), 0);
	ASSERT_TRUE(card.complete_send(1));
	ASSERT_EQ(bed->cq->poll(1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 5u);
	/* The same entry does not complete a second request. */
	entry(own, 0, 0, wire::WorkId::send);
	EXPECT_EQ(bed->cq->poll(1, &wc), 0);
	/* A message longer than its buffer is reported as an error. */
	ASSERT_EQ(bed->receive(6, 100), 0);
	ASSERT_TRUE(card.complete_receive(1, 101));
	ASSERT_EQ(bed->cq->poll(1, &wc), 1);
	EXPECT_EQ(wc.status, IB_WC_GENERAL_ERR);
	/* With an invalid index, nothing is polled. */
	__atomic_store_n(bed->own_cq().card_memory().producer_word, u16{0xffff}, __ATOMIC_RELEASE);
	EXPECT_EQ(bed->cq->poll(1, &wc), 0);
}

/* The status of a completed request, for each status code of the card. */
void status_codes_are_converted_to_wc_status(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	const struct {
		wire::Status said;
		ib_wc_status expected;
	} statuses[] = {{wire::Status::flushed, IB_WC_WR_FLUSH_ERR},
			{wire::Status::bounds_violation, IB_WC_LOC_PROT_ERR},
			{wire::Status::access_violation, IB_WC_LOC_ACCESS_ERR},
			{wire::Status::total_length_too_big, IB_WC_LOC_LEN_ERR},
			{wire::Status::remote_termination, IB_WC_REM_OP_ERR},
			{wire::Status::invalid_stag, IB_WC_GENERAL_ERR}};
	for (const auto &[said, expected] : statuses) {
		ASSERT_EQ(bed->send(1), 0);
		ASSERT_TRUE(bed->card->complete_send(1, said));
		ib_wc wc;
		ASSERT_EQ(bed->cq->poll(1, &wc), 1);
		EXPECT_EQ(wc.status, expected);
		EXPECT_EQ(wc.vendor_err, static_cast<u32>(said));
	}
}

/*
 * MGMT-09: the completions of a destroyed QP stay in the CQ, in order, followed by its flushed
 * requests. Completions of other QPs are not affected, and a new QP with the same number gets none
 * of them.
 */
void mgmt_09_completions_can_be_polled_after_qp_destroy(Test &test)
{
	Boxed<Bed> bed;
	ASSERT_TRUE(bed.ok());
	Card &card = *bed->card;
	rdma::QueuePair other;
	ASSERT_TRUE(bed->add(other, IB_SIGNAL_ALL_WR));
	ASSERT_EQ(bed->send(1), 0);
	ASSERT_TRUE(card.complete_send(1));
	ib_sge sge{0x1000, 8, 0};
	ib_send_wr wr{};
	const ib_send_wr *bad;
	wr.wr_id = 2;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IB_WR_SEND;
	ASSERT_EQ(other.post_send(&wr, &bad), 0);
	ASSERT_TRUE(card.complete_send(2));
	ASSERT_EQ(bed->send(3, 0), 0);
	ASSERT_EQ(bed->receive(4), 0);
	bed->qp = {};
	EXPECT_EQ(card.asked(wire::MessageId::qp_destroy), 1u);
	ASSERT_TRUE(bed->add(bed->qp, IB_SIGNAL_ALL_WR));
	const struct {
		u64 id;
		ib_wc_status status;
		bool others;
	} left[] = {{1, IB_WC_SUCCESS, false},
		    {2, IB_WC_SUCCESS, true},
		    {3, IB_WC_WR_FLUSH_ERR, false},
		    {4, IB_WC_WR_FLUSH_ERR, false}};
	for (const auto &[id, status, others] : left) {
		ib_wc wc;
		ASSERT_EQ(bed->cq->poll(1, &wc), 1);
		EXPECT_EQ(wc.wr_id, id);
		EXPECT_EQ(wc.status, status);
		EXPECT_EQ(wc.qp, others ? other.get() : nullptr);
	}
	ib_wc wc;
	EXPECT_EQ(bed->cq->poll(1, &wc), 0);
}

struct Left {
	u64 id;
	ib_wc_status status;
};

[[gnu::noinline]] void expect_left(Test &test, Bed &bed, const Left &left, const ib_qp *qp)
{
	ib_wc wc;
	ASSERT_EQ(bed.cq->poll(1, &wc), 1);
	EXPECT_EQ(wc.wr_id, left.id);
	EXPECT_EQ(wc.status, left.status);
	EXPECT_EQ(wc.qp, qp);
}

/*
 * MGMT-09: requests that a failed card has not completed are flushed once, in order, after those
 * that it has completed. The completion handler is called. A QP that is destroyed leaves its
 * completions in the CQ.
 */
void mgmt_09_driver_flushes_outstanding_requests_in_order_after_a_card_failure(Test &test)
{
	constexpr Left left[] = {{1, IB_WC_SUCCESS},
				 {2, IB_WC_WR_FLUSH_ERR},
				 {3, IB_WC_WR_FLUSH_ERR},
				 {4, IB_WC_WR_FLUSH_ERR},
				 {5, IB_WC_WR_FLUSH_ERR}};
	for (const bool destroyed : {false, true}) {
		Boxed<Bed> bed;
		ASSERT_TRUE(bed.ok());
		Card &card = *bed->card;
		ASSERT_EQ(bed->arm(IB_CQ_SOLICITED), 0);
		ASSERT_EQ(bed->send(1), 0);
		ASSERT_TRUE(card.complete_send(1));
		ASSERT_EQ(bed->send(2, 0), 0);
		ASSERT_EQ(bed->send(3), 0);
		ASSERT_EQ(bed->receive(4), 0);
		ASSERT_EQ(bed->receive(5), 0);
		card.rnic->channel().fail("is broken by a test");
		EXPECT_TRUE(eventually([&] { return bed->count() == 1; }));
		EXPECT_EQ(bed->send(6), -EIO);
		EXPECT_EQ(bed->receive(6), -EIO);
		const ib_qp *const qp = destroyed ? nullptr : bed->qp.get();
		if (destroyed)
			bed->qp = {};
		for (const Left &each : left)
			expect_left(test, *bed, each, qp);
		ib_wc wc;
		EXPECT_EQ(bed->cq->poll(1, &wc), 0);
		bed->qp = {};
		EXPECT_EQ(bed->cq->poll(1, &wc), 0);
	}
}

} // namespace

KUNIT_SUITE(amso1100_queues,
	    KUNIT_CASE(mgmt_09_driver_flushes_outstanding_requests_in_order_after_a_card_failure),
	    KUNIT_CASE(lock_01_requests_can_be_posted_and_cqs_polled_and_armed_in_a_hard_interrupt),
	    KUNIT_CASE(requests_complete_in_order_and_cannot_exceed_the_ring_depth),
	    KUNIT_CASE(request_descriptors_have_the_layout_that_the_card_reads),
	    KUNIT_CASE(completion_entries_that_match_no_posted_request_are_ignored),
	    KUNIT_CASE(status_codes_are_converted_to_wc_status),
	    KUNIT_CASE(mgmt_09_completions_can_be_polled_after_qp_destroy));
