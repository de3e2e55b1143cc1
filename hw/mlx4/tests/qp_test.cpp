// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the conversion of QP attributes and transitions to commands, and the sizes of queues.
#include <kern/kunit.hpp>
#include "../ah.hpp"
#include "../inline_data.hpp"
#include "../qp_geometry.hpp"
#include "../qp_transition.hpp"
#include "sample_card.hpp"

using namespace mlx4;
using mlx4::test::SampleCard;

namespace
{

Capabilities sample_capabilities()
{
	SampleCard card;
	return parse_capabilities(card.capabilities).take();
}

} // namespace

/* Each transition of the specification has its command, and no other has one. */
static void qp_transition_commands_match_the_specification(kern::kunit::Test &test)
{
	using wire::Opcode;
	const struct {
		ib_qp_state from, to;
		Opcode opcode;
	} legal[] = {
		{IB_QPS_RESET, IB_QPS_INIT, Opcode::rst2init_qp},
		{IB_QPS_INIT, IB_QPS_INIT, Opcode::init2init_qp},
		{IB_QPS_INIT, IB_QPS_RTR, Opcode::init2rtr_qp},
		{IB_QPS_RTR, IB_QPS_RTS, Opcode::rtr2rts_qp},
		{IB_QPS_RTS, IB_QPS_RTS, Opcode::rts2rts_qp},
		{IB_QPS_SQE, IB_QPS_RTS, Opcode::sqerr2rts_qp},
		{IB_QPS_RTS, IB_QPS_SQD, Opcode::rts2sqd_qp},
		{IB_QPS_SQD, IB_QPS_RTS, Opcode::sqd2rts_qp},
		{IB_QPS_SQD, IB_QPS_SQD, Opcode::sqd2sqd_qp},
	};
	unsigned int found = 0;
	for (int from = IB_QPS_RESET; from <= IB_QPS_ERR; from++) {
		for (int to = IB_QPS_RESET; to <= IB_QPS_ERR; to++) {
			const auto got = transition_command(static_cast<ib_qp_state>(from),
							    static_cast<ib_qp_state>(to));
			if (to == IB_QPS_RESET) {
				EXPECT_TRUE(got.ok() && got.value() == Opcode::to_rst_qp);
				continue;
			}
			if (to == IB_QPS_ERR && from != IB_QPS_RESET) {
				EXPECT_TRUE(got.ok() && got.value() == Opcode::to_err_qp);
				continue;
			}
			bool expected = false;
			for (const auto &entry : legal)
				if (entry.from == from && entry.to == to) {
					expected = true;
					found++;
					EXPECT_TRUE(got.ok() && got.value() == entry.opcode);
				}
			if (!expected)
				EXPECT_ERROR(got, -EINVAL);
		}
	}
	EXPECT_EQ(found, sizeof(legal) / sizeof(legal[0]));
}

/* An address path is read back unchanged from the context. */
static void address_path_is_read_back_unchanged_from_the_qp_context(kern::kunit::Test &test)
{
	const Capabilities cap = sample_capabilities();
	rdma_ah_attr address{};
	address.type = RDMA_AH_ATTR_TYPE_IB;
	address.port_num = 1;
	address.sl = 5;
	address.static_rate = IB_RATE_10_GBPS;
	address.ah_flags = IB_AH_GRH;
	address.ib = {.dlid = 0x1234, .src_path_bits = 3};
	address.grh.sgid_index = 2;
	address.grh.hop_limit = 64;
	address.grh.traffic_class = 0xa5;
	address.grh.flow_label = 0x54321;
	for (unsigned int i = 0; i < 16; i++)
		address.grh.dgid.raw[i] = static_cast<u8>(i + 1);
	u8 path[wire::AddressPathLayout::size] = {};
	ASSERT_OK(put_path(path, cap, address, 1));
	const rdma_ah_attr back = get_path(path, 1);
	EXPECT_EQ(back.ib.dlid, address.ib.dlid);
	EXPECT_EQ(back.ib.src_path_bits, address.ib.src_path_bits);
	EXPECT_EQ(back.sl, address.sl);
	EXPECT_EQ(back.static_rate, address.static_rate);
	EXPECT_EQ(back.port_num, address.port_num);
	EXPECT_EQ(back.grh.sgid_index, address.grh.sgid_index);
	EXPECT_EQ(back.grh.flow_label, address.grh.flow_label);
	EXPECT_EQ(back.grh.traffic_class, address.grh.traffic_class);
	EXPECT_TRUE(back.grh.dgid == address.grh.dgid);
	EXPECT_ERROR(put_path(path, cap, address, 2), -EINVAL);
}

