// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests queues in user memory: their layout must be the one that the provider library uses.
#include <kern/kunit.hpp>
#include <hw/mthca/contexts.hpp>
#include "../qp_geometry.hpp"
#include "sample_card.hpp"

using namespace mthca;
using mthca::test::SampleCard;

namespace
{

/* Not inlined into the tests, because their stack frames would become too large. */
[[gnu::noinline]] Capabilities capabilities_of_a_sound_card()
{
	SampleCard card;
	return parse_capabilities(card.limits).take();
}

ib_qp_init_attr asked(ib_qp_type type)
{
	ib_qp_init_attr attr{};
	attr.qp_type = type;
	attr.cap = {.max_send_wr = 10,
		    .max_recv_wr = 100,
		    .max_send_sge = 3,
		    .max_recv_sge = 3,
		    .max_inline_data = 20};
	return attr;
}

/* The driver computes the same queue layout as the library, whose command does not contain it. */
void user_qp_layout_matches_the_layout_of_the_rdma_core_provider(kern::kunit::Test &test)
{
	const Capabilities cap = capabilities_of_a_sound_card();
	const struct {
		ib_qp_type type;
		u32 sges, inlined, log_stride;
	} rows[] = {
		{IB_QPT_RC, 3, 20, 7},  // 16 + 16 + 48
		{IB_QPT_RC, 1, 0, 6},   // an atomic with a piece: 16 + 16 + 16 + 16
		{IB_QPT_UC, 1, 0, 6},   // 16 + 16 + 16
		{IB_QPT_UC, 0, 0, 6},   // space to bind a memory window
		{IB_QPT_UC, 2, 29, 7},  // 4 + 29 bytes are three pieces
		{IB_QPT_UD, 3, 20, 7},  // 16 + 48 + 48
		{IB_QPT_UD, 1, 236, 9}, // 16 + 48 + 240
	};
	for (const auto &row : rows) {
		ib_qp_init_attr attr = asked(row.type);
		attr.cap.max_send_sge = row.sges;
		attr.cap.max_inline_data = row.inlined;
		const auto made = plan_user_queues(cap, attr);
		ASSERT_OK(made);
		const QpGeometry &plan = made.value();
		EXPECT_EQ(plan.log_sq_stride, row.log_stride);
		EXPECT_EQ(plan.log_sq_size, 4u);
		EXPECT_EQ(plan.log_rq_size, 7u);
		EXPECT_EQ(plan.log_rq_stride, 6u);
		EXPECT_EQ(plan.sq_offset, 128u << 6);
		EXPECT_EQ(plan.bytes, (128u << 6) + (16u << row.log_stride));
		EXPECT_EQ(plan.max_send_sge, row.sges);
		EXPECT_EQ(plan.max_inline, row.inlined);
	}
}

/*
 * A queue that was not requested takes no space. A requested one does, even with an SRQ. The send
 * queue starts at a multiple of its stride.
 */
void user_send_or_receive_queue_with_max_wr_0_occupies_no_memory(kern::kunit::Test &test)
{
	const Capabilities cap = capabilities_of_a_sound_card();
	ib_srq srq{};
	ib_qp_init_attr attr = asked(IB_QPT_RC);
	attr.srq = &srq;
	const auto beside = plan_user_queues(cap, attr);
	ASSERT_OK(beside);
	EXPECT_FALSE(beside.value().has_rq);
	EXPECT_EQ(beside.value().sq_offset, 128u << 6);

	attr.cap.max_recv_wr = 0;
	const auto alone = plan_user_queues(cap, attr);
	ASSERT_OK(alone);
	EXPECT_EQ(alone.value().sq_offset, 0u);

	attr.cap.max_recv_wr = 1;
	attr.cap.max_send_sge = 20; // a stride of 512
	const auto aligned = plan_user_queues(cap, attr);
	ASSERT_OK(aligned);
	EXPECT_EQ(aligned.value().sq_offset, 512u);

	attr.cap.max_send_wr = 0;
	const auto receives = plan_user_queues(cap, attr);
	ASSERT_OK(receives);
	EXPECT_EQ(receives.value().bytes, 512u);
}

/*
 * Whatever values a program passes, the resulting layout fits into the card's contexts, or the
 * values are refused.
 */
void user_queue_layout_that_does_not_fit_the_qp_context_is_refused(kern::kunit::Test &test)
{
	const Capabilities cap = capabilities_of_a_sound_card();
	const auto refused = [&](auto change) {
		ib_qp_init_attr attr = asked(IB_QPT_RC);
		change(attr);
		EXPECT_ERROR(plan_user_queues(cap, attr), -EINVAL);
	};
	for (const u32 much : {(1u << 14) + 1, 1u << 31, ~0u}) {
		refused([&](auto &attr) { attr.cap.max_send_wr = much; });
		refused([&](auto &attr) { attr.cap.max_recv_wr = much; });
		refused([&](auto &attr) { attr.cap.max_send_sge = much; });
		refused([&](auto &attr) { attr.cap.max_recv_sge = much; });
		refused([&](auto &attr) { attr.cap.max_inline_data = much; });
	}
	refused([](auto &attr) { attr.cap.max_inline_data = 1000; });
	refused([](auto &attr) { attr.qp_type = IB_QPT_GSI; });
	for (u32 sges = 0; sges <= cap.max_sq_sge; sges++) {
		ib_qp_init_attr attr = asked(IB_QPT_UD);
		attr.cap.max_send_sge = sges;
		const auto plan = plan_user_queues(cap, attr);
		if (plan)
			EXPECT_LE(plan.value().log_sq_stride, 10u);
	}
	ib_qp_init_attr attr = asked(IB_QPT_RC);
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 1 << 14;
	const auto largest = plan_user_queues(cap, attr);
	ASSERT_OK(largest);
	EXPECT_EQ(largest.value().log_sq_size, 14u);
}

KUNIT_SUITE(mthca_user, KUNIT_CASE(user_qp_layout_matches_the_layout_of_the_rdma_core_provider),
	    KUNIT_CASE(user_send_or_receive_queue_with_max_wr_0_occupies_no_memory),
	    KUNIT_CASE(user_queue_layout_that_does_not_fit_the_qp_context_is_refused));

} // namespace
