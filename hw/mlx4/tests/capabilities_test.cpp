// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the parsing and validation of the card's capabilities, and the layout of its context
// memory.
#include <kern/kunit.hpp>
#include "../capabilities.hpp"
#include "../icm_layout.hpp"
#include "sample_card.hpp"

using namespace mlx4;
using mlx4::test::SampleCard;
using Cap = wire::QueryDevCap;

/* The capabilities of the sample card are decoded correctly. */
static void query_dev_cap_output_is_decoded_into_capabilities(kern::kunit::Test &test)
{
	SampleCard card;
	const auto parsed = parse_capabilities(card.capabilities);
	ASSERT_OK(parsed);
	const Capabilities &cap = parsed.value();
	EXPECT_EQ(cap.reserved_qps, 64u);
	EXPECT_EQ(cap.log_max_qp_size, 14u);
	EXPECT_EQ(cap.log_max_cq_size, 22u);
	EXPECT_EQ(cap.reserved_cqs, 128u);
	EXPECT_EQ(cap.num_ports, 1u);
	EXPECT_EQ(cap.uar_bytes, 8u << 20);
	EXPECT_EQ(cap.max_sq_wqe_bytes, 1008u);
	EXPECT_EQ(cap.entry.qpc, 256u);
	EXPECT_EQ(cap.max_icm_bytes, u64{1} << 40);
}

/* Capabilities that are inconsistent, or with which no driver could work, are rejected. */
static void inconsistent_capabilities_are_rejected(kern::kunit::Test &test)
{
	const struct {
		wire::Field field;
		u32 value;
	} spoilt[] = {
		{Cap::num_ports, 0},
		{Cap::num_ports, 3},
		{Cap::log_min_page_size, 16},
		{Cap::log_max_qp_size, 16},
		{Cap::log_max_qp_size, 0},
		{Cap::log_max_cq_size, 30},
		{Cap::max_sq_wqe_size, 16},
		{Cap::max_sq_wqe_size, 4096},
		{Cap::max_rq_sge, 0},
		{Cap::mtt_entry_size, 16},
		{Cap::qpc_entry_size, 100},
		{Cap::dmpt_entry_size, 0},
		{Cap::log_max_message, 0},
		{Cap::log_uar_size, 63},
		{Cap::log_max_requester_reads, 20},
		{Cap::rdmarc_entry_size, 24},
	};
	for (const auto &[field, value] : spoilt) {
		SampleCard card;
		card.set(field, value);
		EXPECT_ERROR(parse_capabilities(card.capabilities), -EPROTO);
	}
}

/*
 * Regions do not overlap, are aligned to their size, and are inside the range that the card was
 * given; the cMPT tables have the required spacing.
 */
static void icm_regions_are_aligned_and_do_not_overlap(kern::kunit::Test &test)
{
	SampleCard card;
	const auto cap = parse_capabilities(card.capabilities);
	ASSERT_OK(cap);
	const auto laid = lay_out_icm(cap.value(), {});
	ASSERT_OK(laid);
	const IcmLayout &layout = laid.value();
	const unsigned int independent = static_cast<unsigned int>(IcmRegion::cmpt_qp);
	for (unsigned int a = 0; a < independent; a++) {
		const IcmExtent &x = layout.extent[a];
		EXPECT_EQ(x.base & (x.bytes() - 1), 0u);
		EXPECT_LE(x.base + x.bytes(), layout.total_bytes);
		for (unsigned int b = 0; b < a; b++) {
			const IcmExtent &y = layout.extent[b];
			EXPECT_TRUE(x.base + x.bytes() <= y.base || y.base + y.bytes() <= x.base);
		}
	}
	const u64 stride = u64{cap.value().entry.cmpt} << 24;
	EXPECT_EQ(layout[IcmRegion::cmpt_eq].base, layout[IcmRegion::cmpt_qp].base + 3 * stride);
}

/* The tables have the sizes that are documented for users (Documentation/user-verbs.rst). */
static void icm_tables_have_the_documented_numbers_of_entries(kern::kunit::Test &test)
{
	SampleCard card;
	const auto cap = parse_capabilities(card.capabilities);
	ASSERT_OK(cap);
	const auto laid = lay_out_icm(cap.value(), {});
	ASSERT_OK(laid);
	const IcmLayout &layout = laid.value();
	EXPECT_EQ(layout[IcmRegion::dmpt].log_entries, 19u);
	EXPECT_EQ(layout[IcmRegion::qpc].log_entries, 16u);
	EXPECT_EQ(layout[IcmRegion::cqc].log_entries, 16u);
	EXPECT_EQ(layout[IcmRegion::srqc].log_entries, 16u);
}

/* A card whose reserved objects fill its tables is refused. */
static void card_whose_reserved_objects_fill_a_table_is_rejected(kern::kunit::Test &test)
{
	SampleCard card;
	card.set(Cap::log_reserved_qps, 15);
	card.set(Cap::log_max_qps, 15);
	const auto cap = parse_capabilities(card.capabilities);
	ASSERT_OK(cap);
	EXPECT_ERROR(lay_out_icm(cap.value(), {}), -EPROTO);
}

/* A card whose ICM is too small is refused. */
static void card_with_too_little_icm_is_rejected(kern::kunit::Test &test)
{
	SampleCard card;
	Cap::max_icm_size.set(card.capabilities, 1 << 20);
	const auto cap = parse_capabilities(card.capabilities);
	ASSERT_OK(cap);
	EXPECT_ERROR(lay_out_icm(cap.value(), {}), -ENOSPC);
}

KUNIT_SUITE(mlx4_capabilities, KUNIT_CASE(query_dev_cap_output_is_decoded_into_capabilities),
	    KUNIT_CASE(inconsistent_capabilities_are_rejected),
	    KUNIT_CASE(icm_regions_are_aligned_and_do_not_overlap),
	    KUNIT_CASE(icm_tables_have_the_documented_numbers_of_entries),
	    KUNIT_CASE(card_whose_reserved_objects_fill_a_table_is_rejected),
	    KUNIT_CASE(card_with_too_little_icm_is_rejected));