/*
 * Only the given attributes are in the mask of optional parameters. Values out of range are
 * rejected.
 */
static void out_of_range_qp_attributes_are_rejected(kern::kunit::Test &test)
{
	const Capabilities cap = sample_capabilities();
	alignas(8) u8 context[wire::QpContext::size] = {};
	ib_qp_attr attr{};
	attr.qkey = 0x80010000;
	attr.pkey_index = 7;
	const auto named =
		put_attributes(context, cap, attr, IB_QP_QKEY | IB_QP_PKEY_INDEX, 1, IB_QPT_UD);
	ASSERT_OK(named);
	EXPECT_EQ(named.value(), wire::qp_opt::qkey | wire::qp_opt::pkey_index);
	EXPECT_EQ(wire::QpContext::qkey.get(context), 0x80010000u);
	attr.path_mtu = static_cast<ib_mtu>(6);
	EXPECT_ERROR(put_attributes(context, cap, attr, IB_QP_PATH_MTU, 1, IB_QPT_RC), -EINVAL);
	attr.pkey_index = 128;
	EXPECT_ERROR(put_attributes(context, cap, attr, IB_QP_PKEY_INDEX, 1, IB_QPT_RC), -EINVAL);
	attr.max_rd_atomic = 200;
	EXPECT_ERROR(put_attributes(context, cap, attr, IB_QP_MAX_QP_RD_ATOMIC, 1, IB_QPT_RC),
		     -EINVAL);
}

/*
 * Queues hold at least the requested number of entries and do not overlap. The one with the larger
 * stride comes first. A request beyond the card's limits is refused.
 */
static void computed_queue_sizes_are_enough_for_the_requested_entries(kern::kunit::Test &test)
{
	const Capabilities cap = sample_capabilities();
	const ib_qp_type types[] = {IB_QPT_RC, IB_QPT_UD, IB_QPT_GSI, IB_QPT_UC};
	for (const ib_qp_type type : types) {
		for (u32 sges = 1; sges <= 30; sges++) {
			ib_qp_init_attr attr{};
			attr.qp_type = type;
			attr.cap = {.max_send_wr = 100,
				    .max_recv_wr = 300,
				    .max_send_sge = sges,
				    .max_recv_sge = sges,
				    .max_inline_data = sges * 10};
			const auto made = plan_queues(cap, attr);
			ASSERT_OK(made);
			const QpGeometry &plan = made.value();
			EXPECT_GE(1u << plan.log_sq_size, 100u);
			EXPECT_GE(1u << plan.log_rq_size, 300u);
			EXPECT_GE(plan.max_send_sge, sges);
			EXPECT_GE(plan.max_recv_sge, sges);
			EXPECT_GE(plan.max_inline, sges * 10);
			EXPECT_GE(plan.log_sq_stride, 6u);
			const u32 sq_end =
				plan.sq_offset + (1u << (plan.log_sq_size + plan.log_sq_stride));
			const u32 rq_end =
				plan.rq_offset + (1u << (plan.log_rq_size + plan.log_rq_stride));
			EXPECT_TRUE(sq_end == plan.rq_offset || rq_end == plan.sq_offset);
			EXPECT_EQ(plan.log_rq_stride > plan.log_sq_stride,
				  plan.rq_offset < plan.sq_offset);
			EXPECT_EQ(plan.bytes, sq_end > rq_end ? sq_end : rq_end);
		}
	}
	ib_qp_init_attr greedy{};
	greedy.qp_type = IB_QPT_RC;
	greedy.cap.max_send_wr = 1 << 20;
	EXPECT_ERROR(plan_queues(cap, greedy), -EINVAL);
	greedy.cap = {.max_send_wr = 1,
		      .max_recv_wr = 1,
		      .max_send_sge = 62,
		      .max_recv_sge = 1,
		      .max_inline_data = 0};
	EXPECT_ERROR(plan_queues(cap, greedy), -EINVAL);
}

