// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests queues in user memory: their layout must be the one that the provider library uses.
#include <kern/kunit.hpp>
#include <hw/mlx4/contexts.hpp>
#include "../qp_geometry.hpp"
#include "sample_card.hpp"

using namespace mlx4;
using mlx4::test::SampleCard;

namespace
{

ib_qp_init_attr asked()
{
	ib_qp_init_attr attr{};
	attr.qp_type = IB_QPT_RC;
	attr.cap = {.max_send_wr = 10,
		    .max_recv_wr = 100,
		    .max_send_sge = 3,
		    .max_recv_sge = 3,
		    .max_inline_data = 20};
	return attr;
}
constexpr user_abi::CreateQp said{.buffer = 0x10000,
				  .doorbell = 0x20000,
				  .log_sq_size = 5,
				  .log_sq_stride = 7,
				  .sq_no_prefetch = 0,
				  .reserved = 0,
				  .inline_receive_bytes = 0};

/* The driver computes the same queue layout as the library, whose command does not contain it. */
void user_qp_layout_matches_the_layout_of_the_rdma_core_provider(kern::kunit::Test &test)
{
	SampleCard card;
	const Capabilities cap = parse_capabilities(card.capabilities).take();
	const auto made = plan_user_queues(cap, asked(), said);
	ASSERT_OK(made);
	const QpGeometry &plan = made.value();
	EXPECT_EQ(plan.log_sq_size, 5u);
	EXPECT_EQ(plan.log_sq_stride, 7u);
	EXPECT_EQ(plan.log_rq_size, 7u);   // 100 requests
	EXPECT_EQ(plan.log_rq_stride, 6u); // of 3 pieces
	EXPECT_EQ(plan.max_recv_sge, 4u);
	EXPECT_EQ(plan.sq_offset, 0u);
	EXPECT_EQ(plan.rq_offset, 32u << 7);
	EXPECT_EQ(plan.bytes, (32u << 7) + (128u << 6));
	EXPECT_EQ(plan.max_send_sge, 3u);
	EXPECT_EQ(plan.max_inline, 20u);
}

/*
 * The receive queue comes first if its stride is larger. A type without a receive queue has only
 * the send queue.
 */
void user_queue_with_the_larger_stride_is_first_in_the_buffer(kern::kunit::Test &test)
{
	SampleCard card;
	const Capabilities cap = parse_capabilities(card.capabilities).take();
	ib_qp_init_attr attr = asked();
	attr.cap.max_recv_sge = 16; // a stride of 256
	const auto plan = plan_user_queues(cap, attr, said);
	ASSERT_OK(plan);
	EXPECT_EQ(plan.value().rq_offset, 0u);
	EXPECT_EQ(plan.value().sq_offset, 128u << 8);

	attr.qp_type = IB_QPT_XRC_INI;
	attr.cap.max_recv_wr = 0;
	const auto sends = plan_user_queues(cap, attr, said);
	ASSERT_OK(sends);
	EXPECT_FALSE(sends.value().has_rq);
	EXPECT_EQ(sends.value().bytes, 32u << 7);
}

/*
 * Whatever values a program passes, the resulting layout fits into the card's contexts, or the
 * values are rejected.
 */
void user_queue_layout_that_does_not_fit_the_qp_context_is_refused(kern::kunit::Test &test)
{
	SampleCard card;
	const Capabilities cap = parse_capabilities(card.capabilities).take();
	unsigned int accepted = 0;
	for (unsigned int size = 0; size < 256; size++) {
		for (unsigned int stride = 0; stride < 256; stride++) {
			user_abi::CreateQp command = said;
			command.log_sq_size = static_cast<u8>(size);
			command.log_sq_stride = static_cast<u8>(stride);
			const auto plan = plan_user_queues(cap, asked(), command);
			if (!plan) {
				EXPECT_ERROR(plan, -EINVAL);
				continue;
			}
			accepted++;
			EXPECT_LE(size, cap.log_max_qp_size);
			EXPECT_LT(size, wire::QpContext::no_send_queue);
			EXPECT_GE(stride, 6u);
			EXPECT_LE(1u << stride, 2 * cap.max_sq_wqe_bytes);
			EXPECT_EQ(plan.value().bytes, (1u << (size + stride)) + (128u << 6));
		}
	}
	// Tests every queue size of the card, and strides from 64 bytes to the size of its largest
	// descriptor.
	u32 strides = 0;
	while (u32{32} << strides < cap.max_sq_wqe_bytes)
		strides++;
	const u32 sizes = cap.log_max_qp_size + 1 < wire::QpContext::no_send_queue
				  ? cap.log_max_qp_size + 1
				  : wire::QpContext::no_send_queue;
	EXPECT_EQ(accepted, sizes * strides);

	const auto refused = [&](auto change) {
		ib_qp_init_attr attr = asked();
		user_abi::CreateQp command = said;
		change(attr, command);
		EXPECT_ERROR(plan_user_queues(cap, attr, command), -EINVAL);
	};
	refused([](auto &, auto &command) { command.reserved = 1; });
	refused([](auto &, auto &command) { command.inline_receive_bytes = 1; });
	refused([](auto &attr, auto &) { attr.cap.max_recv_wr = 0; });
	refused([](auto &attr, auto &) { attr.cap.max_recv_sge = 0; });
	refused([](auto &attr, auto &) { attr.cap.max_recv_wr = ~0u; });
	refused([](auto &attr, auto &) { attr.cap.max_recv_sge = ~0u; });
	refused([](auto &attr, auto &) { attr.qp_type = IB_QPT_XRC_INI; });
}

KUNIT_SUITE(mlx4_user, KUNIT_CASE(user_qp_layout_matches_the_layout_of_the_rdma_core_provider),
	    KUNIT_CASE(user_queue_with_the_larger_stride_is_first_in_the_buffer),
	    KUNIT_CASE(user_queue_layout_that_does_not_fit_the_qp_context_is_refused));

} // namespace
