// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the parsing and validation of the card's capabilities, and the layout of its context
// memory.
#include <kern/kunit.hpp>
#include "../capabilities.hpp"
#include "../icm_layout.hpp"
#include "sample_card.hpp"

using namespace mthca;
using mthca::test::SampleCard;
using mthca::test::SampleFirmware;
using Lim = wire::QueryDevLim;

/* The capabilities of the sample card are decoded correctly. */
static void query_dev_lim_output_is_decoded_into_capabilities(kern::kunit::Test &test)
{
	SampleCard card;
	const auto parsed = parse_capabilities(card.limits);
	ASSERT_OK(parsed);
	const Capabilities &cap = parsed.value();
	EXPECT_EQ(cap.reserved_qps, 16u);
	EXPECT_EQ(cap.log_max_qp_size, 14u);
	EXPECT_EQ(cap.log_max_cq_size, 17u);
	EXPECT_EQ(cap.reserved_eqs, 1u);
	EXPECT_EQ(cap.num_ports, 2u);
	EXPECT_EQ(cap.port.gids, 32u);
	EXPECT_EQ(cap.port.pkeys, 64u);
	EXPECT_EQ(cap.port.max_mtu, static_cast<u32>(IB_MTU_2048));
	EXPECT_EQ(cap.uar_bytes, 8u << 20);
	EXPECT_EQ(cap.reserved_uars, 1u);
	EXPECT_EQ(cap.max_sq_wqe_bytes, 1008u);
	EXPECT_EQ(cap.entry.qpc, 256u);
	EXPECT_EQ(cap.entry.mpt, 64u);
	EXPECT_EQ(cap.max_icm_bytes, u64{1} << 40);
}

/* Registers are located by bus addresses, wherever the BAR is. */
static void register_offsets_are_computed_from_bus_addresses(kern::kunit::Test &test)
{
	SampleFirmware firmware;
	const auto parsed = parse_firmware(firmware.answer, firmware.bar0_bytes);
	ASSERT_OK(parsed);
	EXPECT_EQ(parsed.value().eq_arm_offset, u64{0x1e000});
	EXPECT_EQ(parsed.value().eq_ci_offset, u64{0x1d000});
	EXPECT_EQ(parsed.value().clear_interrupt_offset, u64{0xf00d8});
	EXPECT_EQ(parsed.value().error_buffer_offset, u64{0x1f000});
}

/* A table that starts at the last word of the BAR or at an unaligned address is refused. */
static void
query_fw_output_with_unaligned_or_out_of_bar_register_addresses_is_rejected(kern::kunit::Test &test)
{
	SampleFirmware firmware;
	for (const u64 bad : {firmware.bar0 + firmware.bar0_bytes - 4, firmware.bar0 + 0x1d002}) {
		wire::QueryFw::eq_ci_table.set(firmware.answer, bad);
		EXPECT_ERROR(parse_firmware(firmware.answer, firmware.bar0_bytes), -EPROTO);
	}
}

/* Capabilities that are inconsistent, or with which no driver could work, are rejected. */
static void inconsistent_capabilities_are_rejected(kern::kunit::Test &test)
{
	const struct {
		wire::Field field;
		u32 value;
	} spoilt[] = {
		{Lim::num_ports, 0},
		{Lim::num_ports, 3},
		{Lim::log_min_page_size, 16},
		{Lim::log_max_qp_size, 16},
		{Lim::log_max_qp_size, 0},
		{Lim::log_max_cq_size, 30},
		{Lim::max_sq_wqe_size, 16},
		{Lim::max_rq_sge, 0},
		{Lim::mtt_entry_size, 16},
		{Lim::qpc_entry_size, 100},
		{Lim::mpt_entry_size, 0},
		{Lim::log_uar_size, 63},
		{Lim::log_max_gids, 6},
		{Lim::max_mtu, 5},
		{Lim::max_mtu, 0},
		{Lim::log_max_requester_reads, 20},
		{Lim::log_max_srq_size, 16},
	};
	for (const auto &[field, value] : spoilt) {
		SampleCard card;
		card.set(field, value);
		EXPECT_ERROR(parse_capabilities(card.limits), -EPROTO);
	}
}

/* Not inlined into the tests, because their stack frames would become too large. */
[[gnu::noinline]] static kern::Result<IcmLayout> layout_of(const SampleCard &card)
{
	const auto cap = parse_capabilities(card.limits);
	return cap ? lay_out_icm(cap.value(), {})
		   : kern::Result<IcmLayout>(kern::Error{cap.error()});
}

/*
 * Regions do not overlap, are aligned to their size or a page, and are inside the range that the
 * card was given.
 */
static void icm_regions_are_aligned_and_do_not_overlap(kern::kunit::Test &test)
{
	SampleCard card;
	const auto laid = layout_of(card);
	ASSERT_OK(laid);
	const IcmLayout &layout = laid.value();
	for (unsigned int a = 0; a < icm_regions; a++) {
		const IcmExtent &x = layout.extent[a];
		const bool aligned = (x.base & (x.bytes() - 1)) == 0 && x.base % 4096 == 0;
		EXPECT_TRUE(aligned);
		EXPECT_LE(x.base + x.bytes(), layout.total_bytes);
		for (unsigned int b = 0; b < a; b++) {
			const IcmExtent &y = layout.extent[b];
			EXPECT_TRUE(x.base + x.bytes() <= y.base || y.base + y.bytes() <= x.base);
		}
	}
}

/* The tables have the sizes that are documented for users (Documentation/user-verbs.rst). */
static void icm_tables_have_the_documented_numbers_of_entries(kern::kunit::Test &test)
{
	SampleCard card;
	const auto laid = layout_of(card);
	ASSERT_OK(laid);
	const IcmLayout &layout = laid.value();
	EXPECT_EQ(layout[IcmRegion::mpt].log_entries, 17u);
	EXPECT_EQ(layout[IcmRegion::qpc].log_entries, 13u);
	EXPECT_EQ(layout[IcmRegion::cqc].log_entries, 13u);
	EXPECT_EQ(layout[IcmRegion::srqc].log_entries, 12u);
}

/* A card whose reserved objects fill its tables is refused. */
static void card_whose_reserved_objects_fill_a_table_is_rejected(kern::kunit::Test &test)
{
	SampleCard card;
	card.set(Lim::log_reserved_qps, 13);
	EXPECT_ERROR(layout_of(card), -EPROTO);
}

/* A card whose ICM is too small is refused. */
static void card_with_too_little_icm_is_rejected(kern::kunit::Test &test)
{
	SampleCard card;
	Lim::max_icm_size.set(card.limits, 1 << 20);
	EXPECT_ERROR(layout_of(card), -ENOSPC);
}

KUNIT_SUITE(mthca_capabilities, KUNIT_CASE(query_dev_lim_output_is_decoded_into_capabilities),
	    KUNIT_CASE(register_offsets_are_computed_from_bus_addresses),
	    KUNIT_CASE(query_fw_output_with_unaligned_or_out_of_bar_register_addresses_is_rejected),
	    KUNIT_CASE(inconsistent_capabilities_are_rejected),
	    KUNIT_CASE(icm_regions_are_aligned_and_do_not_overlap),
	    KUNIT_CASE(icm_tables_have_the_documented_numbers_of_entries),
	    KUNIT_CASE(card_whose_reserved_objects_fill_a_table_is_rejected),
	    KUNIT_CASE(card_with_too_little_icm_is_rejected));