/*
 * Inline data of any length is written by the card's rules: no segment crosses a multiple of 64
 * bytes, and each begins at a multiple of the unit.
 */
static void inline_segments_do_not_cross_64_byte_boundaries(kern::kunit::Test &test)
{
	for (u32 offset = 16; offset <= 64; offset += 16) {
		for (u32 length = 1; length <= 300; length++) {
			alignas(64) static u8 wqe[512];
			static u8 data[300];
			for (u32 i = 0; i < length; i++)
				data[i] = static_cast<u8>(i * 7 + 1);
			__builtin_memset(wqe, 0xcc, sizeof(wqe));
			const ib_sge sge[2] = {
				{reinterpret_cast<u64>(data), length / 2, 0},
				{reinterpret_cast<u64>(data + length / 2), length - length / 2, 0}};
			const u8 *end = put_inline_sges(wqe, wqe + offset, 300, sge, 2);
			ASSERT_TRUE(end != nullptr);
			ASSERT_EQ(static_cast<u32>(end - wqe),
				  offset + inline_bytes(offset, length));
			u32 at = offset, found = 0;
			while (at < static_cast<u32>(end - wqe)) {
				const auto &segment =
					*reinterpret_cast<const wire::WqeInline *>(wqe + at);
				ASSERT_TRUE(segment.byte_count.value() & wire::WqeData::inline_bit);
				const u32 part = segment.length();
				ASSERT_LE(at % 64 + 4 + part, 64u);
				for (u32 i = 0; i < part; i++)
					ASSERT_EQ(wqe[at + 4 + i],
						  static_cast<u8>((found + i) * 7 + 1));
				found += part;
				at = (at + 4 + part + 15) & ~15u;
			}
			ASSERT_EQ(found, length);
		}
	}
}

/* A rate that the card lacks becomes the next lower one. "No limit" is unchanged. */
static void unsupported_static_rates_become_the_next_lower_supported_rate(kern::kunit::Test &test)
{
	Capabilities cap = sample_capabilities();
	cap.static_rates = 1u << (5 + IB_RATE_2_5_GBPS) | 1u << (5 + IB_RATE_20_GBPS);
	EXPECT_EQ(static_rate(cap, IB_RATE_PORT_CURRENT), u8{0});
	EXPECT_EQ(static_rate(cap, IB_RATE_20_GBPS), static_cast<u8>(5 + IB_RATE_20_GBPS));
	EXPECT_EQ(static_rate(cap, IB_RATE_10_GBPS), static_cast<u8>(5 + IB_RATE_2_5_GBPS));
	EXPECT_EQ(static_rate(cap, IB_RATE_40_GBPS), static_cast<u8>(5 + IB_RATE_20_GBPS));
}

KUNIT_SUITE(mlx4_qp, KUNIT_CASE(qp_transition_commands_match_the_specification),
	    KUNIT_CASE(address_path_is_read_back_unchanged_from_the_qp_context),
	    KUNIT_CASE(out_of_range_qp_attributes_are_rejected),
	    KUNIT_CASE(computed_queue_sizes_are_enough_for_the_requested_entries),
	    KUNIT_CASE(inline_segments_do_not_cross_64_byte_boundaries),
	    KUNIT_CASE(unsupported_static_rates_become_the_next_lower_supported_rate));
